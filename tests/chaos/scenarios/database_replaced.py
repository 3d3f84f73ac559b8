"""A database that turns read-only, and one that dies and is replaced by its replica behind the same address: work goes on
within 5 s of its return; what the replica had not heard of is run again, and counted."""
import collections
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


def fail_over(s, pair):
    """The replica hears nothing of the primary's last moments."""
    pair.cut()
    time.sleep(0.7)
    s.db.stop()
    time.sleep(s.size(2, 8))
    pair.promote()
    check_recovered(s, "replaced by its replica", time.time())


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
    fail_over(s, pair)
    load.finish()
    s.wait_all_ended(60)
    again = starts(log)
    replays = sum(count - 1 for count in again.values())
    s.check("what the replica had not heard of is run again", f"{replays} replays of {len(again)} effects outside",
            replays > 0)
    inside, rows = s.db.rows("SELECT COUNT(DISTINCT n), COUNT(*) FROM effects")[0]
    done = s.done_of("inside")
    s.check("effects in the tasks' own transactions are exact: one for each task that the replica has",
            f"{rows} effects, {inside} different, {done} tasks", rows == inside == done > 0)
    charged = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind = 'failed'")
    s.check("no attempt counts as failed: it was nobody's fault", f"{charged} attempts", charged == 0)


if __name__ == "__main__":
    main(run)
