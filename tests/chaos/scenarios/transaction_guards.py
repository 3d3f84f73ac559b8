"""A handler's own transaction: what it may not send, what it may not hide, and what a stopped worker holds up."""
import threading
import time

from chaos.mariadb import numbers
from chaos.processes import wait_until
from chaos.scenario import main

# InnoDB renews what these views show only when they have not been read for a tenth of a second.
FRESH = 0.15
DEADLOCKS = "SELECT COUNT FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
ONCE = {"retry": {"max_failures": 1}}


def add(row, more=()):
    return {"sql": [f"UPDATE effects SET n = n + 1 WHERE id = {row}", *more]}


def effect(s, row):
    return s.db.value("SELECT n FROM effects WHERE id = %s", (row,))


def failed(s, task):
    rows = s.db.rows("SELECT last_error, attempt FROM tasks_failed WHERE id = %s", (task,))
    return rows[0] if rows else ("", 0)


def in_done(s, task):
    return s.db.value("SELECT COUNT(*) FROM tasks_done WHERE id = %s AND state = 1", (task,)) == 1


def refuses_transaction_control(s):
    for row, statement, word in ((1, "COMMIT", "COMMIT"), (2, "CREATE TABLE sneaked (id INT)", "CREATE"),
                                 (3, "/*! COMMIT */", "comment")):
        task = s.insert("refused", add(row, [statement]))
        wait_until("it has ended", lambda: failed(s, task)[0], 20)
        s.check(f"'{statement}' through the context is refused before it is sent", failed(s, task)[0],
                effect(s, row) == 0 and word in failed(s, task)[0])
    sneaked = s.db.rows("SHOW TABLES LIKE 'sneaked'")
    s.check("and the DDL did nothing", f"{len(sneaked)} tables", not sneaked)


def hides_no_lock_wait(s):
    blocker = s.db.connect(autocommit=False)
    with blocker.cursor() as cursor:
        cursor.execute("SELECT n FROM effects WHERE id = 5 FOR UPDATE")
        task = s.insert("swallow", add(4, add(5)["sql"]))
        wait_until("it was run and given back", lambda: s.db.value(
            "SELECT COUNT(*) FROM tasks WHERE id = %s AND state = 0 AND attempt > 0", (task,)), 30)
        s.check("a swallowed lock wait commits nothing", f"effect {effect(s, 4)}, done {in_done(s, task)}",
                effect(s, 4) == 0 and not in_done(s, task))
        blocker.rollback()
    blocker.close()
    wait_until("it succeeds when the lock is gone", lambda: in_done(s, task), 60)
    s.check("and takes effect once, uncounted, when the lock is gone", f"{effect(s, 4)} and {effect(s, 5)}",
            effect(s, 4) == effect(s, 5) == 1 and s.db.value("SELECT failures FROM tasks_done WHERE id = %s", (task,)) == 0)


def hides_no_deadlock(s):
    other = s.db.connect(autocommit=False)
    with other.cursor() as cursor:
        cursor.execute("UPDATE effects SET n = n WHERE id = 7")
        cursor.execute("UPDATE effects SET pad = pad + 1 WHERE id >= 100")  # heavier, so the task is the victim
        task = s.insert("swallow", add(6, add(7)["sql"]))
        before = s.db.value(DEADLOCKS)
        wait_until("the task waits for our row", s.db.lock_waits, 20, FRESH)
        update = threading.Thread(target=cursor.execute, args=("UPDATE effects SET n = n WHERE id = 6",))
        update.start()
        update.join(30)
        deadlocks = s.db.value(DEADLOCKS) - before
        s.check("a swallowed deadlock commits nothing", f"{deadlocks} deadlock, done {in_done(s, task)}",
                deadlocks >= 1 and not in_done(s, task))
        other.rollback()
    other.close()
    wait_until("it succeeds afterwards", lambda: in_done(s, task), 60)
    s.check("and takes effect once afterwards", f"{effect(s, 6)} and {effect(s, 7)}",
            effect(s, 6) == effect(s, 7) == 1)


def finds_a_hidden_commit(s):
    s.db.client("CREATE PROCEDURE end_it() COMMIT")
    task = s.insert("commit_behind", {**add(8), "procedure": "end_it"})
    wait_until("it is in the failed pool", lambda: failed(s, task)[0], 20)
    s.check("a transaction ended behind the context's back: failed, 'may have taken effect', not run again",
            failed(s, task), "may have taken effect" in failed(s, task)[0] and failed(s, task)[1] == 1
            and effect(s, 8) == 1)


def does_not_hold_up_the_rescue(s, first, lease, limit, handlers):
    task = s.insert("paused", {**add(9), "ms": 1000})
    wait_until("its transaction is open", lambda: s.db.value(
        "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"), 20, FRESH)
    first.pause()
    paused = time.monotonic()
    s.start_worker("w2", engine={"lease": f"{lease}s"}, handlers=handlers)
    bound = 2 * lease + limit + 5
    wait_until("another worker does the task", lambda: in_done(s, task), bound + 30)
    seconds = time.monotonic() - paused
    s.check(f"a worker stopped in an open transaction holds its task up for its lease and the locks for limit + lease: "
            f"at most {bound} s", f"{seconds:.1f} s", seconds <= bound)
    first.resume()
    wait_until("the resumed worker has registered anew", lambda: s.db.value(
        "SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w1' AND dead = 0"), lease + 20)
    s.check("one effect", f"{effect(s, 9)}", effect(s, 9) == 1)


def run(s):
    lease, limit = s.size(2, 10), 3
    s.start_mariadb()
    s.apply_schema()
    s.db.client("CREATE TABLE effects (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, pad INT NOT NULL DEFAULT 0);"
                f"INSERT INTO effects (id) SELECT seq FROM {numbers(200)};")
    handlers = {"refused": {"uses": "sql", **ONCE}, "commit_behind": ONCE,
                "paused": {"uses": "sql", "timeout": f"{limit}s"}}
    first = s.start_worker(engine={"lease": f"{lease}s"}, handlers=handlers)
    refuses_transaction_control(s)
    hides_no_lock_wait(s)
    hides_no_deadlock(s)
    finds_a_hidden_commit(s)
    does_not_hold_up_the_rescue(s, first, lease, limit, handlers)


if __name__ == "__main__":
    main(run)
