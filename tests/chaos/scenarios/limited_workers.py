"""Workers that take some task types only, some load-balance numbers only, or both: every task runs where it may and in
time, while a worker without limits comes and goes; a task that nobody can run waits, is told of, and holds up nobody."""
import time

from chaos.cluster import Cluster
from chaos.load import SteadyLoad
from chaos.processes import wait_until
from chaos.scenario import main

TYPES = {"a": {"uses": "sleep"}, "b": {"uses": "sleep"}}
ALL, LOW, HIGH = set(range(64)), set(range(32)), set(range(32, 64))
# What the workers are limited to: task types and numbers.
CASES = {
    "by task type": {"w1": ("a", ALL), "w2": ("b", ALL)},
    "by load-balance numbers": {"w1": ("ab", LOW), "w2": ("ab", HIGH)},
    "by both": {"w1": ("a", LOW), "w2": ("a", HIGH), "w3": ("b", ALL)},
}


def start(cluster, worker_id, types="ab", numbers=ALL):
    limits = []
    if types != "ab":
        limits += ["--handlers", types]
    if numbers != ALL:
        limits += ["--load-balance", f"{min(numbers)}-{max(numbers)}"]
    return cluster.start(worker_id, *limits)


def out_of_place(s, since, limits):
    """How many tasks ran where they may not."""
    rows = s.db.rows("SELECT worker, handler, slice, COUNT(*) FROM tasks_done JOIN millrace_incarnations i "
                     "ON i.id = claimed_by WHERE finished_at >= %s GROUP BY 1, 2, 3", (since,))
    return sum(count for worker, handler, number, count in rows
               if worker in limits and not (handler in limits[worker][0] and number in limits[worker][1]))


def latest_start(s, since):
    """The longest that a task was due before it was claimed, in seconds."""
    return s.db.value("SELECT MAX(TIMESTAMPDIFF(MICROSECOND, run_at, claimed_at)) / 1e6 FROM tasks_done "
                      "WHERE run_at >= %s", (since,))


def serve(s, cluster, what, limits, guest):
    """The workers serve all; a guest without limits joins and leaves, and they still do."""
    workers = [start(cluster, worker_id, *limit) for worker_id, limit in limits.items()]
    wait_until("each worker has a part", lambda: limits.keys() <= cluster.owned().keys(), 20, 0.1)
    since, seconds = s.db.value("SELECT UTC_TIMESTAMP(6)"), s.size(1, 10)
    load = SteadyLoad(s.db.connect, s.size(40, 100), lambda i: ("ab"[i % 2], {"ms": 5}))
    time.sleep(seconds)
    if guest:
        joined = start(cluster, "guest")
        wait_until("the guest has a part", lambda: "guest" in cluster.owned(), 20, 0.1)
        time.sleep(seconds)
        joined.terminate()
        time.sleep(seconds)
    sent = load.finish()
    wait_until("all tasks are done", lambda: s.unfinished() == s.unrunnable, 10, 0.1)
    wrong = out_of_place(s, since, limits)
    s.check(f"limited {what}: all drain" + (", also while a worker without limits joins and leaves" if guest else ""),
            f"{sent} done, {wrong} out of place", sent > 0 and wrong == 0)
    late = latest_start(s, since)
    s.check("and none is late by more than 2 s", f"at most {late:.2f} s", late <= 2)
    for worker in workers:
        worker.terminate()


def run(s):
    cluster = Cluster(s, handlers=TYPES)
    # Due long before all others, and most urgent: of a type that no plugin has.
    s.unrunnable = 20
    s.insert("nobody", {}, s.unrunnable, ", priority, run_at", ", 0, UTC_TIMESTAMP(6) - INTERVAL 1 DAY")
    for number, (what, limits) in enumerate(CASES.items()):
        serve(s, cluster, what, limits, guest=s.full or number == 0)
    start(cluster, "w1", "a")
    wait_until("w1 has a part", lambda: "w1" in cluster.owned(), 20, 0.1)
    s.insert("b", {}, 5)
    wait_until("cluster status tells of a type without a plugin, and of one that no live worker takes",
               lambda: cluster.status()["plan"].get("unrunnable") == ["main: b", "main: nobody"], 10, 0.2)
    waiting = s.db.rows("SELECT handler, state, SUM(attempt), COUNT(*) FROM tasks GROUP BY 1, 2 ORDER BY 1")
    s.check("a type without a plugin, and one that no live worker takes, are told by cluster status, and wait",
            waiting, waiting == (("b", 0, 0, 5), ("nobody", 0, 0, s.unrunnable)))


if __name__ == "__main__":
    main(run)
