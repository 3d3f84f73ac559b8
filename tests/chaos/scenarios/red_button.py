"""The red button: nothing more is started after 2 s, whatever is restarted or away, until it is taken back; a task type,
a slice and a shard by themselves."""
import concurrent.futures
import time

from chaos.cluster import Cluster
from chaos.load import SteadyLoad
from chaos.processes import wait_until
from chaos.scenario import main

TYPES = {"a": {"uses": "sleep"}, "b": {"uses": "sleep"}}
IN_FORCE = 2.0


def claims(s, where=""):
    """All attempts so far."""
    return int(s.db.value(f"SELECT COALESCE(SUM(attempt), 0) FROM tasks_all {where}"))


def check_still(s, what, seconds, where=""):
    before = claims(s, where)
    time.sleep(seconds)
    more = claims(s, where) - before
    s.check(f"{what}: 0 claims", f"{more} in {seconds} s", more == 0)


def check_goes_on(s, what, before, where=""):
    """`before`: the claims before that was asked for, so that those count that come with the asking."""
    began = time.monotonic()
    wait_until(what, lambda: claims(s, where) > before, 20)
    s.check(f"{what} within {IN_FORCE:g} s", f"{time.monotonic() - began:.2f} s", time.monotonic() - began <= IN_FORCE)


def resume(s, cluster, name, what, where="", **expect):
    """Something waits: what could not go on since nothing was there would say nothing."""
    wait_until(f"a task waits for {name} to be resumed", lambda: int(s.db.value(
        f"SELECT COUNT(*) FROM tasks {where}")) > 0, 20)
    before = claims(s, where)
    cluster.command("resume", name, **expect)
    check_goes_on(s, what, before, where)


def check_paused(s, cluster, name, others):
    """One name by itself: what it covers stands still, what `others` chooses goes on."""
    kind, _, rest = name.partition(":")
    covered = {"handler": f"WHERE handler = '{rest}'", "slice": f"WHERE slice = {rest.rpartition(':')[2]}"}.get(kind, "")
    cluster.command("pause", name)
    time.sleep(IN_FORCE)
    check_still(s, f"{name} is paused", s.size(1, 3), covered)
    if others:
        check_goes_on(s, "and others go on", claims(s, others), others)
    resume(s, cluster, name, f"{name} is resumed", covered)


def start_workers(cluster):
    for worker_id in ("w1", "w2"):
        cluster.start(worker_id)


def restart_everything(s, cluster):
    for worker in s.workers:
        worker.kill()
    s.zookeeper.stop()
    s.db.stop()
    s.db.start()
    s.zookeeper.start()
    s.zookeeper.wait_serving()
    start_workers(cluster)
    wait_here(cluster)


def wait_here(cluster):
    """Until the workers that run now are those that are there: nodes of dead ones stay for a session."""
    pids = {cluster.worker(name).pid for name in cluster.live()}
    wait_until("the workers are there", lambda: {w.get("pid") for w in cluster.status()["workers"].values()} == pids,
               20, 0.2)
    wait_until("the test's own client is back", lambda: cluster.tree.connected, 20)
    cluster.wait_owned()


def press_with_zookeeper(s, cluster, still):
    """The commands tell the shards, wait 10 s for ZooKeeper, and say that it is to be told later."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        command = pool.submit(cluster.command, "pause", "cluster", expect=1)
        wait_until("the shard is told", lambda: int(s.db.value("SELECT COUNT(*) FROM millrace_pauses")) > 0, 20)
        time.sleep(IN_FORCE)
        check_still(s, "paused by a command that looks for ZooKeeper in vain", still)
        command.result()
    resume(s, cluster, "cluster", "resumed by such a command, work goes on", expect=1)


def run(s):
    still = s.size(1.5, 5)
    cluster = Cluster(s, handlers=TYPES)
    start_workers(cluster)
    cluster.wait_owned()
    load = SteadyLoad(s.db.connect, 100, lambda i: ("ab"[i % 2], {"ms": 5}))
    wait_until("tasks are claimed", lambda: claims(s) > 100, 20)

    cluster.command("pause", "cluster")
    time.sleep(IN_FORCE)
    check_still(s, "the cluster is paused", still)
    before = claims(s)
    restart_everything(s, cluster)
    check_still(s, "after a restart of everything", still)
    more = claims(s) - before
    s.check("and in the restart itself: 0 claims", more, more == 0)
    s.check("cluster status tells it", cluster.status()["pauses"], cluster.status()["pauses"] == ["cluster"])
    resume(s, cluster, "cluster", "resumed, work goes on")

    s.zookeeper.stop()
    s.zookeeper, away = None, s.zookeeper  # the commands are told of the shards alone
    cluster.command("pause", "cluster")
    time.sleep(IN_FORCE)
    check_still(s, "paused while ZooKeeper is away", still)
    resume(s, cluster, "cluster", "resumed while it is away, work goes on")
    s.zookeeper = away
    if s.full:
        press_with_zookeeper(s, cluster, still)
    s.zookeeper.start()
    s.zookeeper.wait_serving()
    wait_here(cluster)

    check_paused(s, cluster, "handler:a", "WHERE handler = 'b'")
    check_paused(s, cluster, "slice:main:tasks:17", "WHERE slice <> 17")
    check_paused(s, cluster, "shard:main", "")
    sent = load.finish()
    s.wait_all_ended(30)
    s.check("in the end all tasks are done", f"{s.done()} of at least {sent}", s.done() >= sent)


if __name__ == "__main__":
    main(run)
