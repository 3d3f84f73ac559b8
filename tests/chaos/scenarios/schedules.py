"""Schedules, with the leader killed around firing times: each firing is one task, none is missing, whatever it is moved to
another shard for meanwhile. A fixed delay counts from the end of its last task, what would overlap is skipped, a pause is a
pause, an outage is caught up as the schedule says; and without ZooKeeper a worker fires."""
import datetime
import json
import random
import time

from chaos.cluster import ROOT
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import Shard, configure

SESSION = 3
PERIOD = 1  # seconds, of what is counted
SLEEP_MS = 700
CANDIDATES = ("c1", "c2")


class Leaders:
    """Two coordinators, of which one leads; whoever is killed comes back."""

    def __init__(self, s):
        self._s = s
        self._tree = s.zookeeper.client()
        self._processes = {}
        self.killed = 0  # the last term whose leader was
        self.kills = 0
        for name in CANDIDATES:
            self.start(name)

    def start(self, name):
        self._processes[name] = self._s.start_process(
            f"coordinator {name}", "coordinator", "--id", name, "--session-timeout", f"{SESSION}s")

    def term(self):
        """(number, id) of the term that somebody has begun."""
        epoch = json.loads(self._tree.get(f"{ROOT}/epoch")[0])
        return epoch.get("epoch", 0), epoch.get("leader")

    def wait_for_a_term(self):
        """Until somebody leads who has not been killed; returns who. What a killed one has left in the tree is there
        for as long as its session, and a new process has its name."""
        return wait_until("somebody leads", lambda: self.term()[0] > self.killed and self.term()[1], 30, 0.02)

    def kill(self):
        """kill -9 of whoever leads; a new process of its name stands again."""
        leader = self.wait_for_a_term()
        self.killed = self.term()[0]
        self._processes[leader].kill()
        self.kills += 1
        self.start(leader)

    def kill_all(self):
        self.killed = self.term()[0]
        for process in self._processes.values():
            process.kill()


def firings(shard, name):
    """The firings of a schedule, as they stand in the shard's task tables: [(time, how many tasks)], sorted."""
    prefix = f"schedule/{name}/"
    rows = shard.rows("SELECT CAST(biz_key AS CHAR), COUNT(*) FROM tasks_all WHERE biz_key LIKE %s GROUP BY biz_key",
                      (prefix + "%",))
    return sorted((datetime.datetime.fromisoformat(key[len(prefix):].replace("Z", "+00:00")), count)
                  for key, count in rows)


def check_each_once(s, name, shards, seconds, complete=True):
    """Every time of its grid between its first firing and its last has one task, in one of the shards."""
    found = sorted(firing for shard in shards for firing in firings(shard, name))
    times = [at for at, _ in found]
    doubled = len(times) - len(set(times)) + sum(count - 1 for _, count in found)
    gaps = [round((b - a).total_seconds(), 3) for a, b in zip(times, times[1:])]
    missing = sum(round(gap / seconds) - 1 for gap in gaps)
    where = " and ".join(str(len(firings(shard, name))) for shard in shards)
    s.check(f"{name}: each firing is one task" + (", and none is missing" if complete else ""),
            f"{where} firings, {doubled} doubled, {missing} missing",
            len(times) > 1 and doubled == 0 and (missing == 0 or not complete))
    return times


def pairs(shard, handler):
    """(made, finished) of its tasks in the finished pool, by id."""
    return shard.rows("SELECT UNIX_TIMESTAMP(created_at), UNIX_TIMESTAMP(finished_at) FROM tasks_done "
                      "WHERE handler = %s ORDER BY id", (handler,))


def wait_around_a_firing(shard, rng):
    """Until shortly before or after a firing of `each`, by its row."""
    ahead = shard.value("SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), next_at) / 1e6 FROM millrace_schedules "
                        "WHERE name = 'each'")
    time.sleep(max(0.0, float(ahead) + rng.uniform(-0.05, 0.05)))


def set_schedule(s, key, value):
    s.millrace("config", "set", f"schedules.{key}", json.dumps(value), "--offline", "--yes")


def outage(s, leaders, shard, seconds):
    """Nobody leads for so long."""
    leaders.kill_all()
    time.sleep(seconds)
    for name in CANDIDATES:
        leaders.start(name)
    leaders.wait_for_a_term()
    wait_until("what was missed is made up", lambda: caught_up(shard), 30, 0.2)


def caught_up(shard):
    return not shard.value("SELECT COUNT(*) FROM millrace_schedules WHERE next_at < UTC_TIMESTAMP(6) - INTERVAL 2 SECOND")


def check_pause(s, a):
    set_schedule(s, "held.paused", True)
    wait_until("the pause is in the row", lambda: a.value("SELECT paused FROM millrace_schedules WHERE name='held'"), 10)
    before = len(firings(a, "held"))
    time.sleep(3)
    paused = len(firings(a, "held")) - before
    set_schedule(s, "held.paused", False)
    wait_until("it goes on", lambda: len(firings(a, "held")) > before + 1, 10)
    lapsed = int(a.value("SELECT lapsed FROM millrace_schedules WHERE name = 'held'"))
    s.check("paused: nothing fires, and what came due lapses", f"{paused} fired, {lapsed} lapsed",
            paused == 0 and lapsed >= 2)


