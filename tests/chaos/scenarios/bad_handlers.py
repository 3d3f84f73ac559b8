"""Handlers that throw, ignore their time limit, or return rubbish: contained, and the message says what."""
from chaos.processes import wait_until
from chaos.scenario import main

RUBBISH = ("none", "kind", "null", "small", "index")
STRANGE = ("time", "binary", "long")


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
    stuck = s.insert("ignore_limit", {"ms": 4000})
    beside = s.insert("ignore_limit", {"ms": 0})
    rubbish = {what: s.insert("rubbish", {"what": what}) for what in RUBBISH}
    odd = [s.insert("rubbish", {"what": what}) for what in STRANGE]
    neighbour = s.insert("noop", {})

    wait_until("the lane with the lost thread goes on while it is lost", lambda: s.db.value(
        "SELECT COUNT(*) FROM tasks_done WHERE id = %s", (beside,)), 3.5)
    s.check("a handler that ignores its limit: its lane goes on without that thread", "the next task is done", True)
    wait_until("all have ended", lambda: s.unfinished() == 0 or s.db.value(
        "SELECT COUNT(*) FROM tasks WHERE id NOT IN (%s, %s, %s)", odd) == 0, 30)

    s.check("an escaped exception is a failed attempt with its message", message(s, thrown),
            "the sky fell" in message(s, thrown))
    s.check("so is what is no std::exception", message(s, strange), "exception" in message(s, strange))
    s.check("the ignored limit is reported", message(s, stuck), "limit" in message(s, stuck).lower())
    for what, task in rubbish.items():
        s.check(f"rubbish outcome '{what}' is a failed attempt that says so", message(s, task), bool(message(s, task)))
    states = s.db.rows("SELECT id, state FROM tasks_all WHERE id IN (%s, %s, %s)", odd)
    s.check("outcomes with absurd times and texts are contained", states, len(states) == len(STRANGE)
            and all(state != 2 for _, state in states))
    done = s.db.value("SELECT COUNT(*) FROM tasks_done WHERE id = %s", (neighbour,))
    s.check("the worker lives and its other tasks are done", f"{worker.runs()}, {done}", worker.runs() and done == 1)


if __name__ == "__main__":
    main(run)
