"""kill -9 of the worker at random moments under load, restarted each time: every payment awarded exactly once."""
import os
import random
import time

from chaos.load import PacedPayments
from chaos.processes import wait_until
from chaos.scenario import TOTAL_PAYMENTS, main


def wait_for_work(s, db):
    """Until the worker that was just started has finished something, so that the kill hits a worker at work."""
    before = s.done()
    wait_until("the new worker finishes tasks", lambda: s.done() > before, 30)


def caught(s, worker):
    """The tasks that run while it stands still; where there are none it goes on."""
    worker.pause()
    time.sleep(0.05)  # what it has sent is carried out
    tasks = [row[0] for row in s.db.rows("SELECT id FROM tasks WHERE state = 2")]
    if not tasks:
        worker.resume()
    return tasks


def run(s):
    seed = int(os.environ.get("MILLRACE_TEST_SEED", random.randrange(1 << 32)))
    print(f"seed {seed} (MILLRACE_TEST_SEED)")
    chance = random.Random(seed)
    lease = s.size(3, 10)
    kills = s.size(4, 20)
    engine = {"lease": f"{lease}s"}
    s.start_mariadb()
    s.apply_schema()
    load = PacedPayments(s.db, seconds=s.size(14, 45))
    worker = s.start_worker(engine=engine)
    for _ in range(kills - 1):
        wait_for_work(s, worker)
        time.sleep(chance.uniform(0.1, 1.5))
        worker.kill()
        worker = s.start_worker(engine=engine)
    wait_for_work(s, worker)
    orphans = wait_until("tasks run at the last kill", lambda: caught(s, worker), 20, 0.005)
    worker.kill()
    last_kill = time.monotonic()
    # The last successor is another host's: it can't see the flight recorder and must wait for the lease.
    s.start_worker("w2", engine=engine)
    marks = ", ".join(["%s"] * len(orphans))
    wait_until("the rescued tasks end", lambda: not s.db.value(
        f"SELECT COUNT(*) FROM tasks WHERE id IN ({marks})", orphans), lease + 30)
    rescued = time.monotonic() - last_kill
    s.check(f"from the last kill to the end of the rescued tasks: at most lease ({lease} s) + 5 s",
            f"{rescued:.1f} s for {len(orphans)} tasks", rescued <= lease + 5)
    load.finish()
    s.wait_all_ended(60)

    s.check(f"{kills} kills: every task finished", f"{s.done()} succeeded, {s.failed()} failed",
            (s.done(), s.failed()) == (TOTAL_PAYMENTS, 0))
    s.check_points()
    again = s.db.value("SELECT CAST(SUM(attempt) AS SIGNED) - COUNT(*) FROM tasks_done")
    noted = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind IN ('crashed', 'rescued')")
    s.check("the re-runs are counted", f"{again} second attempts, {noted} rescues and crashes noted", again > 0)


if __name__ == "__main__":
    main(run)
