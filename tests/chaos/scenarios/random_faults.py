"""Workers and leaders killed and stopped at random, in any order and side by side, at half of what they can do; then the
database, time and again. Nothing is lost, the sums are exact, and every attempt has one end. A kill counts only if the
worker had rows running at it. On the server that MILLRACE_TEST_MYSQL_URL names, if it does (without its kills)."""
import os
import random
import time

from chaos.cluster import Cluster
from chaos.offered import OfferedLoad, capacity
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3", "w4")
LEAST_OFFERED = 0.9  # of what is to come in
FEWEST = 2  # that are left alone by the faults under way
KINDS = ("kill", "kill", "kill the leader", "stop")
# How many rows run, up to 250: they are at the table's beginning, and all of a backlog is not read for it.
RUNS = ("SELECT COUNT(*) FROM (SELECT 1 FROM tasks STRAIGHT_JOIN millrace_incarnations i ON i.number = claimed_by "
        "WHERE state = 2 AND worker LIKE %s LIMIT 250) AS seen")


class Faults:
    """Does harm, one fault after another, and undoes it after a while."""

    def __init__(self, s, cluster, chance):
        self._s = s
        self._cluster = cluster
        self._chance = chance
        self._undo = {}  # worker → (when, what)
        self.done = {kind: 0 for kind in KINDS}
        self.hit = []  # the rows that ran at each kill
        self.spared = 0  # that ran none when they were to be killed

    def step(self):
        """One more, if so many workers may be hit at once and the one in turn is at work."""
        self.undo()
        well = [name for name in WORKERS if name not in self._undo]
        if len(well) <= FEWEST:
            return
        kind = self._chance.choice(KINDS)
        victim = self._cluster.leader() if kind == "kill the leader" else self._chance.choice(well)
        if victim in well and (self._stop(victim) if kind == "stop" else self._kill(victim)):
            self.done[kind] += 1

    def _stop(self, victim):
        worker = self._cluster.worker(victim)
        worker.pause()
        self._later(victim, 9.0, worker.resume)
        return True

    def _kill(self, victim):
        """It stands still while its rows are counted, so that they are those that run when it dies. One that happens to
        have none at that moment is looked at again, and left alone if it owns nothing: it died too often."""
        worker = self._cluster.worker(victim)
        until = time.monotonic() + 2
        while victim in self._cluster.owned() and time.monotonic() < until:
            worker.pause()
            rows = self._s.db.value(RUNS, (victim,))
            if rows:
                worker.kill()
                self.hit.append(rows)
                self._later(victim, 6.0, lambda: self._cluster.start(victim))
                return True
            worker.resume()
            time.sleep(self._chance.uniform(0.005, 0.02))
        self.spared += 1
        return False

    def undo(self, everything=False):
        for name, (when, what) in list(self._undo.items()):
            if everything or time.monotonic() >= when:
                del self._undo[name]
                what()

    def _later(self, name, longest, what):
        self._undo[name] = time.monotonic() + self._chance.uniform(0.2, longest), what


def kill_workers(s, cluster, load, chance):
    kills, minutes = s.size(4, 60), s.size(1, 5)
    faults = Faults(s, cluster, chance)
    began, came = time.monotonic(), load.count
    while len(faults.hit) < kills and time.monotonic() < began + 60 * minutes:
        faults.step()
        time.sleep(chance.uniform(0.2, s.size(0.5, 2.0)))
    took = time.monotonic() - began
    came = load.count - came
    faults.undo(everything=True)
    cluster.wait_owned(60)
    s.check(f"{kills} kills within {minutes} min, each of a worker whose rows run, at {load.rate:.0f} payments a second",
            f"{len(faults.hit)} in {took:.0f} s, {min(faults.hit, default=0)} to {max(faults.hit, default=0)} rows ran; "
            f"{faults.done}, {faults.spared} spared", len(faults.hit) == kills)
    s.check("meanwhile the payments came in as they were to", f"{came / took:.0f} of {load.rate:.0f} a second",
            came >= LEAST_OFFERED * load.rate * took)
    return sum(faults.hit)


def kill_database(s, load, chance):
    """Each time rows run, and work goes on by itself."""
    kills = s.size(1, 10)
    running = []
    for _ in range(kills):
        running.append(wait_until("tasks run", lambda: s.db.value(RUNS, ("%",)), 30, 0.005))
        s.db.stop()
        time.sleep(chance.uniform(0.2, 3.0))
        s.db.start()
        before = s.succeeded()
        wait_until("work goes on", lambda: s.succeeded() > before + load.rate / 2, 60, 0.1)
        time.sleep(chance.uniform(0.2, s.size(1.0, 5.0)))
    s.check(f"{kills} kills of the database, each while rows run: work goes on by itself",
            f"{min(running)} to {max(running)} rows ran", min(running) > 0)


def run(s):
    seed = int(os.environ.get("MILLRACE_TEST_SEED", random.randrange(1 << 32)))
    print(f"seed {seed} (MILLRACE_TEST_SEED)")
    chance = random.Random(seed)
    s.start_given_or_mariadb()
    cluster = Cluster(s, zookeepers=3)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    load = OfferedLoad(s.db, capacity(s, 100_000) / 2 if s.full else 1_000)
    wait_until("payments are awarded", s.done, 30)
    interrupted = kill_workers(s, cluster, load, chance)
    if s.db.private:
        kill_database(s, load, chance)
    load.check_all_awarded(s, s.size(120, 300))
    again = s.db.value("SELECT CAST(SUM(attempt) AS SIGNED) - COUNT(*) FROM tasks_done")
    s.check(f"what the kills interrupted, {interrupted} rows or so, was run again", f"{again} second attempts",
            again >= interrupted / 2)


if __name__ == "__main__":
    main(run)
