"""Threads that never come back from a handler: the worker works on beside as many as may be lost; with one more it ends,
in good order and with the exit code that has it replaced."""
from chaos.processes import wait_until
from chaos.scenario import main

MAX_LOST = 2
FOR_EVER = {"ms": 24 * 3_600_000}
ONCE = {"retry": {"max_failures": 1}}
SETTINGS = {"engine": {"max_lost_threads": MAX_LOST},
            "handlers": {"ignore_limit": {**ONCE, "timeout": "300ms", "concurrency": MAX_LOST + 1}}}


def run(s):
    s.start_mariadb()
    s.apply_schema()
    worker = s.start_worker(**SETTINGS)
    s.insert("ignore_limit", FOR_EVER, MAX_LOST)
    wait_until("as many are lost as may be", lambda: s.failed() == MAX_LOST, 20)
    s.insert("noop", {})
    wait_until("the worker works on", lambda: s.done_of("noop") == 1, 10)

    s.insert("sleep", {"ms": 3000})
    wait_until("another task runs", lambda: s.running() == 1, 10)
    s.insert("ignore_limit", FOR_EVER)
    code = worker.exit_code(40)
    s.check("with one more it ends, to be started again", f"exit code {code}", code == 1)
    says = [line for line in worker.output().splitlines() if line.startswith("millrace: ")][-1:]
    s.check("and says why", says, says and "too many threads are lost" in says[0])
    s.check("each of these attempts has failed, once", s.failed(), s.failed() == MAX_LOST + 1)
    s.check("what ran beside them has come to its end before", f"{s.done_of('sleep')} done, {s.running()} running",
            (s.done_of("sleep"), s.running()) == (1, 0))
    lost = s.db.value("SELECT COUNT(*) FROM millrace_audit WHERE action IN ('worker_lost', 'crash')")
    s.check("nobody is told of a worker that was lost, or of a crash", lost, lost == 0)

    s.insert("noop", {})
    s.start_worker(**SETTINGS)
    wait_until("the next one works at once", lambda: s.done_of("noop") == 2, 5)


if __name__ == "__main__":
    main(run)
