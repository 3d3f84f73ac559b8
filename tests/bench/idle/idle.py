#!/usr/bin/python3
"""What an idle cluster costs: statements a second that each worker sends, and its processor time, with the poll alone and
with the doorbell; nothing is due, or with --tasks a few come, each alone. A beat is renewed five times in a lease, so its
statements are told apart: writes.

  idle.py [--workers 2] [--seconds 30] [--rounds 3] [--tasks 0] [--threads 4] [--json FILE]
                                                                      (scripts/bench idle sets what it needs)
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from chaos.mariadb import MariaDb
from chaos.processes import Process, wait_until
from chaos.zookeeper import Ensemble
from figures.figures import Figures

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
OPTIONS = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=256M", "--log-bin=binlog", "--sync-binlog=1",
           "--binlog-format=ROW", "--performance-schema=OFF")
WAYS = {"poll": (), "doorbell": ("--doorbell",)}
SETTLED = 6  # seconds from the start of the last worker until what a start brings is over
READS, WRITES = ("Com_select",), ("Com_update", "Com_insert", "Com_delete")


class Shard:
    """A private MariaDB with the tables, and an ensemble; stopped and removed at the end of the `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-idle-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), OPTIONS)
        self.db.rows("SET GLOBAL log_bin_trust_function_creators=1")
        self.ensemble = Ensemble(os.path.join(self.folder, "zookeeper"))
        self.environment = {"MILLRACE_STORE": self.db.url_of(), "MILLRACE_PASSWORD_FILE": self.db.password_file}
        subprocess.run([BINARY / "millrace", "schema", "apply", "--slices", "64"], check=True,
                       env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.ensemble.stop()
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def counts(self, connection):
        """{kind: how many the server has counted}"""
        with connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            told = dict(cursor.fetchall())
        return {"reads": sum(int(told[name]) for name in READS), "writes": sum(int(told[name]) for name in WRITES)}


def cpu_of_threads(processes):
    """{file: seconds}, by the scheduler's own count: of threads that run for much less than a clock tick at a time the ticks
    tell little."""
    return {thread: int(thread.read_text().split()[0]) / 1e9 for process in processes
            for thread in pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat")}


def trickle(connection, seconds, rate):
    """Rests for so long, or puts in so many tasks a second meanwhile, one at a time; returns how many those were."""
    ends, tasks = time.monotonic() + seconds, 0
    with connection.cursor() as cursor:
        while time.monotonic() < ends:
            time.sleep(1 / rate if rate else seconds)
            if rate:
                cursor.execute("INSERT INTO tasks (handler) VALUES ('noop')")
                tasks += 1
    return tasks


def measure(shard, way, options):
    """{what: of each worker and second}"""
    run = tempfile.mkdtemp(dir=shard.folder)
    config = os.path.join(run, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"noop": {"concurrency": options.threads}}}, file)
    workers = []
    try:
        for number in range(options.workers):
            name = f"{way}{number}"
            workers.append(Process(
                name, [BINARY / "millrace", "worker", "--id", name, "--zk", shard.ensemble.address, "--cluster",
                       os.path.basename(run).replace("_", "-"), "--plugins", BINARY / "plugins", "--state-dir",
                       os.path.join(run, name), "--config", config, *WAYS[way]], os.path.join(run, name + ".log"),
                shard.environment))
        beats = "SELECT COUNT(*) FROM millrace_beats"
        wait_until("all workers beat", lambda: shard.db.value(beats) == options.workers, 60, 0.2)
        time.sleep(SETTLED)
        connection = shard.db.connect()
        before, used, began = shard.counts(connection), cpu_of_threads(workers), time.monotonic()
        tasks = trickle(connection, options.seconds, options.tasks)
        after, now, took = shard.counts(connection), cpu_of_threads(workers), time.monotonic() - began
        connection.close()
        for worker in workers:
            if not worker.runs():
                raise AssertionError(worker.output()[-2000:])
        if not used or now.keys() != used.keys():
            raise AssertionError("threads came or went, so that their time is not known")
        spent = sum(now.values()) - sum(used.values())
        share = options.workers * took
        found = {f"{kind} a second": (after[kind] - before[kind]) / share for kind in before}
        found["% of a core"] = 100 * spent / share
        return {**found, "us of the workers' CPU a task": 1e6 * spent / tasks} if tasks else found
    finally:
        for worker in workers:
            worker.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30, help="of each round and way")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=float, default=0, help="a second, at most: each is put in once the last is")
    parser.add_argument("--threads", type=int, default=4, help="of each worker for them")
    parser.add_argument("--json")
    options = parser.parse_args()
    figures = Figures("idle", "What each worker of an idle cluster costs", "")
    with Shard() as shard:
        figures.facts["server"] = f"MariaDB {shard.db.value('SELECT VERSION()')}, one shard, {options.workers} workers"
        for _ in range(options.rounds):
            for way in WAYS:
                found = measure(shard, way, options)
                for what, value in found.items():
                    figures.add(f"{way}, {what}", value)
                print(f"{way}: " + ", ".join(f"{value:.2f} {what}" for what, value in found.items()), flush=True)
    reads = {way: statistics.median(figures.series[f"{way}, reads a second"]) for way in WAYS}
    figures.facts["one read in"] = ", ".join(f"{1 / max(rate, 1e-9):.2f} s ({way})" for way, rate in reads.items())
    print("\n" + figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
