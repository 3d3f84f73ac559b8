"""Tasks that always fail, due first, beside ten times as many good ones of the same type: they hold nothing up,
climb the ladder, end in the failed pool with the reason, and succeed once the cause is gone."""
import os
import pathlib

from chaos.processes import wait_until
from chaos.scenario import main

# Paced by its sleep and not by the host's cores, so that two rounds of it can be compared.
TAKES_MS = 10


def seconds_for_good(s, first, last):
    """From the first claim of this round to the last good task's end."""
    return float(s.db.value(
        "SELECT TIMESTAMPDIFF(MICROSECOND, MIN(claimed_at), MAX(finished_at)) FROM tasks_done WHERE id BETWEEN %s AND %s",
        (first, last))) / 1e6


def run(s):
    bad, good = s.size((300, 3_000), (1_000, 10_000))
    cause = s.path("cause")
    pathlib.Path(cause).touch()
    bad_params = {"ms": TAKES_MS, "while": cause, "why": "the cause is still there"}
    good_params = {"ms": TAKES_MS, "while": s.path("no cause")}
    job = {"uses": "fail", "concurrency": 8, "retry": {"delays": ["1s", "2s"], "max_failures": 3}}
    s.start_mariadb()
    s.apply_schema()

    first = s.insert("job", good_params, good)
    worker = s.start_worker(handlers={"job": job})
    s.wait_all_ended(240)
    alone = seconds_for_good(s, first, first + good - 1)
    worker.terminate()

    s.insert("job", bad_params, bad, ", run_at", ", UTC_TIMESTAMP(6) - INTERVAL 1 HOUR")
    first = s.insert("job", good_params, good)
    start = s.db.value("SELECT UTC_TIMESTAMP(6)")
    s.start_worker(handlers={"job": job})
    wait_until("the good ones are done", lambda: s.done() == 2 * good, 240, 0.1)
    begun = s.db.value(
        "SELECT LEAST((SELECT MIN(claimed_at) FROM tasks_done WHERE id >= %s), "
        "COALESCE((SELECT MIN(at) FROM millrace_attempts WHERE at >= %s), '9999-12-31'))", (first, start))
    beside = float(s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, %s, MAX(finished_at)) FROM tasks_done", (begun,))) / 1e6
    s.check(f"{good} good tasks beside {bad} that always fail, due first: at most 1.2 times what they take alone",
            f"{beside:.2f} s beside, {alone:.2f} s alone: {beside / alone:.2f} times", beside <= 1.2 * alone)

    s.wait_all_ended(60)
    reasons = s.db.rows("SELECT last_error, failures, COUNT(*) FROM tasks_failed GROUP BY 1, 2")
    s.check("the bad ones climb the ladder and end in the failed pool with the reason", reasons,
            len(reasons) == 1 and "the cause is still there" in reasons[0][0] and reasons[0][1:] == (3, bad))
    attempts = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind = 'failed'")
    s.check("every failed attempt is noted", f"{attempts}", attempts == 3 * bad)

    retry = ("task", "retry", "--state", "failed", "--all-matching")
    preview = s.ask(*retry, answer="n\n")
    s.check("retry --all-matching shows what it will do, asks, and does nothing on 'n'",
            preview.strip().splitlines()[:1], str(bad) in preview and s.failed() == bad)
    os.remove(cause)
    s.millrace(*retry, "--yes")
    s.wait_all_ended(60)
    s.check("they succeed when the cause is gone", f"{s.done()} succeeded, {s.failed()} failed",
            (s.done(), s.failed()) == (2 * good + bad, 0))


if __name__ == "__main__":
    main(run)
