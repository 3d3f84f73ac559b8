"""1,024 tables in two databases, 24 of them with work: few queries, and every first task starts within a second. Also in
short one database has more tables than one query asks, and so many that each poll waits longer."""
import json
import time

from chaos.cluster import ROOT
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import Shard, configure

BUSY = 24


def insert(shard, table):
    shard.rows(f"INSERT INTO {table} (handler, params) VALUES ('noop', '{{}}')")


def waited(shard, table):
    """Seconds from when the newest task was due to when it was claimed; None if it was not yet."""
    rows = shard.rows(f"SELECT TIMESTAMPDIFF(MICROSECOND, run_at, claimed_at) / 1e6 FROM {table}_done "
                      "ORDER BY id DESC LIMIT 1")
    return float(rows[0][0]) if rows else None


def statements(server):
    return int(server.rows("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


def statuses(s):
    """What each worker says of itself."""
    tree = s.zookeeper.client()
    return {name: json.loads(tree.get(f"{ROOT}/status/{name}")[0]) for name in tree.get_children(f"{ROOT}/status")}


def run(s):
    (east, west), seconds = s.size((264, 8), (512, 512)), s.size(3, 20)
    # The tables are what takes time: their making is not what is measured.
    server = s.start_server("mariadb", ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0",
                                        "--table-open-cache=4000", "--open-files-limit=8000"],
                            databases=("east", "west"))
    shards = [Shard("east", server), Shard("west", server)]
    s.start_zookeeper()
    s.millrace("cluster", "status")  # makes the cluster's nodes
    configure(s, shards)
    for shard, tables in zip(shards, (east, west)):
        s.millrace("schema", "apply", "--shard", shard.name, "--tables", tables, "--slices", 16, timeout=600)
    for worker_id in ("w1", "w2"):
        s.start_worker(worker_id, arguments=["--session-timeout", "3s"])
    tables = east + west
    slices = tables * 16
    wait_until("all slices are shared", lambda: (lambda shares: sum(shares) == slices and min(shares) > slices // 4)(
        [worker["slices"] for worker in s.cluster_status()["workers"].values()] or [0]), 60, 0.5)
    time.sleep(3)
    told = {worker: status["shards"][shards[0].name]["poll_ms"] for worker, status in statuses(s).items()}
    s.check(f"with {east} tables in one database each worker asks it once in as many ms, and no more often", f"{told} ms",
            len(told) == 2 and min(told.values()) >= east)
    # A third of them in the smaller one, where there are so many.
    small = min(west, BUSY // 2)
    busy = [(shards[1], f"tasks_{i * west // small:03}") for i in range(small)]
    busy += [(shards[0], f"tasks_{i * east // (BUSY - small):03}") for i in range(BUSY - small)]
    for shard in shards:
        shard.record_transitions(s, [table for of, table in busy if of is shard])

    # Statements are counted on the server; those of this script are one a look.
    before, began = statements(server), time.monotonic()
    time.sleep(seconds)
    idle = (statements(server) - before - 1) / (time.monotonic() - began)
    before, began, rounds = statements(server), time.monotonic(), 0
    for shard, table in busy:
        insert(shard, table)
        rounds += 1
        time.sleep(s.size(0.6, 1))  # each task costs some statements of its own
    own = 5 * rounds  # connect, three settings, the insert
    took = time.monotonic() - began
    working = (statements(server) - before - own) / took
    wait_until("all are done", lambda: all(waited(shard, table) is not None for shard, table in busy), 20, 0.2)
    late = sorted(waited(shard, table) for shard, table in busy)
    most = s.size(65, 50)  # fewer tables are asked in fewer statements, and more often
    s.check(f"{tables} tables, {slices} slices: at most {most} queries a second by all workers, idle and with {BUSY} at "
            "work", f"{idle:.1f} idle, {working:.1f} with work", max(idle, working) <= most)
    s.check(f"each first task of {BUSY} tables starts within 1 s", f"{late[0]:.2f} to {late[-1]:.2f} s", late[-1] <= 1)


if __name__ == "__main__":
    main(run)
