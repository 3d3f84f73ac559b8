"""SIGSTOP for two leases with 8 tasks running and 200 queued, while another worker takes over; then SIGCONT."""
import time

from chaos.load import NotedProgram
from chaos.processes import wait_until
from chaos.scenario import main

RUNNING, QUEUED = 8, 200


def run(s):
    lease = s.size(3, 10)
    engine = {"lease": f"{lease}s"}
    s.start_mariadb()
    s.apply_schema()
    slow = NotedProgram(s.folder, "slow", 1.5 * lease)  # ends while its worker is stopped
    quick = NotedProgram(s.folder, "quick", 0.02)
    # Claims ahead as many as the scenario asks for; the second worker takes what comes.
    lane = {"concurrency": RUNNING, "queue": RUNNING + QUEUED}
    s.insert("note", {}, RUNNING + QUEUED)
    first = s.start_worker("w1", engine=engine, handlers={"note": slow.handler(**lane)})
    wait_until("all tasks are claimed and 8 run",
               lambda: s.running() == RUNNING + QUEUED and len(slow.starts()) == RUNNING, 20)
    first.pause()
    paused = time.monotonic()
    s.start_worker("w2", engine=engine, handlers={"note": quick.handler(**lane)})
    wait_until("the other worker has registered", lambda: s.db.value(
        "SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w2'"), 20, 0.01)
    watched = time.monotonic()
    # The pause lasts for two leases at least, and until the other has ended all tasks.
    wait_until("the other worker has marked it dead", lambda: s.dead() == 1, 2 * lease + 5, 0.02)
    took = time.monotonic() - watched
    # It looks five times a lease: the look at which the lease is over may be the one after.
    s.check("the other worker, once it watches, marks it dead after its lease, and a fifth of it and 1 s at most",
            f"{took:.1f} s of {lease} s", 0.9 * lease <= took <= 1.2 * lease + 1)
    wait_until("the other worker has ended all tasks", lambda: s.unfinished() == 0, lease + 20, 0.05)
    took = time.monotonic() - paused
    s.check(f"and ends all {QUEUED + RUNNING} tasks within the lease + 5 s of the pause", f"{took:.1f} s",
            took <= lease + 5)
    time.sleep(max(0.0, paused + 2 * lease - time.monotonic()))
    first.resume()

    wait_until("the resumed worker has seen that it was marked dead and registered anew", lambda: s.db.value(
        "SELECT COUNT(*) FROM millrace_incarnations WHERE worker = 'w1' AND dead = 0"), 2 * lease)
    late = s.insert("note", {})
    wait_until("both go on", lambda: s.unfinished() == 0, lease + 20)
    beyond = [task for _, task in slow.starts()[RUNNING:] if not task_is(task, late)]
    s.check(f"the resumed worker starts none of the {QUEUED} queued", f"{len(beyond)} started", not beyond)
    s.check(f"all {RUNNING + QUEUED + 1} done", f"{s.done()} succeeded, {s.failed()} failed",
            (s.done(), s.failed()) == (RUNNING + QUEUED + 1, 0))
    refused = refused_settles(first)
    s.check(f"its {RUNNING} late settles are refused and counted", f"{refused} refused", refused == RUNNING)
    s.check_no_attempt_settled_twice()


def task_is(task, number):
    return str(task.get("name", "")).endswith(f"/{number}")


def refused_settles(worker):
    """The worker's own count."""
    return worker.output().count("a late settle was refused")


if __name__ == "__main__":
    main(run)
