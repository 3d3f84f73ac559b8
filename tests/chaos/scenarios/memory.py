"""The worker's memory while a great many tasks wait."""
import time

from chaos.processes import wait_until
from chaos.scenario import main


def run(s):
    waiting = s.size(200_000, 1_000_000)
    s.start_mariadb()
    s.apply_schema()
    for start in range(0, waiting, 50_000):
        s.db.rows(f"INSERT INTO tasks (handler, params) SELECT 'sleep', '{{\"ms\": 1000}}' FROM seq_1_to_50000")
    worker = s.start_worker()
    wait_until("it works", lambda: s.done() > 0, 60)
    time.sleep(s.size(5, 20))
    peak = worker.memory_peak_mib()
    s.check(f"a worker at work while {waiting:,} tasks wait stays under 100 MB", f"{peak:.0f} MiB at its peak",
            peak < 95 and worker.runs())


if __name__ == "__main__":
    main(run)
