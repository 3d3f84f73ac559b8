"""Restarts that are announced cost no move; a drain under load moves what it must and delays nobody; a worker that comes
and goes keeps nobody busy."""
import time

from chaos.cluster import Cluster
from chaos.offered import OfferedLoad, capacity, late_starts
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3")
LATER = 100  # ms: how much worse the 99th percentile may become


def run(s):
    cluster = Cluster(s, zookeepers=1, session=3)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    load = OfferedLoad(s.db, capacity(s, 20_000) / 2 if s.full else 200)
    time.sleep(1)
    rolling_restart(s, cluster)
    drain(s, cluster)
    flap(s, cluster)
    load.check_all_awarded(s)
    s.check_no_attempt_settled_twice()


def numbers(slices):
    return [int(slice_.rsplit("/", 1)[1]) for slice_ in slices]


def watch(s, seconds, slices):
    """The 99th percentile, in ms, for payments of these slices that come due from now on, for so long. What is not done
    yet counts as well, once it is."""
    since = s.now()
    time.sleep(seconds)
    until = s.now()
    wait_until("what was due by then is done", lambda: not s.db.value(
        "SELECT COUNT(*) FROM tasks WHERE run_at < %s", (until,)), 30, 0.05)
    return late_starts(s, since, until, numbers(slices))


def rolling_restart(s, cluster):
    began = time.monotonic()
    for name in WORKERS:
        cluster.command("expect", name)
        cluster.worker(name).terminate()
        cluster.start(name)
        cluster.wait_owned(30)
    time.sleep(cluster.session + 6)  # a leader judges after a session, and makes voluntary moves after 5 s of quiet
    moved = cluster.moves.made(began)
    s.check("rolling restart of all workers with cluster expect: 0 moves", f"{len(moved)} moves", not moved)


def drain(s, cluster):
    slices = cluster.owned()["w3"]
    seconds = s.size(4, 15)
    before = watch(s, seconds, slices)
    began = time.monotonic()
    cluster.command("drain", "w3")
    during = watch(s, seconds, slices)
    moved = [move.slice for move in cluster.moves.made(began)]
    s.check("drain under load: the moves are exactly the slices of the drained worker",
            f"{len(moved)} moves of {len(slices)}", sorted(moved) == sorted(slices))
    s.check(f"drain under load: due-to-start p99 of its slices at most {LATER} ms worse",
            f"{before:.0f} ms before, {during:.0f} ms from the drain on", during <= before + LATER)
    cluster.command("undrain", "w3")
    cluster.wait_balanced(WORKERS)


def flap(s, cluster):
    """Killed and started again, over and over: up and down by turns."""
    slices = cluster.owned()["w3"]
    others = [slice_ for name in ("w1", "w2") for slice_ in cluster.owned()[name]]
    half, rounds = s.size(3.5, 6), s.size(2, 15)
    before = watch(s, s.size(4, 15), others)
    began = time.monotonic()
    since = s.now()
    for _ in range(rounds):
        cluster.worker("w3").kill()
        time.sleep(half)
        cluster.start("w3")
        time.sleep(half)
    until = s.now()
    cluster.wait_owned(30)
    moved = cluster.moves.made(began)
    during = late_starts(s, since, until, numbers(others))
    s.check(f"a worker that flaps every {2 * half:g} s, {rounds} times: at most twice its {len(slices)} slices move",
            f"{len(moved)} moves", 0 < len(moved) <= 2 * len(slices))
    s.check(f"meanwhile due-to-start p99 of the other slices rises by at most {LATER} ms",
            f"{before:.0f} ms before, {during:.0f} ms then", during <= before + LATER)


if __name__ == "__main__":
    main(run)
