"""A database that turns read-only, and one that dies and is replaced by its replica behind the same address, which had
not heard of the last moments: work goes on within 5 s of its return. Ids, attempts and keys of those moments are given
out again, a worker's life is unknown to it; what was lost is run again, once, and what was not is not."""
import collections
import json
import os
import time

from chaos.load import SteadyLoad
from chaos.processes import wait_until
from chaos.replica import ReplicatedPair
from chaos.scenario import main
from chaos.shards import EFFECTS, effect

RATE = 60
# Two types: an effect in the task's own transaction, and one outside of it.
HANDLERS = {"inside": {"uses": "sql"}, "outside": {"uses": "effect"}}


def recovered(s, back):
    """Seconds from a time of time.time() to the next task that is finished."""
    at = "SELECT UNIX_TIMESTAMP(MIN(finished_at)) FROM tasks_done WHERE finished_at > FROM_UNIXTIME(%s)"
    wait_until("work goes on", lambda: s.db.value(at, (back,)), 60, 0.05)
    return float(s.db.value(at, (back,))) - back


def check_recovered(s, what, back):
    took = recovered(s, back)
    s.check(f"{what}: work goes on within 5 s of its return", f"{took:.2f} s", took <= 5)
    began = time.monotonic()
    wait_until("the backlog is worked off", lambda: s.unfinished() < RATE / 2, 60, 0.1)
    print(f"        backlog worked off after {time.monotonic() - began:.1f} s more")


def read_only(s):
    s.db.client("SET GLOBAL read_only = 1")
    time.sleep(s.size(3, 10))
    began = s.db.value("SELECT COUNT(*) FROM tasks_done")
    time.sleep(1)
    s.check("while it is read-only nothing is done", s.done() - began, s.done() == began)
    s.db.client("SET GLOBAL read_only = 0")
    check_recovered(s, "read-only and back", time.time())


class LastMoments:
    """What the primary alone knows: a worker's life, tasks, attempts, keys."""

    HELD, KEYED = range(1_000_000, 1_000_020), range(2_000_000, 2_000_020)

    def __init__(self, s, pair, log):
        self._s = s
        self._log = log
        self._insert(self.HELD, state=3)
        wait_until("the replica has the held tasks", lambda: self._held(pair.replica) == len(self.HELD), 20, 0.1)
        pair.cut()
        pair.replica.add_user("w3")  # whoever runs servers sees to their users
        s.start_worker("w3", engine={"lease": "3s"}, handlers=HANDLERS, arguments=["--session-timeout", "3s"])
        self._release()
        self._insert(self.KEYED)
        ours = ", ".join(f"'k{n}'" for n in (*self.HELD, *self.KEYED))
        wait_until("tasks of the last moments are done, and the new worker works", lambda: s.db.value(
            f"SELECT COUNT(*) FROM tasks_done WHERE biz_key IN ({ours})") == 40 and self.claimed_by_w3(), 40, 0.1)

    def claimed_by_w3(self):
        return self._s.db.value("SELECT COUNT(*) FROM tasks_done WHERE claimed_by LIKE 'w3.%'")

    def again(self):
        """Producers and operators who know nothing of the failover do once more what the database has forgotten."""
        self._release()
        self._insert(self.KEYED)

    def of_freed_keys(self):
        """(rows, those that succeeded) of the keys that the failover has freed."""
        keys = ", ".join(f"'k{n}'" for n in self.KEYED)
        return self._s.db.rows("SELECT COUNT(*), CAST(SUM(state = 1) AS SIGNED) FROM tasks_all "
                               f"WHERE biz_key IN ({keys})")[0]

    def _held(self, server):
        return server.value("SELECT COUNT(*) FROM tasks WHERE state = 3")

    def _release(self):
        self._s.db.client("UPDATE tasks SET state = 0, run_at = UTC_TIMESTAMP(6) WHERE state = 3")

    # Ten of a kind in a row: every second task of the load is of the other kind, and must meet some of them where their
    # ids are given out again.
    def _insert(self, numbers, state=0):
        with self._s.db.connect() as connection, connection.cursor() as cursor:
            for n in numbers:
                handler, params = ("inside", effect(n, 5)) if n % 20 < 10 else ("outside", {"log": self._log, "ms": 5})
                cursor.execute("INSERT INTO tasks (handler, params, biz_key, state) VALUES (%s, %s, %s, %s)",
                               (handler, json.dumps(params), f"k{n}", state))


