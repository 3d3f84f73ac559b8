"""SIGSTOP for two leases with 8 tasks running and 200 queued, while another worker takes over; SIGCONT while the other
runs the same 8."""
import collections
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main

RUNNING, QUEUED = 8, 200


def run(s):
    lease = s.size(3, 10)
    takes = 1.6 * lease  # over for the first while it is stopped; under way for the other when it goes on
    log = s.path("starts.log")
    # Claims all ahead, in one turn or in two: a lane takes more while its queue is less than half full.
    lane = {"uses": "sleep", "queue": 2 * (RUNNING + QUEUED)}
    cluster = Cluster(s, engine={"lease": f"{lease}s"})
    first_id = s.insert("note", {"ms": int(1000 * takes), "log": log}, RUNNING)
    s.insert("note", {"ms": 20, "log": log}, QUEUED)
    long_ones = tuple(range(first_id, first_id + RUNNING))
    first = cluster.start("w1", handlers={"note": {**lane, "concurrency": RUNNING}})
    wait_until("all tasks are claimed and 8 run",
               lambda: s.running() == RUNNING + QUEUED and len(starts(log)) == RUNNING, 20)
    first.pause()
    paused = time.monotonic()
    cluster.start("w2", handlers={"note": {**lane, "concurrency": 2 * RUNNING}})
    wait_until("the other worker has registered", lambda: s.db.value(
        "SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w2'"), 20, 0.01)
    watched = time.monotonic()
    wait_until("the other worker has marked it dead", lambda: s.dead() == 1, 2 * lease + 5, 0.02)
    took = time.monotonic() - watched
    # It looks five times a lease: the look at which the lease is over may be the one after.
    s.check("the other worker, once it watches, marks it dead after its lease, and a fifth of it and 1 s at most",
            f"{took:.1f} s of {lease} s", 0.9 * lease <= took <= 1.2 * lease + 1)
    wait_until("the other worker has ended all that were queued", lambda: s.done() == QUEUED, lease + 20, 0.05)
    took = time.monotonic() - paused
    s.check(f"and ends the {QUEUED} that were queued within the lease + 5 s of the pause", f"{took:.1f} s",
            took <= lease + 5)

    time.sleep(max(0.0, paused + 2 * lease - time.monotonic()))
    before = running_under(s, "w2", long_ones)
    first.resume()
    # The worker's status tells of them as they come: of some at first.
    wait_until("the late settles are refused", lambda: cluster.late_settles("w1") >= RUNNING, 2 * lease + 5, 0.01)
    refused = cluster.late_settles("w1")
    after = running_under(s, "w2", long_ones)
    s.check(f"its {RUNNING} late settles meet rows that the other has claimed again and runs", f"{before} ran before",
            before == RUNNING)
    s.check("they are refused and counted, and the rows run on", f"{refused} refused, {after} run",
            refused == after == RUNNING)
    wait_until("the resumed worker has seen that it was marked dead and registered anew", lambda: s.db.value(
        "SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w1' AND dead = 0"), 2 * lease)
    s.insert("note", {"ms": 0, "log": log})
    wait_until("both go on", lambda: s.unfinished() == 0, lease + 20)
    # All first attempts of the queued ones are the resumed worker's; the one that came later has a first one too.
    beyond = sum(attempt == 1 for _, attempt in starts(log)) - RUNNING - 1
    s.check(f"the resumed worker starts none of the {QUEUED} queued", f"{beyond} started", beyond == 0)
    twice = [start for start, count in starts(log).items() if count > 1]
    s.check("no attempt is started twice", twice, not twice)
    s.check(f"all {RUNNING + QUEUED + 1} done", f"{s.done()} succeeded, {s.failed()} failed",
            (s.done(), s.failed()) == (RUNNING + QUEUED + 1, 0))


def running_under(s, worker, ids):
    return s.db.value("SELECT COUNT(*) FROM tasks JOIN millrace_incarnations i ON i.number = claimed_by "
                      "WHERE state = 2 AND worker = %s AND tasks.id IN %s", (worker, ids))


def starts(log):
    """How often each (task, attempt) was started."""
    try:
        with open(log) as file:
            lines = [line.split() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return collections.Counter()
    return collections.Counter((name, int(attempt)) for name, attempt in lines)


if __name__ == "__main__":
    main(run)
