"""Workers and leaders killed and stopped at random, in any order and side by side, under load: nothing is lost, the
sums are exact, and no attempt is settled twice."""
import os
import random
import time

from chaos.cluster import Cluster
from chaos.offered import OfferedLoad
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3", "w4")
FEWEST = 2  # that are left alone by the faults under way


class Faults:
    """Does harm, one fault after another, and undoes it after a while."""

    def __init__(self, cluster, chance):
        self._cluster = cluster
        self._chance = chance
        self._undo = {}  # worker → (when, what)
        self.done = {"kill": 0, "kill the leader": 0, "stop": 0}

    def total(self):
        return sum(self.done.values())

    def step(self):
        """One more, if so many workers may be hit at once."""
        self.undo()
        well = [name for name in WORKERS if name not in self._undo]
        if len(well) <= FEWEST:
            return
        kind = self._chance.choice(list(self.done))
        victim = self._cluster.leader() if kind == "kill the leader" else self._chance.choice(well)
        if victim not in well:
            return
        self.done[kind] += 1
        worker = self._cluster.worker(victim)
        if kind == "stop":
            worker.pause()
            self._later(victim, 9.0, worker.resume)
        else:
            worker.kill()
            self._later(victim, 6.0, lambda: self._cluster.start(victim))

    def undo(self, everything=False):
        for name, (when, what) in list(self._undo.items()):
            if everything or time.monotonic() >= when:
                del self._undo[name]
                what()

    def _later(self, name, longest, what):
        self._undo[name] = time.monotonic() + self._chance.uniform(0.2, longest), what


def run(s):
    seed = int(os.environ.get("MILLRACE_TEST_SEED", random.randrange(1 << 32)))
    print(f"seed {seed} (MILLRACE_TEST_SEED)")
    chance = random.Random(seed)
    wanted, tasks, rate = s.size(6, 100), s.size(5_000, 100_000), s.size(400, 250)
    cluster = Cluster(s, zookeepers=3)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    load = OfferedLoad(s.db, rate, tasks)
    faults = Faults(cluster, chance)
    while faults.total() < wanted:
        faults.step()
        time.sleep(chance.uniform(0.2, 3.0))
    faults.undo(everything=True)
    during = load.count
    load.wait(tasks / rate + 60)
    cluster.wait_owned(60)
    s.check(f"{wanted} random faults while {tasks} payments come in", f"{faults.done}, {during} came in meanwhile",
            faults.total() == wanted)
    load.check_all_awarded(s, 120)
    if not s.full:
        return  # so few faults may fall between the batches
    again = s.db.value("SELECT CAST(SUM(attempt) AS SIGNED) - COUNT(*) FROM tasks_done")
    s.check("what the faults interrupted was run again", f"{again} second attempts", again > 0)


if __name__ == "__main__":
    main(run)