def fail_over(s, pair, log):
    """Returns the names of the tasks that the replica knew as done, and the last moments that it did not."""
    moments = LastMoments(s, pair, log)
    time.sleep(0.7)
    s.db.stop()
    time.sleep(s.size(2, 8))
    known = {f"main/tasks/{i}" for i, in pair.replica.rows("SELECT id FROM tasks_done")}
    lives = pair.replica.value("SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w3'")
    s.check("the replica has never heard of the newest worker", f"{lives} lives of it", lives == 0)
    pair.promote()
    check_recovered(s, "replaced by its replica", time.time())
    moments.again()
    wait_until("the newest worker lives anew and works", moments.claimed_by_w3, 30, 0.1)
    return known, moments


def check_repeats(s, known, began):
    """`began`: how often each (name, idempotency key) began to have its effect outside of the transaction."""
    lost = {start: count - 1 for start, count in began.items() if count > 1}
    s.check("what the replica had not heard of is run again", f"{sum(lost.values())} replays of {len(began)} effects",
            lost)
    s.check("at most once again", f"at most {max(began.values()) - 1} replays of one", max(began.values()) <= 2)
    wrong = [name for name, _ in lost if name in known]
    s.check("what it knew as done is not run again", f"{len(wrong)} of {len(known)}", known and not wrong)
    keys = collections.defaultdict(set)
    for name, key in began:
        keys[name].add(key)
    twice = [name for name, different in keys.items() if len(different) > 1]
    s.check("ids that are given out again have other idempotency keys", f"{len(twice)} such ids, their tasks ended",
            twice and s.unfinished() == 0)


def starts(path):
    """How often each task, by name and idempotency key, began to have its outer effect."""
    if not os.path.exists(path):
        return collections.Counter()
    with open(path) as file:
        return collections.Counter((name, key) for name, _, key in (line.split() for line in file))


def run(s):
    pair = ReplicatedPair(s)
    s.start_zookeeper()
    s.apply_schema()
    s.db.client(EFFECTS)
    wait_until("the replica follows", lambda: pair.replica.rows("SHOW TABLES LIKE 'effects'"), 20)
    log = s.path("effects.log")
    for worker_id in ("w1", "w2"):
        s.start_worker(worker_id, engine={"lease": "3s"}, handlers=HANDLERS, arguments=["--session-timeout", "3s"])
    load = SteadyLoad(lambda: s.db.connect(), RATE, lambda i: (
        ("inside", effect(i, 5)) if i % 2 else ("outside", {"log": log, "ms": 5})))
    wait_until("tasks are done", lambda: s.done() > RATE, 30, 0.1)
    read_only(s)
    twice = sum(count > 1 for count in starts(log).values())
    s.check("nothing ran twice by it", twice, twice == 0)
    known, moments = fail_over(s, pair, log)
    load.finish()
    s.wait_all_ended(60)
    check_repeats(s, known, starts(log))
    rows, succeeded = moments.of_freed_keys()
    s.check("keys that were free again are taken, and their tasks succeed", f"{succeeded} of {rows}",
            succeeded == rows == len(moments.KEYED))
    inside, rows = s.db.rows("SELECT COUNT(DISTINCT n), COUNT(*) FROM effects")[0]
    done = s.done_of("inside")
    s.check("effects in the tasks' own transactions are exact: one for each task that the replica has",
            f"{rows} effects, {inside} different, {done} tasks", rows == inside == done > 0)
    charged = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind = 'failed'")
    s.check("no attempt counts as failed: it was nobody's fault", f"{charged} attempts", charged == 0)


if __name__ == "__main__":
    main(run)
