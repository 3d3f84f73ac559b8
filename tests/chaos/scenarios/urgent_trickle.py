"""A backlog of idle tasks and a trickle of urgent ones: these start in time, and with aging the backlog moves on."""
import threading
import time

from chaos.host_stalls import HostStalls
from chaos.processes import wait_until
from chaos.scenario import main

TASK = '{"ms": 1}'
LIMIT_MS = 300  # of the trickle's due-to-start, at the 99th percentile
# The handler of both is the same one under two names, so that they have lanes of their own or share one.
TYPES = {"idle": {"uses": "sleep", "concurrency": 2}, "urgent": {"uses": "sleep", "concurrency": 2}}


def fill(s, handler, priority, count):
    connection = s.db.connect()
    with connection.cursor() as cursor:
        for start in range(0, count, 1000):
            cursor.execute("INSERT INTO tasks (handler, priority, params) VALUES "
                           + ", ".join([f"('{handler}', {priority}, '{TASK}')"] * min(1000, count - start)))
    connection.close()


def due(s, priority):
    return s.db.value("SELECT COUNT(*) FROM tasks WHERE priority = %s AND run_at <= UTC_TIMESTAMP(6)", (priority,))


class Trickle(threading.Thread):
    """One urgent task every `pause` seconds, until finish()."""

    def __init__(self, s, handler, pause, batch=1):
        super().__init__(daemon=True)
        self._s, self._pause, self._over = s, pause, threading.Event()
        self._statement = ("INSERT INTO tasks (handler, priority, params) VALUES "
                           + ", ".join([f"('{handler}', 0, '{TASK}')"] * batch))
        self.sent = 0
        self.start()

    def run(self):
        connection = self._s.db.connect()
        with connection.cursor() as cursor:
            while not self._over.wait(self._pause):
                self.sent += cursor.execute(self._statement)
        connection.close()

    def finish(self):
        self._over.set()
        self.join()


def waits_of(s, since, host):
    """Of each urgent task: from its due time to its claim, and to its end, in milliseconds; sorted. A build server does
    other things too: in the short form, what the host itself held up is taken off."""
    spans = s.db.rows("SELECT CAST(UNIX_TIMESTAMP(run_at) AS DOUBLE), CAST(UNIX_TIMESTAMP(claimed_at) AS DOUBLE), "
                      "CAST(UNIX_TIMESTAMP(finished_at) AS DOUBLE) FROM tasks_done "
                      "WHERE priority = 0 AND run_at >= %s", (since,))
    stalls = [0 if s.full else host.between(due, ended) for due, _, ended in spans]
    return (sorted((claimed - due) * 1000 for due, claimed, _ in spans),
            sorted((ended - due - stall) * 1000 for (due, _, ended), stall in zip(spans, stalls)), max(stalls, default=0))


def p99(values):
    return values[min(len(values) - 1, len(values) * 99 // 100)]


def trickled(s, urgent, moved):
    """What was measured of a trickle beside a backlog, and whether it was in time; in `moved` how far the backlog came."""
    backlog, seconds = s.size(12_000, 200_000), s.size(5, 60)
    fill(s, "idle", 9, backlog)
    worker = s.start_worker("w" + urgent, handlers=TYPES)
    before = s.done_of("idle")
    wait_until("the backlog is worked on", lambda: s.done_of("idle") > before, 30, 0.05)
    since, before = s.now(), s.done_of("idle")
    with HostStalls(s.path(f"stalls-{urgent}-{before}"), worker.pid) as host:
        trickle = Trickle(s, urgent, 0.05)
        time.sleep(seconds)
        trickle.finish()
    wait_until("the trickle has ended", lambda: due(s, 0) == 0, 30, 0.05)
    claimed, ended, stalled = waits_of(s, since, host)
    left = due(s, 9)
    moved.append(s.done_of("idle") - before)
    worker.terminate()
    s.db.client("UPDATE tasks SET run_at = run_at + INTERVAL 1 DAY")  # out of the way
    return (f"{p99(ended):.0f} ms of {len(ended)} (claimed after {p99(claimed):.0f} ms; median {ended[len(ended) // 2]:.0f} "
            f"ms), the host stood still for {stalled * 1000:.0f} ms at most; {left:,} of {backlog:,} in the backlog were left",
            len(ended) == trickle.sent and p99(ended) < LIMIT_MS and left > 0)


def in_time(s, name, urgent):
    moved = []
    s.check_time(f"{name}: beside a backlog the 99th percentile from due to the end of an urgent task is "
                 f"under {LIMIT_MS} ms" + ("" if s.full else ", less what the host stood still"),
                 lambda: trickled(s, urgent, moved))
    s.check(f"{name}: and the backlog moves on meanwhile", f"{moved[-1]:,} done", min(moved) > 0)


def aged(s):
    """An endless stream of urgent tasks, more than can be run, in the same lane."""
    seconds = s.size(8, 60)
    fill(s, "idle", 9, s.size(20_000, 150_000))
    fill(s, "idle", 0, s.size(3_000, 20_000))
    worker = s.start_worker("waged", engine={"aging": "1s"}, handlers=TYPES)
    wait_until("it has begun", lambda: s.done_of("idle") > 0, 30, 0.05)
    stream = Trickle(s, "idle", 0.1, 400)
    time.sleep(10)  # the backlog has aged
    before = dict(s.db.rows("SELECT priority, COUNT(*) FROM tasks_done GROUP BY priority"))
    time.sleep(seconds)
    after = dict(s.db.rows("SELECT priority, COUNT(*) FROM tasks_done GROUP BY priority"))
    stream.finish()
    left = due(s, 0)
    done = {priority: after.get(priority, 0) - before.get(priority, 0) for priority in (0, 9)}
    share = done[9] / max(1, done[0] + done[9])
    s.check("with aging the backlog has its guaranteed share, an eighth, under an endless stream of urgent tasks",
            f"{done[9]:,} of {done[0] + done[9]:,}, or {share:.2f}; {left:,} urgent ones were waiting",
            left > 0 and share >= 0.11)
    worker.terminate()
    s.db.client("UPDATE tasks SET run_at = run_at + INTERVAL 1 DAY")  # out of the way


def run(s):
    s.start_mariadb()
    s.apply_schema("--slices", 8)
    in_time(s, "two types", "urgent")
    in_time(s, "one type", "idle")
    aged(s)


if __name__ == "__main__":
    main(run)
