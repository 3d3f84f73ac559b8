"""A partner that fails for a while, three workers of a cluster: its breaker opens in all of them together, and they share
one budget of probes; by hand it opens and closes for all."""
import time

from chaos.broken import BrokenPartner, handlers
from chaos.cluster import Cluster
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
    wait_until("left to its rules it closes by a probe", lambda: s.db.value(
        "SELECT COUNT(*) FROM tasks WHERE handler = 'call'") == 0, 20, 0.1)


def run(s):
    cluster = Cluster(s, slices=48)
    broken = BrokenPartner(s, workers=len(WORKERS))
    for name in WORKERS:
        cluster.start(name, handlers=handlers(broken.partner))
    cluster.wait_balanced(WORKERS)
    broken.run(told=lambda: cluster.status()["breakers"])
    s.check("status does not say so any more", cluster.status()["breakers"], not cluster.status()["breakers"])
    by_hand(s, cluster, broken.partner)


if __name__ == "__main__":
    main(run)
