"""The leader killed in the middle of a plan that takes several writes: whoever leads next carries out the rest, and no
slice moves that need not."""
import collections
import json
import time

from chaos.cluster import ROOT, Cluster
from chaos.moves import read_assignments
from chaos.processes import wait_until
from chaos.scenario import main

SLICES = 16_384  # names of 300 KB together; a write is 220 KB at most, with the pages that it touches


def term(cluster):
    return json.loads(cluster.tree.get(f"{ROOT}/epoch")[0])["epoch"]


def owners(cluster):
    return {slice_: name for name, (slices, _) in read_assignments(cluster.tree).items() for slice_ in slices}


def cut_short(cluster, leader):
    """Kills the leader once the first slices are seen to be the newcomer's; returns how many were at the end of it."""
    wait_until("the plan is under way", lambda: cluster.tree.exists(f"{ROOT}/assign/w3") and
               b"main/" in cluster.tree.get(f"{ROOT}/assign/w3")[0], 40, 0.0)
    cluster.worker(leader).kill()
    return len(read_assignments(cluster.tree)["w3"][0])


def run(s):
    cluster = Cluster(s, zookeepers=3, slices=SLICES)
    for name in ("c1", "c2"):  # they work on nothing, so that nothing is lost with them
        cluster.start_coordinator(name)
    leader = cluster.wait_leader()
    for name in ("w1", "w2"):
        cluster.start(name, "--no-coordinate")
    cluster.wait_balanced(("w1", "w2"), 60)
    before, led = owners(cluster), term(cluster)
    time.sleep(1)  # the log of moves looks twice a second: those of the first balance are in it by now
    began = time.monotonic()

    cluster.start("w3", "--no-coordinate")
    moved = cut_short(cluster, leader)
    third = cluster.slices // 3
    s.check("the leader is killed when some of the slices have moved, and not all", f"{moved} of {third}",
            0 < moved < third)
    wait_until("another leads", lambda: cluster.leader() not in (None, leader), 30, 0.05)
    cluster.wait_balanced(("w1", "w2", "w3"), 60)
    after = owners(cluster)
    changed = [slice_ for slice_, owner in after.items() if before[slice_] != owner]
    s.check(f"the next one carries it out: of {cluster.slices} slices a third moves, to the newcomer alone",
            f"{len(changed)} moves, to {sorted({after[slice_] for slice_ in changed})}, term {term(cluster)} after {led}",
            len(changed) == third and {after[slice_] for slice_ in changed} == {"w3"} and term(cluster) > led)
    cluster.moves.catch_up()
    moves = collections.Counter(move.slice for move in cluster.moves.made(began))
    again = [slice_ for slice_, times in moves.items() if times > 1]
    s.check("none of them comes back, or goes twice", f"{len(again)} did", not again and set(moves) == set(changed))


if __name__ == "__main__":
    main(run)
