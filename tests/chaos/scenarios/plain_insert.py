"""A row by the plain mariadb client, from a session in another time zone, starts within the poll bound + 20 ms."""
import random
import time

from chaos.host_stalls import HostStalls
from chaos.processes import wait_until
from chaos.scenario import main

POLL_MS, GRACE_MS = 200, 20
# The handler's first line writes the time by the same clock that gave the task its run_at.
INSERT = ("SET time_zone = '+05:30'; INSERT INTO tasks (handler, params) VALUES "
          "('sql', '{\"sql\": [\"INSERT INTO test_starts (at) VALUES (UTC_TIMESTAMP(6))\"]}');")


def insert(s, worker, wait=0.0):
    before = s.done()
    s.db.client(INSERT)
    wait_until("the task is done", lambda: s.done() > before or not worker.runs(), 10, 0.005)
    time.sleep(wait)


def starts(s, worker, count):
    """Of `count` rows, one by one: what was measured, and whether each started in time."""
    last = s.db.value("SELECT MAX(id) FROM tasks_done")
    with HostStalls(s.path(f"stalls-{last}"), worker.pid) as host:
        for _ in range(count):
            insert(s, worker, random.uniform(0, POLL_MS / 1000))  # another place in the poll's interval each time
    spans = s.db.rows(
        "SELECT CAST(UNIX_TIMESTAMP(t.run_at) AS DOUBLE), CAST(UNIX_TIMESTAMP(s.at) AS DOUBLE) FROM tasks_done t "
        "JOIN test_starts s USING (id) WHERE t.id > %s", (last,))
    waits = sorted((at - due) * 1000 for due, at in spans)
    # A build server does other things too: in the short form, what the host itself held up is taken off.
    stalls = [host.between(due, at) * 1000 if not s.full else 0 for due, at in spans]
    late = sum((at - due) * 1000 - stall > POLL_MS + GRACE_MS for (due, at), stall in zip(spans, stalls))
    excused = sum(wait > POLL_MS + GRACE_MS for wait in waits) - late
    return (f"{late} late, {excused} excused, median {waits[count // 2]:.0f} ms, worst {waits[-1]:.0f} ms, "
            f"the host stood still for {max(stalls):.0f} ms at most",
            len(waits) == count and waits[0] >= 0 and late == 0 and excused <= count // 5)


def run(s):
    s.start_mariadb()
    s.apply_schema()
    s.db.client("CREATE TABLE test_starts (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(6))")
    worker = s.start_worker()
    insert(s, worker)  # waits for the worker's start, and is not measured
    count = s.size(20, 60)
    s.check_time(f"{count} plain inserts from a session at +05:30: each started within the poll bound (200 ms) + 20 ms"
                 + ("" if s.full else ", less what the host stood still, in one of five at most"),
                 lambda: starts(s, worker, count))
    s.check("and done", f"{s.done()} succeeded", s.done() == s.db.value("SELECT COUNT(*) FROM test_starts") > count)


if __name__ == "__main__":
    main(run)
