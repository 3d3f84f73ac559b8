"""A replica that lacks the last commits takes the primary's place while tasks run: a settle meets a row that has the
right attempt and another claimer, and one that has the right claimer and another attempt. Both run on."""
import pathlib

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.replica import ReplicatedPair
from chaos.scenario import main

EACH = 4
SHORT, LONG = 4_000, 9_000  # ms


def running(server, handler, worker, attempt):
    return server.value("SELECT COUNT(*) FROM tasks JOIN millrace_incarnations i ON i.number = claimed_by "
                        "WHERE handler = %s AND state = 2 AND attempt = %s AND worker = %s", (handler, attempt, worker))


def await_running(server, handler, worker, attempt):
    wait_until(f"{handler} runs on {worker} as attempt {attempt}",
               lambda: running(server, handler, worker, attempt) == EACH, 20, 0.02)


def run(s):
    pair = ReplicatedPair(s)
    cause = pathlib.Path(s.path("cause"))
    cause.touch()
    job = {"uses": "fail", "concurrency": EACH, "retry": {"delays": ["100ms"]}}
    cluster = Cluster(s, handlers={"again": job, "once": job})
    first = cluster.start("w1")
    cluster.wait_owned()

    # The replica hears of the first attempt of these, and neither of its end nor of the second.
    s.insert("again", {"ms": SHORT, "while": str(cause)}, EACH)
    await_running(pair.replica, "again", "w1", 1)
    # It knows that these wait, and not that they are claimed.
    first.pause()
    s.insert("once", {"ms": LONG, "while": s.path("no cause")}, EACH)
    wait_until("the replica knows them", lambda: pair.replica.value(
        "SELECT COUNT(*) FROM tasks WHERE handler = 'once'") == EACH, 10, 0.01)
    pair.cut()
    first.resume()
    await_running(s.db, "once", "w1", 1)
    await_running(s.db, "again", "w1", 2)
    cause.unlink()
    s.db.stop()
    pair.promote()

    second = cluster.start("w2")
    cluster.command("drain", "w1", "--yes")
    await_running(s.db, "once", "w2", 1)
    s.check("on the replica, tasks that one worker runs are claimed by another, as the same attempt",
            f"{running(s.db, 'once', 'w2', 1)} run", running(s.db, "once", "w2", 1) == EACH)
    s.check("and others run under their claimer as an earlier attempt than the one that it runs",
            f"{running(s.db, 'again', 'w1', 1)} run", running(s.db, "again", "w1", 1) == EACH)
    wait_until("late settles are refused", lambda: cluster.late_settles("w1") >= EACH, 20, 0.05)
    s.wait_all_ended(40)
    refused = wait_until("all late settles are told of", lambda: cluster.late_settles("w1") >= 2 * EACH and
                         cluster.late_settles("w1"), 10, 0.1)
    s.check("the settles of both are refused, and counted", f"{refused} of {2 * EACH}", refused == 2 * EACH)
    ends = s.db.rows("SELECT handler, SUBSTRING_INDEX(claimed_by, '.', 1), attempt, COUNT(*) FROM tasks_done "
                     "GROUP BY 1, 2, 3 ORDER BY 1")
    s.check("each is settled by whoever the replica knows as its claimer, in an attempt of its own", ends,
            [row[0] for row in ends] == ["again", "once"] and ends[0][2] > 2 and ends[1][1:] == ("w2", 1, EACH))
    s.check("both workers live", [first.runs(), second.runs()], first.runs() and second.runs())


if __name__ == "__main__":
    main(run)
