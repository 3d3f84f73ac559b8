"""Handlers that throw, ignore their time limit, or return rubbish: contained, and the message says what."""
from chaos.processes import wait_until
from chaos.scenario import main

# What the message of each says, beside that the outcome is not usable.
RUBBISH = {"none": "gave none", "kind": "no kind 77", "null": "null pointer", "small": "too small", "index": "gave none",
           "time": "is impossible"}
IGNORES_MS = 4000
STRANGE = ("binary", "long")


def message(s, task):
    rows = s.db.rows("SELECT last_error FROM tasks_failed WHERE id = %s", (task,))
    return rows[0][0] if rows else ""


def run(s):
    s.start_mariadb()
    s.apply_schema()
    once = {"retry": {"max_failures": 1}}
    worker = s.start_worker(handlers={
        "throw": once, "rubbish": once, "ignore_limit": {**once, "timeout": "300ms", "concurrency": 1}})

    thrown = s.insert("throw", {"what": "the sky fell"})
    strange = s.insert("throw", {"strange": True})
    stuck = s.insert("ignore_limit", {"ms": IGNORES_MS})
    beside = s.insert("ignore_limit", {"ms": 0})
    rubbish = {what: s.insert("rubbish", {"what": what}) for what in RUBBISH}
    odd = [s.insert("rubbish", {"what": what}) for what in STRANGE]
    neighbour = s.insert("noop", {})

    wait_until("all have ended", lambda: s.unfinished() == 0, 30)

    s.check("an escaped exception is a failed attempt with its message", message(s, thrown),
            "the sky fell" in message(s, thrown))
    s.check("so is what is no std::exception", message(s, strange), "exception" in message(s, strange))
    s.check("the ignored limit is reported", message(s, stuck), "limit" in message(s, stuck).lower())
    waited = s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, f.claimed_at, d.finished_at) / 1e3 FROM tasks_done d "
                        "JOIN tasks_failed f ON f.id = %s WHERE d.id = %s", (stuck, beside))
    s.check("its lane goes on without that thread: the next task is done while it is lost", f"after {waited:.0f} ms",
            waited < IGNORES_MS)
    for what, task in rubbish.items():
        says = message(s, task)
        s.check(f"rubbish outcome '{what}' is a failed attempt that says so", says,
                "outcome is not usable" in says and RUBBISH[what] in says)
    done = s.db.value("SELECT COUNT(*) FROM tasks_done WHERE state = 1 AND id IN (%s, %s)", odd)
    s.check("tasks with results of any bytes and of any length are done", done, done == len(STRANGE))
    done = s.db.value("SELECT COUNT(*) FROM tasks_done WHERE id = %s", (neighbour,))
    s.check("the worker lives and its other tasks are done", f"{worker.runs()}, {done}", worker.runs() and done == 1)


if __name__ == "__main__":
    main(run)
