"""A partner that fails for a while, three workers of a cluster: its breaker opens in all of them together, and they share
one budget of probes; by hand it opens and closes for all. In full also: ZooKeeper is away, and who probes is killed."""
import time

from chaos.broken import PROBE_EVERY, RATE, BrokenPartner, handlers
from chaos.cluster import Cluster
from chaos.load import SteadyLoad
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3")


def by_hand(s, cluster, partner):
    s.millrace("handler", "breaker", "call", "open", "--reason", "the partner asked for it")
    time.sleep(2)
    before = partner.calls_in(0, time.monotonic())
    first = s.insert("call", {"n": 0}, 30)
    time.sleep(s.size(2, 5))
    more = partner.calls_in(0, time.monotonic()) - before
    s.check("opened by hand, nothing calls the partner", f"{more} calls", more == 0)
    why = s.millrace("task", "why", str(first))
    s.check("task why says so, with the reason", why.splitlines()[0], "the partner asked for it" in why)
    s.millrace("handler", "breaker", "call", "auto")
    wait_until("left to its rules it closes by a probe", lambda: no_calls_left(s), 20, 0.1)


def no_calls_left(s):
    return s.db.value("SELECT COUNT(*) FROM tasks WHERE handler = 'call'") == 0


def opened(cluster):
    """The cluster's word of the breaker; empty: it is closed."""
    return cluster.status()["breakers"].get("call", {})


def without_zookeeper(s, cluster, partner):
    """Each worker probes by itself, and what they have found out holds when ZooKeeper is back."""
    load = SteadyLoad(s.db.connect, RATE, lambda i: ("call", {"n": i}))
    partner.works = False
    wait_until("the breaker opens", lambda: opened(cluster), 20, 0.2)
    s.zookeeper.stop()
    time.sleep(cluster.session + 5)
    began, seconds = time.monotonic(), 6
    time.sleep(seconds)
    probes = partner.calls_in(began, began + seconds)
    most = len(WORKERS) * (seconds / PROBE_EVERY + 1)
    s.check("while ZooKeeper is away each worker probes by itself", f"{probes} calls in {seconds} s, at most {most:.0f}",
            seconds <= probes <= most)
    partner.works = True
    before = s.done_of("call")
    wait_until("calls go on, by each worker's own word", lambda: s.done_of("call") > before + 5 * RATE, 20, 0.1)
    s.zookeeper.start()
    s.zookeeper.wait_serving()
    wait_until("the test's own client is back", lambda: cluster.tree.connected, 20)
    wait_until("the cluster hears that it is closed", lambda: not opened(cluster), 30, 0.3)
    sent = load.finish()
    wait_until("all calls are done", lambda: no_calls_left(s), 30, 0.1)
    s.check("all are done", f"{sent} sent, {s.failed()} failed", s.failed() == 0)


def prober_killed(s, cluster, partner):
    load = SteadyLoad(s.db.connect, RATE, lambda i: ("call", {"n": i}))
    partner.works = False
    prober = wait_until("somebody probes", lambda: opened(cluster).get("probe"), 20, 0.2)["by"]
    cluster.worker(prober).kill()
    began, seconds = time.monotonic(), 6
    time.sleep(seconds)
    probes = partner.calls_in(began, began + seconds)
    s.check("the worker that probed is killed: others probe, by the same budget", f"{probes} calls in {seconds} s",
            seconds / PROBE_EVERY / 2 <= probes <= seconds / PROBE_EVERY + 2)
    partner.works = True
    load.finish()
    wait_until("all calls are done", lambda: no_calls_left(s), 40, 0.1)
    s.check("all are done", f"{s.failed()} failed", s.failed() == 0)


def run(s):
    cluster = Cluster(s, slices=48)
    broken = BrokenPartner(s, workers=len(WORKERS))
    for name in WORKERS:
        cluster.start(name, handlers=handlers(broken.partner))
    cluster.wait_balanced(WORKERS)
    broken.run(told=lambda: opened(cluster), told_by=WORKERS)
    s.check("status does not say so any more", cluster.status()["breakers"], not cluster.status()["breakers"])
    by_hand(s, cluster, broken.partner)
    if s.full:
        without_zookeeper(s, cluster, broken.partner)
        prober_killed(s, cluster, broken.partner)
    broken.partner.stop()


if __name__ == "__main__":
    main(run)
