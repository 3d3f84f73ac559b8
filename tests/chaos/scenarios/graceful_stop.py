"""SIGTERM in the middle of 10,000 tasks of 50 ms: exits within its deadline, nothing lost, nothing left running."""
import time

from chaos.processes import wait_until
from chaos.scenario import main

TASKS, DEADLINE = 10_000, 5


def run(s):
    s.start_mariadb()
    s.apply_schema()
    s.insert("sleep", {"ms": 50}, TASKS)
    configuration = {"engine": {"stop_timeout": f"{DEADLINE}s"}, "handlers": {"sleep": {"concurrency": 64}}}
    worker = s.start_worker(**configuration)
    wait_until("it is in the middle", lambda: s.done() > TASKS // 4, 60)
    began = time.monotonic()
    code = worker.terminate(DEADLINE + 30)
    seconds = time.monotonic() - began
    left, running, done = s.unfinished(), s.running(), s.done()
    s.check(f"exits within its deadline of {DEADLINE} s, code 0", f"{seconds:.2f} s, code {code}",
            seconds <= DEADLINE and code == 0)
    s.check(f"nothing lost of {TASKS}, and it was in the middle", f"{done} done, {left} waiting",
            done + left == TASKS and left > 0)
    s.check("nothing left running", f"{running} running", running == 0)
    s.check("no failed attempt is charged for the stop", f"{s.db.value('SELECT SUM(failures) FROM tasks')}",
            s.db.value("SELECT SUM(failures) FROM tasks") == 0)
    s.start_worker(**configuration)
    s.wait_all_ended(60)
    s.check("the next worker does the rest", f"{s.done()} done", s.done() == TASKS)


if __name__ == "__main__":
    main(run)