def check_without_zookeeper(s, a):
    """The worker has been cut off for longer than a session: it fires."""
    s.zookeeper.stop()
    time.sleep(SESSION + 3)
    before = len(firings(a, "each"))
    time.sleep(3)
    fired = len(firings(a, "each")) - before
    s.check("without ZooKeeper, and so without a leader, the worker fires", f"{fired} in 3 s", fired >= 2)
    s.zookeeper.start()
    s.zookeeper.wait_serving()


def run(s):
    rng = random.Random(17)
    server = s.start_server("mariadb", databases=("a", "b"))
    a, b = Shard("a", server), Shard("b", server)
    s.start_zookeeper()
    s.millrace("cluster", "status")  # makes the cluster's nodes
    configure(s, [a, b])
    s.millrace("schema", "apply", "--slices", 16)
    for shard in (a, b):
        shard.record_transitions(s)
    leaders = Leaders(s)
    s.start_worker("w1", engine={"lease": "3s"}, handlers={
        **{type: {"uses": "sleep", "concurrency": 4} for type in ("rest", "skip")}, "noop": {"concurrency": 4}},
        arguments=["--session-timeout", f"{SESSION}s", "--no-coordinate"])
    once = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=12)
    every = {"every": f"{PERIOD}s", "handler": "noop", "catch_up": "all", "shard": "a"}
    s.millrace("config", "set", "schedules", json.dumps({
        "each": every, "moved": every, "held": {**every, "catch_up": "one"}, "one": {**every, "catch_up": "one"},
        "once": {"at": once.isoformat(timespec="seconds"), "handler": "noop", "shard": "a"},
        "rest": {"after": "1s", "handler": "rest", "params": {"ms": SLEEP_MS}, "shard": "a"},
        "skip": {"every": "1s", "overlap": "skip", "handler": "skip", "params": {"ms": 2500}, "shard": "a"},
    }), "--yes")
    wait_until("all have begun", lambda: a.value("SELECT COUNT(*) FROM millrace_schedules") == 7, 30, 0.1)
    homes = ["a", "b"]
    for kill in range(s.size(3, 20)):
        leaders.wait_for_a_term()
        wait_until("what was missed is made up", lambda: caught_up(a), 30, 0.1)
        if kill % 2 == 0:
            homes.reverse()
            set_schedule(s, "moved.shard", homes[0])
            time.sleep(rng.uniform(0, 1.5))
        wait_around_a_firing(a, rng)
        leaders.kill()
    leaders.wait_for_a_term()
    s.check(f"the leader was killed {s.size(3, 20)} times around firing times, and another led each time",
            f"{leaders.kills} kills, term {leaders.term()[0]}", leaders.term()[0] > leaders.kills == s.size(3, 20))
    check_pause(s, a)
    away = s.size(5, 70)
    outage(s, leaders, a, away)
    check_without_zookeeper(s, a)
    set_schedule(s, "skip.paused", True)
    time.sleep(1)
    wait_until("the moved one has arrived", lambda: len(a.rows("SELECT 1 FROM millrace_schedules WHERE name='moved'"))
               + len(b.rows("SELECT 1 FROM millrace_schedules WHERE name='moved'")) == 1, 30)
    so_far = len(firings(a, "moved") + firings(b, "moved"))
    wait_until("the moved one goes on", lambda: len(firings(a, "moved") + firings(b, "moved")) > so_far, 10 * PERIOD)
    check_each_once(s, "each", [a], PERIOD)
    check_each_once(s, "moved", [a, b], PERIOD)
    s.check("the moved one has fired in both shards", [len(firings(shard, "moved")) for shard in (a, b)],
            all(firings(shard, "moved") for shard in (a, b)))
    once_for_all = check_each_once(s, "one", [a], PERIOD, complete=False)
    longest = max((b - a).total_seconds() for a, b in zip(once_for_all, once_for_all[1:]))
    s.check("with catch_up one an outage is one firing", f"{longest:.0f} s between two", longest > away / 2)
    check_each_once(s, "held", [a], PERIOD, complete=False)
    s.check("a one-shot fires once, at its time", [f"{at.isoformat()} {count}" for at, count in firings(a, "once")],
            [count for _, count in firings(a, "once")] == [1])
    rests = pairs(a, "rest")
    least = min(float(made - ended) for (_, ended), (made, _) in zip(rests, rests[1:]))
    s.check("a fixed delay of 1 s counts from the end of the last task", f"{least:.3f} s at least, of {len(rests)}",
            least >= 1 and len(rests) > 3)
    skips = pairs(a, "skip")
    overlaps = sum(made < ended for (_, ended), (made, _) in zip(skips, skips[1:]))
    s.check("overlap: skip: no two of its tasks are in work at once", f"{overlaps} of {len(skips)}",
            overlaps == 0 and len(skips) > 2)


if __name__ == "__main__":
    main(run)
