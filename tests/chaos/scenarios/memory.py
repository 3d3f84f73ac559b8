"""The worker's memory while a great many tasks wait, and with the largest tasks that there may be."""
import time

from chaos.mariadb import numbers
from chaos.processes import wait_until
from chaos.scenario import main

PAD = 65_000  # with the rest of the params nearly the 64 KiB that are allowed


def run(s):
    waiting, large = s.size((200_000, 1_500), (1_000_000, 10_000))
    s.start_mariadb()
    s.apply_schema()
    for start in range(0, waiting, 50_000):
        s.db.rows(f"INSERT INTO tasks (handler, params) SELECT 'sleep', '{{\"ms\": 1000}}' FROM {numbers(50_000)}")
    # The lane of the large ones asks for as many ahead as a lane can.
    worker = s.start_worker(handlers={"large": {"uses": "sleep", "queue": 4_000}})
    wait_until("it works", lambda: s.done() > 0, 60)
    time.sleep(s.size(5, 20))
    peak = worker.memory_peak_mib()
    s.check(f"a worker at work while {waiting:,} tasks wait stays under 100 MB", f"{peak:.0f} MiB at its peak",
            peak < 95 and worker.runs())

    for start in range(0, large, 500):
        s.db.rows(f"INSERT INTO tasks (handler, params) SELECT 'large', "
                  f"CONCAT('{{\"ms\": 5, \"pad\": \"', REPEAT('x', {PAD}), '\"}}') FROM {numbers(500)}")
    wait_until("the large ones are done", lambda: s.done_of("large") == large or not worker.runs(), 120, 0.2)
    peak = worker.memory_peak_mib()
    s.check(f"and so it does with {large:,} tasks of 64 KiB each, of which its lane would claim 4,000 ahead",
            f"{peak:.0f} MiB at its peak", peak < 95 and worker.runs())


if __name__ == "__main__":
    main(run)
