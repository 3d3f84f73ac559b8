"""The number of slices a table, changed under load from 64 to 96 to 32: no task is lost, none runs twice."""
import collections
import json
import time

from chaos.load import SteadyLoad
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import Shard, configure

SIZES = (64, 96, 32)


def assigned(s):
    """The numbers of the slices that are assigned now."""
    return {int(name.rpartition("/")[2])
            for worker in json.loads(s.millrace("cluster", "slices", "--json"))["workers"] for name in worker["slices"]}


def run(s):
    shard = Shard("main", s.start_server("mariadb", databases=("main",)))
    s.start_zookeeper()
    s.millrace("cluster", "status")  # makes the cluster's nodes
    configure(s, [shard])
    s.millrace("schema", "apply", "--slices", SIZES[0])
    shard.record_transitions(s)
    log = s.path("starts.log")
    for worker_id in ("w1", "w2"):
        s.start_worker(worker_id, engine={"lease": "3s"}, handlers={"work": {"uses": "effect", "concurrency": 8}},
                       arguments=["--session-timeout", "3s"])
    load = SteadyLoad(shard.connect, s.size(80, 200), lambda i: ("work", {"log": log, "ms": 5}))
    wait_until("tasks are done", lambda: shard.finished(), 30, 0.1)
    # Rows that are not due yet stand in the old slices until they are renumbered.
    connection = shard.connect()
    later = s.size(500, 5000)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO tasks (handler, params, run_at, slice) VALUES " + ", ".join(
            ["('work', %s, UTC_TIMESTAMP(6) + INTERVAL %s SECOND, %s)"] * later),
            [value for i in range(later)
             for value in (json.dumps({"log": log}), s.size(12, 60), i % SIZES[0])])
    connection.close()
    for size in SIZES[1:]:
        time.sleep(s.size(1, 10))
        s.millrace("config", "set", "shards.main.slices", size)
        began = time.monotonic()
        wait_until(f"the plan has {size} slices", lambda: assigned(s) == set(range(size)), 60, 0.2)
        took = time.monotonic() - began
        beyond = shard.value("SELECT COUNT(*) FROM tasks WHERE slice >= %s", (size,))
        s.check(f"{size} slices a table: planned, and no row beyond them", f"after {took:.1f} s, {beyond} rows beyond",
                beyond == 0)
    time.sleep(s.size(1, 10))
    sent = load.finish()
    wait_until("all is done", lambda: not shard.unfinished(), s.size(60, 180), 0.1)
    with open(log) as file:
        starts = collections.Counter(line.split()[0] for line in file)
    twice = sum(count > 1 for count in starts.values())
    done = shard.value("SELECT COUNT(*) FROM tasks_done WHERE state = 1")
    s.check(f"of {sent + later} tasks none is lost, and none ran twice", f"{done} done, {twice} ran twice",
            done == len(starts) == sent + later and twice == 0)


if __name__ == "__main__":
    main(run)
