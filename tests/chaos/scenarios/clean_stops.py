"""Workers that are stopped by SIGTERM, with nothing announced before: scaling in by a third under load, the leader and
tasks that run among them, and a restart of all, one after another. What they owned is others' at once, nothing is held,
and nobody is put on probation."""
import json
import signal
import time

from chaos.cluster import ROOT, Cluster
from chaos.offered import OfferedLoad
from chaos.processes import wait_until
from chaos.scenario import main

BOUND = 2  # s: so long a slice may be without an owner
SEEN = 1  # s: what a worker runs stands in its status, once a second
TASK = 4  # s: what runs takes longer than that


def run(s):
    before, after = s.size((8, 5), (12, 8))
    cluster = Cluster(s, zookeepers=s.size(1, 3), handlers={"sleep": {"concurrency": 2, "queue": 2}})
    for number in range(1, before + 1):
        cluster.start(f"w{number}", "--concurrency", 4)
    cluster.wait_balanced(cluster.live())
    load = OfferedLoad(s.db, s.size(100, 500))
    scale_in(s, cluster, before, before - after)
    cluster.wait_balanced(cluster.live())
    rolling_restart(s, cluster)
    cluster.wait_balanced(cluster.live())
    load.check_all_awarded(s)
    s.check("no word of a leave is left over", cluster.tree.get_children(f"{ROOT}/leave"),
            not cluster.tree.get_children(f"{ROOT}/leave"))


def stop(cluster, names):
    """SIGTERM to all of them at once; returns how many slices they had, how long the slowest of them had no owner that
    lives, and when all were run."""
    lost = {slice_ for name in names for slice_ in cluster.owned().get(name, ())}
    asked = time.monotonic()
    for name in names:
        cluster.worker(name).send(signal.SIGTERM)
    rest = [name for name in cluster.live() if name not in names]
    cluster.wait_owned(60, rest)
    run_again = time.monotonic() - asked

    def found():
        return {move.slice: move.at - asked for move in reversed(cluster.moves.made(asked)) if move.target in rest}

    wait_until("each of them is seen to have moved", lambda: lost <= found().keys(), 10)
    assert lost, f"{names} own nothing"
    return len(lost), max(at for slice_, at in found().items() if slice_ in lost), run_again


def plan(cluster):
    told = json.loads(cluster.tree.get(f"{ROOT}/plan")[0])
    return {"holding": told.get("holding"), "probation": sorted(told.get("probation", ()))}


CALM = {"holding": False, "probation": []}


def scale_in(s, cluster, before, count):
    leader = cluster.wait_leader()
    leaving = [leader, *[name for name in cluster.live() if name != leader][:count - 1]]
    owned = cluster.owned()
    numbers = [int(slice_.rsplit("/", 1)[1]) for name in leaving for slice_ in sorted(owned[name])[:2]]
    for number in numbers:
        s.insert("sleep", {"ms": TASK * 1000}, columns=", slice", values=f", {number}")
    wait_until("those that leave run long tasks", lambda: s.db.value(
        "SELECT COUNT(*) FROM tasks WHERE handler = 'sleep' AND state = 2") == len(numbers), 10)
    began = time.monotonic()
    slices, took, run_again = stop(cluster, leaving)
    s.check(f"scaling in by {count} of {before} workers, the leader among them: their {slices} slices are "
            f"owned again within {BOUND} s, and run", f"{took:.2f} s, all seen to run after {run_again:.2f} s",
            took <= BOUND and run_again <= BOUND + SEEN)
    codes = [cluster.worker(name).exit_code(30) for name in leaving]
    ended = time.monotonic() - began
    s.check(f"meanwhile they finish what runs, for {TASK} s", f"exit codes {codes} after {ended:.1f} s",
            set(codes) == {0} and s.done_of("sleep") == len(numbers))
    s.check("no hold, no probation", plan(cluster), plan(cluster) == CALM)


def rolling_restart(s, cluster):
    longest, run_again, seen = 0.0, 0.0, []
    for name in cluster.live():
        _, took, ran = stop(cluster, [name])
        longest, run_again = max(longest, took), max(run_again, ran)
        code = cluster.worker(name).exit_code(30)
        cluster.start(name, "--concurrency", 4)
        wait_until(f"{name} is there again", lambda: cluster.tree.exists(f"{ROOT}/workers/{name}"), 10)
        time.sleep(0.3)  # for the leader to tell what it makes of it
        seen.append((code, plan(cluster)))
    s.check(f"restart of all by SIGTERM alone: each slice without an owner for at most {BOUND} s",
            f"{longest:.2f} s, all seen to run after {run_again:.2f} s", longest <= BOUND and run_again <= BOUND + SEEN)
    odd = [what for what in seen if what != (0, CALM)]
    s.check(f"exit code 0, no hold, no probation at each of {len(seen)} restarts", odd or "none other", not odd)


if __name__ == "__main__":
    main(run)
