"""All ZooKeepers down under load: the workers go on with their last plan, and are back at once without a move. With
`on_zookeeper_loss: stop` they claim nothing more."""
import time

from chaos.cluster import ROOT, Cluster
from chaos.offered import OfferedLoad, capacity, slowest_window
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3")


def run(s):
    away = s.size(9, 60)
    cluster = Cluster(s, zookeepers=3)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    rate = capacity(s, 100_000) / 2 if s.full else 200
    load = OfferedLoad(s.db, rate)
    time.sleep(2)
    began, since = time.monotonic(), s.now()
    s.zookeeper.stop()
    time.sleep(away)
    until = s.now()
    check_rejoined(s, cluster, began, f"{away} s without ZooKeeper")
    stop_on_loss(s, cluster)
    load.check_all_awarded(s)
    least = slowest_window(s, rate, since, until)
    s.check(f"{away} s without ZooKeeper: at least 0.9 of {rate:.0f} payments a second end in every 5 s",
            f"{least:.3f} in the slowest", least >= 0.9)


def check_rejoined(s, cluster, began, what):
    s.zookeeper.start()
    wait_until("the ensemble has a majority again", lambda: any(server.mode() for server in s.zookeeper.servers), 60)
    back = time.monotonic()
    returned = time.time() * 1000
    wait_until("all workers have told their status again, and one leads",
               lambda: told_since(cluster, returned) and cluster.leader() and cluster.all_run(), 30, 0.05)
    took = time.monotonic() - back
    s.check(f"{what}: rejoined within 5 s of its return", f"{took:.1f} s", took <= 5)
    time.sleep(cluster.session + 1)  # until the leader judges who is missing
    moved = cluster.moves.made(began)
    s.check(f"{what}: 0 moves", f"{len(moved)} moves", not moved)


def told_since(cluster, moment):
    """Whether each worker is there, and has said something since."""
    stats = [(cluster.tree.exists(f"{ROOT}/workers/{name}"), cluster.tree.exists(f"{ROOT}/status/{name}"))
             for name in WORKERS]
    return all(place and status and status.mtime >= moment for place, status in stats)


def stop_on_loss(s, cluster):
    s.millrace("config", "set", "engine.on_zookeeper_loss", '"stop"')
    time.sleep(2)
    began = time.monotonic()
    s.zookeeper.stop()
    time.sleep(cluster.session + 2)
    before = claimed(s)
    time.sleep(3)
    claims = claimed(s) - before
    s.check("on_zookeeper_loss stop: claims stop within the session time-out + 2 s", f"{claims} claims in 3 s after it",
            claims == 0)
    check_rejoined(s, cluster, began, "on_zookeeper_loss stop")
    wait_until("claims go on by themselves", lambda: claimed(s) > before, 5)


def claimed(s):
    """So many tasks have been claimed so far."""
    return s.db.value("SELECT (SELECT COUNT(*) FROM tasks_done) + (SELECT COUNT(*) FROM tasks WHERE state = 2)")


if __name__ == "__main__":
    main(run)
