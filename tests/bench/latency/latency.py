#!/usr/bin/python3
"""From a plain INSERT to its handler's first line, one task at a time, on an idle worker, by the same clock on both ends:
with the poll alone and, where the program has one, with the doorbell. The INSERT's own round trip, a COMMIT's and what a
sleeper is late by, measured beside it, say what the machine itself takes.

  latency.py [--tasks 200] [--rounds 3] [--json FILE] [--most-over MS] [--most-over-poll MS]
                                                        (scripts/bench latency sets what it needs)
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from chaos.mariadb import MariaDb
from chaos.processes import Process, wait_until
from figures.figures import Figures, percentile

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
# Each commit is on the disk, in the log that the doorbell follows, too.
DURABLE = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=256M", "--log-bin=binlog", "--sync-binlog=1",
           "--binlog-format=ROW", "--performance-schema=OFF")
SQL = "INSERT INTO tasks (handler, params) VALUES ('stopwatch', %s)"
POLL_MS = 200  # the program's own
# Seldom enough that it takes no core from those who are measured.
LATE = "import time\nwhile True:\n t=time.monotonic_ns(); time.sleep(0.02); print(time.monotonic_ns()-t-20000000, flush=True)"


class Server:
    """A private MariaDB with the tables; stopped and removed at the end of the `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-latency-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), DURABLE)
        self.db.rows("SET GLOBAL log_bin_trust_function_creators=1")
        self.environment = {"MILLRACE_STORE": self.db.url_of(), "MILLRACE_PASSWORD_FILE": self.db.password_file}
        subprocess.run([BINARY / "millrace", "schema", "apply", "--slices", "64"], check=True,
                       env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def has_doorbell():
    help_text = subprocess.run([BINARY / "millrace", "worker", "--help"], capture_output=True, text=True).stdout
    return "--doorbell" in help_text


def lines_of(file):
    try:
        with open(file) as log:
            return log.read().splitlines()
    except FileNotFoundError:
        return []


def measure(server, arguments, tasks):
    """(milliseconds from sent to started, of the INSERT's own round trip), a value for each task."""
    run = tempfile.mkdtemp(dir=server.folder)
    log = os.path.join(run, "log")
    worker = Process("worker", [BINARY / "millrace", "worker", "--plugins", BINARY / "tests/bench_plugins", "--state-dir",
                                os.path.join(run, "state"), *arguments], os.path.join(run, "worker.log"),
                     server.environment)
    trips = []
    try:
        connection = server.db.connect()
        with connection.cursor() as cursor:
            for number in range(tasks + 20):  # the first ones wait for the worker's start
                time.sleep(random.uniform(0.01, 0.25))  # another place in the poll's interval each time
                sent = time.monotonic_ns()
                cursor.execute(SQL, f'{{"sent_ns":{sent},"log":"{log}"}}')
                trips.append((time.monotonic_ns() - sent) / 1e6)
                time.sleep(0.02)  # whoever looked meanwhile would take a core from those who are measured
                wait_until("the task has run", lambda: len(lines_of(log)) > number or not worker.runs(), 30, 0.002)
                if not worker.runs():
                    raise AssertionError(worker.output()[-2000:])
        connection.close()
    finally:
        worker.terminate()
    return [int(line) / 1e6 for line in lines_of(log)][20:], trips[20:]


def commits(server, count):
    """Milliseconds that a COMMIT takes alone, its row being written before, of a table that is none of the worker's: (after as
    long a rest as an INSERT's, right after that one)."""
    server.db.rows("CREATE DATABASE IF NOT EXISTS beside")
    server.db.rows("CREATE TABLE IF NOT EXISTS beside.notes (id BIGINT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(100))")
    took = [], []
    connection = server.db.connect(autocommit=False)
    with connection.cursor() as cursor:
        for _ in range(count):
            time.sleep(random.uniform(0.01, 0.25))
            for of_these in took:
                cursor.execute("INSERT INTO beside.notes (text) VALUES ('a note')")
                began = time.monotonic_ns()
                connection.commit()
                of_these.append((time.monotonic_ns() - began) / 1e6)
    connection.close()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--most-over", type=float, metavar="MS", help="ends with 1 where the doorbell's median is more than "
                        "this over the INSERT's own round trip and one COMMIT")
    parser.add_argument("--most-over-poll", type=float, metavar="MS",
                        help="the same where the poll's 99th percentile is more than this over its interval")
    options = parser.parse_args()
    ways = {"poll": ()} | ({"doorbell": ("--doorbell",)} if has_doorbell() else {})
    figures = Figures("latency", "From a plain INSERT to the handler's first line, one at a time", "ms")
    waited = {way: [] for way in ways}
    trips, rested, committed = [], [], []
    with Server() as server:
        figures.facts["server"] = f"MariaDB {server.db.value('SELECT VERSION()')}, {' '.join(DURABLE)}"
        sleeper = Process("sleeper", [sys.executable, "-c", LATE], os.path.join(server.folder, "sleeper"))
        for _ in range(options.rounds):
            for of_these, took in zip((rested, committed), commits(server, options.tasks)):
                of_these += took
            for way, arguments in ways.items():
                found, own = measure(server, arguments, options.tasks)
                waited[way] += found
                trips += own
                figures.add(f"{way}, p50", statistics.median(found))
                figures.add(f"{way}, p99", percentile(found, 0.99))
                print(f"{way}: p50 {statistics.median(found):.2f} ms, p99 {percentile(found, 0.99):.2f} ms", flush=True)
        sleeper.kill()
        late = [max(0, int(line)) / 1e6 for line in sleeper.output().splitlines()[:-1]]
    for way, found in waited.items():
        figures.facts[f"{way}, all rounds"] = (f"p50 {statistics.median(found):.2f} ms, p99 {percentile(found, 0.99):.2f} ms, "
                                               f"p99.9 {percentile(found, 0.999):.2f} ms of {len(found)} tasks")
    figures.facts["the INSERT's own round trip"] = (f"p50 {statistics.median(trips):.2f} ms, "
                                                    f"p99 {percentile(trips, 0.99):.2f} ms, a durable commit each")
    figures.facts["a COMMIT alone"] = (f"p50 {statistics.median(rested):.2f} ms, p99 {percentile(rested, 0.99):.2f} ms; right "
                                       f"after another {statistics.median(committed):.2f} and "
                                       f"{percentile(committed, 0.99):.2f} ms")
    figures.facts["a sleeper beside it is late by"] = (f"p50 {statistics.median(late):.2f} ms, p99 {percentile(late, 0.99):.2f} "
                                                       f"ms, p99.9 {percentile(late, 0.999):.2f} ms")
    print("\n" + figures.table())
    figures.write(options.json)
    allowed = statistics.median(trips) + statistics.median(committed)
    too = [text for text, wrong in (
        (f"with the doorbell {statistics.median(waited.get('doorbell', [0])):.2f} ms, of which {allowed:.2f} are the server's",
         options.most_over is not None and statistics.median(waited["doorbell"]) > allowed + options.most_over),
        (f"p99 with the poll {percentile(waited['poll'], 0.99):.2f} ms",
         options.most_over_poll is not None and percentile(waited["poll"], 0.99) > POLL_MS + options.most_over_poll)) if wrong]
    if too:
        sys.exit("beyond its bounds: " + "; ".join(too))


if __name__ == "__main__":
    main()
