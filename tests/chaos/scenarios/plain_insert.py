"""A row by the plain mariadb client, from a session in another time zone, starts within the poll bound + 20 ms."""
import random
import time

from chaos.load import NotedProgram
from chaos.processes import wait_until
from chaos.scenario import main

POLL, GRACE = 0.200, 0.020


def run(s):
    s.start_mariadb()
    s.apply_schema()
    program = NotedProgram(s.folder, "note", 0)
    s.start_worker(handlers={"note": program.handler()})
    count = s.size(10, 40)
    for number in range(count + 1):  # the first one waits for the start of the worker and is not measured
        s.db.client("SET time_zone = '+05:30'; INSERT INTO tasks (handler, params) VALUES ('note', '{}');")
        wait_until("the task has started", lambda: len(program.starts()) > number, 10, 0.005)
        wait_until("the task is done", lambda: s.done() > number, 10)
        time.sleep(random.uniform(0, POLL))  # another place in the poll's interval each time
    due = [float(row[0]) for row in s.db.rows("SELECT UNIX_TIMESTAMP(run_at) FROM tasks_done ORDER BY id")]
    started = sorted(at for at, _ in program.starts())
    waits = sorted(start - at for start, at in zip(started[1:], due[1:]))
    worst = waits[-1]
    s.check(f"{count} plain inserts from a session at +05:30, each started within the poll bound (200 ms) + 20 ms",
            f"median {waits[len(waits) // 2] * 1000:.0f} ms, worst {worst * 1000:.0f} ms, a fork included",
            0 <= waits[0] and worst <= POLL + GRACE)
    s.check("and done", f"{s.done()} succeeded", s.done() == count + 1)


if __name__ == "__main__":
    main(run)
