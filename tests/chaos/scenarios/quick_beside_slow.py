"""One worker with a handler whose tasks take long and one whose tasks take a millisecond: the quick one's rate beside the
slow one is what it is alone, with lanes of their own and with one queue for all."""
from chaos.processes import wait_until
from chaos.scenario import main

SLOW_AT_ONCE = 4
HANDLERS = {"quick": {"uses": "sleep", "concurrency": 1}, "slow": {"uses": "sleep", "concurrency": SLOW_AT_ONCE}}
DONE = "SELECT COUNT(*) FROM tasks_done WHERE handler = 'quick' AND id > %s"
TOOK = "SELECT TIMESTAMPDIFF(MICROSECOND, %s, MAX(finished_at)) FROM tasks_done WHERE handler = 'quick' AND id > %s"


def rate_of_quick(s, count):
    """Tasks a second, from the moment when all are due until the last has ended."""
    last = s.db.value("SELECT COALESCE(MAX(id), 0) FROM tasks_done WHERE handler = 'quick'")
    due = s.db.value("SELECT UTC_TIMESTAMP(6) + INTERVAL 2 SECOND")
    s.insert("quick", {"ms": 1}, count, ", run_at", f", '{due}'")
    wait_until("the quick tasks are done", lambda: s.db.value(DONE, (last,)) == count, 180, 0.1)
    return count * 1e6 / int(s.db.value(TOOK, (due, last)))


def slow_at_work(s):
    return s.db.value("SELECT COUNT(*) FROM tasks WHERE handler = 'slow' AND state = 2 AND claimed_by <> ''")


def compare(s, how, engine):
    count, slow_ms = s.size(2_000, 20_000), s.size(3_000, 30_000)
    worker = s.start_worker("w1", engine={"lease": "3s", **engine}, handlers=HANDLERS)
    rate_of_quick(s, count // 4)  # its pace is known from here
    alone = rate_of_quick(s, count)
    s.insert("slow", {"ms": slow_ms}, 50 * SLOW_AT_ONCE)
    wait_until("the slow tasks have all the threads that they may have", lambda: slow_at_work(s) >= SLOW_AT_ONCE, 20)
    beside = rate_of_quick(s, count)
    left = s.db.value("SELECT COUNT(*) FROM tasks WHERE handler = 'slow'")
    s.check(f"{how}: the quick tasks' rate beside slow ones is within a tenth of what it is alone",
            f"{beside:.0f}/s beside {left} slow tasks, {alone:.0f}/s alone", left > 0 and beside >= 0.9 * alone)
    s.db.client("UPDATE tasks SET cancel = 1 WHERE handler = 'slow'")
    worker.terminate()


def run(s):
    s.start_mariadb()
    s.apply_schema("--slices", 16)
    compare(s, "lanes of their own", {})
    compare(s, "one queue for all", {"queues": {"by": "one"}})


if __name__ == "__main__":
    main(run)
