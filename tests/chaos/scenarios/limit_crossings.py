"""A fourth worker joins while three tasks may run at once, one of them a long one, and one task may start a second: never
more run or start, and neither the join nor a permit that is in use holds up the others."""
from chaos.cluster import Cluster
from chaos.scenario import main

AT_ONCE = 3
WORKERS = ("w1", "w2", "w3")
HANDLERS = {"timed": {"limit": {"concurrency": AT_ONCE}}, "sleep": {"limit": {"rate": "60/m"}}}


def runs(file):
    """(begin, end) of each run, by its begin."""
    began, found = {}, []
    with open(file) as lines:
        for line in lines:
            what, name, attempt, pid, micros = line.split()
            if what == "begin":
                began[name, attempt, pid] = int(micros) / 1e6
            else:
                found.append((began.pop((name, attempt, pid)), int(micros) / 1e6))
    return sorted(found)


def most_at_once(found):
    moments = sorted([(begin, 1) for begin, _ in found] + [(end, -1) for _, end in found])
    most = now = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def run(s):
    cluster = Cluster(s, handlers=HANDLERS)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    long, short = s.size(12, 40), 0.3
    log, times = s.path("runs"), s.path("times")
    starts = s.size(18, 120)
    s.insert("timed", {"ms": long * 1000, "log": log}, 1)
    s.insert("timed", {"ms": int(short * 1000), "log": log}, int(long / short))
    s.insert("sleep", {"ms": 1, "times": times}, starts)
    cluster.start("w4")
    s.wait_all_ended(s.size(90, 400))
    found = runs(log)
    begins = [begin for begin, _ in found]
    gap = max(later - earlier for earlier, later in zip(begins, begins[1:]))
    s.check(f"a worker joins while a task of {long} s runs: the others go on", f"{gap:.1f} s without a start at most", gap <= 5)

    everybody = (*WORKERS, "w4")
    cluster.wait_balanced(everybody)
    log = s.path("runs_by_permits")
    last = s.db.value("SELECT MAX(id) FROM tasks_done")
    for slices in cluster.owned().values():
        number = next(iter(slices)).rpartition("/")[2]
        s.insert("timed", {"ms": 2000, "log": log}, AT_ONCE, columns=", slice", values=f", {number}")
    s.wait_all_ended(60)
    ran = dict(s.db.rows("SELECT i.worker, COUNT(*) FROM tasks_done t JOIN millrace_incarnations i ON i.id = t.claimed_by "
                         "WHERE t.id > %s GROUP BY i.worker", (last,)))
    s.check(f"each of the four ran {AT_ONCE} of its own", ran, ran == dict.fromkeys(everybody, AT_ONCE))
    held = runs(log)
    took = max(end for _, end in held) - held[0][0]
    s.check(f"{4 * AT_ONCE} tasks of 2 s by {AT_ONCE} permits: at least half as fast as could be", f"{took:.1f} s", took <= 16)
    most = max(most_at_once(found), most_at_once(held))
    s.check(f"never more than {AT_ONCE} at once", f"{most} at most", most <= AT_ONCE)

    with open(times) as lines:
        at = sorted(int(line) / 1e6 for line in lines)
    most = max(sum(begin <= other < begin + 10 for other in at) for begin in at)
    s.check("60 a minute over four workers: at most 11 in any 10 s", f"{most} at most", most <= 11)
    pace = (len(at) - 1) / (at[-1] - at[0])
    s.check("and hardly less", f"{pace:.2f} a second", pace >= 0.7)


if __name__ == "__main__":
    main(run)
