"""Twelve workers for ten slices: two stand by. Five that own slices die at once, which looks more like a network than
like workers: nothing moves for 30 s, or until an operator says so; then all is owned again, and balanced."""
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main

SLICES, WORKERS, VICTIMS = 10, 12, 5
HOLD = 30


def run(s):
    cluster = Cluster(s, zookeepers=1, slices=SLICES)
    for number in range(1, WORKERS + 1):
        cluster.start(f"w{number}", "--concurrency", 1)
    cluster.wait_balanced(cluster.live())
    states = [worker["state"] for worker in cluster.status()["workers"].values()]
    s.check(f"{WORKERS} workers, {SLICES} slices: two stand by", f"{states.count('standby')} stand by",
            (states.count("standby"), states.count("working")) == (WORKERS - SLICES, SLICES))
    wait_out(s, cluster)
    if s.full:
        for number in range(WORKERS + 1, WORKERS + VICTIMS + 1):
            cluster.start(f"w{number}", "--concurrency", 1)
        cluster.wait_balanced(cluster.live(), 60)
    proceed(s, cluster)


def kill_five(cluster, with_leader):
    """Those that own slices, the leader among them or not. Returns when, and the slices."""
    leader = cluster.wait_leader()
    owned = cluster.owned()
    others = [name for name in owned if name != leader]
    victims = [leader, *others[:VICTIMS - 1]] if with_leader and leader in owned else others[:VICTIMS]
    lost = [slice_ for name in victims for slice_ in owned[name]]
    for name in victims:
        cluster.worker(name).kill()
    killed = time.monotonic()
    wait_until("the leader holds", cluster.holding, cluster.session + 4, 0.1)
    return killed, lost


def check_healed(s, cluster, killed, lost, what):
    live = cluster.live()
    s.check(f"{what}: all slices owned, and balanced",
            {name: len(slices) for name, slices in cluster.owned().items()}, cluster.balanced(live))
    moved = [move.slice for move in cluster.moves.made(killed)]
    s.check(f"{what}: the moves are the {len(lost)} lost slices", f"{len(moved)} moves", sorted(moved) == sorted(lost))


def wait_out(s, cluster):
    killed, lost = kill_five(cluster, with_leader=False)
    cluster.wait_balanced(cluster.live(), HOLD + 20)
    took = time.monotonic() - killed
    first = min(move.at for move in cluster.moves.made(killed)) - killed
    s.check(f"five of twelve die at once: nothing moves for {HOLD} s", f"the first move after {first:.1f} s",
            first >= HOLD)
    bound = HOLD + cluster.session + 2
    s.check(f"all owned again within {bound} s", f"{took:.1f} s", took <= bound)
    check_healed(s, cluster, killed, lost, f"after {HOLD} s of calm")


def proceed(s, cluster):
    killed, lost = kill_five(cluster, with_leader=True)
    time.sleep(s.size(4, 10))
    moved = cluster.moves.made(killed)
    s.check("five of twelve die at once, the leader among them: nothing moves", f"{len(moved)} moves", not moved)
    cluster.command("proceed")
    said = time.monotonic()
    cluster.wait_balanced(cluster.live(), 10)
    took = time.monotonic() - said
    s.check("cluster proceed: owned again within 2 s", f"{took:.1f} s", took <= 2)
    check_healed(s, cluster, killed, lost, "cluster proceed")


if __name__ == "__main__":
    main(run)
