#!/usr/bin/python3
"""From a plain INSERT to its handler's first line, one task at a time, on an idle worker, by the same clock on both ends:
with the poll alone and, where the program has one, with the doorbell. The INSERT's own round trip, two COMMITs a moment
after each start (a disk may take three times as long from one minute to the next, so each start is held against its own)
and what a sleeper is late by say what the machine itself takes.

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
# Before each INSERT, somewhere between: another place in the poll's interval each time, and the cores have gone to sleep.
REST_MS = (30, 270)
# Seldom enough that it takes no core from those who are measured.
LATE = "import time\nwhile True:\n t=time.monotonic_ns(); time.sleep(0.02); print(time.monotonic_ns()-t-20000000, flush=True)"


class Server:
    """A private MariaDB with the tables; stopped and removed at the end of the `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-latency-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), DURABLE)
        self.db.rows("SET GLOBAL log_bin_trust_function_creators=1")
        self.db.rows("CREATE DATABASE beside")
        self.db.rows("CREATE TABLE beside.notes (id BIGINT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(100))")
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


def rest():
    time.sleep(random.uniform(*REST_MS) / 1e3)


class Starts:
    """Milliseconds, a value for each task."""

    def __init__(self):
        self.waited = []  # from sent to started
        self.trips = []  # the INSERT's own
        self.rested = []  # a COMMIT's after as long a rest as an INSERT's
        self.committed = []  # another's right after that one, as a claim's comes after the INSERT's

    def add(self, other):
        for mine, others in zip(vars(self).values(), vars(other).values()):
            mine += others

    def late(self):
        """By how much more than its INSERT and a COMMIT each start took."""
        return [waited - trip - commit for waited, trip, commit in zip(self.waited, self.trips, self.committed)]


def commits(connection, starts):
    """Two, of rows that were written before, in a table that is none of the worker's."""
    rest()
    with connection.cursor() as cursor:
        for took in starts.rested, starts.committed:
            cursor.execute("INSERT INTO beside.notes (text) VALUES ('a note')")
            began = time.monotonic_ns()
            connection.commit()
            took.append((time.monotonic_ns() - began) / 1e6)


def measure(server, arguments, tasks, beside=True):
    """Starts; of COMMITs only where these are wanted `beside`."""
    run = tempfile.mkdtemp(dir=server.folder)
    log = os.path.join(run, "log")
    worker = Process("worker", [BINARY / "millrace", "worker", "--plugins", BINARY / "tests/bench_plugins", "--state-dir",
                                os.path.join(run, "state"), *arguments], os.path.join(run, "worker.log"),
                     server.environment)
    starts = Starts()
    try:
        connection, other = server.db.connect(), server.db.connect(autocommit=False)
        with connection.cursor() as cursor:
            for number in range(tasks + 20):  # the first ones wait for the worker's start
                rest()
                sent = time.monotonic_ns()
                cursor.execute(SQL, f'{{"sent_ns":{sent},"log":"{log}"}}')
                starts.trips.append((time.monotonic_ns() - sent) / 1e6)
                time.sleep(0.02)  # whoever looked meanwhile would take a core from those who are measured
                wait_until("the task has run", lambda: len(lines_of(log)) > number or not worker.runs(), 30, 0.002)
                if not worker.runs():
                    raise AssertionError(worker.output()[-2000:])
                if beside:
                    commits(other, starts)
        connection.close()
        other.close()
    finally:
        worker.terminate()
    starts.waited = [int(line) / 1e6 for line in lines_of(log)]
    for values in vars(starts).values():
        del values[:20]
    return starts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--most-over", type=float, metavar="MS", help="ends with 1 where in the median a start with the "
                        "doorbell is later than this over its INSERT's own round trip and a COMMIT")
    parser.add_argument("--most-over-poll", type=float, metavar="MS",
                        help="the same where the poll's 99th percentile is more than this over its interval")
    options = parser.parse_args()
    ways = {"poll": ()} | ({"doorbell": ("--doorbell",)} if has_doorbell() else {})
    figures = Figures("latency", "From a plain INSERT to the handler's first line, one at a time", "ms")
    all_of = {way: Starts() for way in ways}
    with Server() as server:
        figures.facts["server"] = f"MariaDB {server.db.value('SELECT VERSION()')}, {' '.join(DURABLE)}"
        sleeper = Process("sleeper", [sys.executable, "-c", LATE], os.path.join(server.folder, "sleeper"))
        for _ in range(options.rounds):
            for way, arguments in ways.items():
                starts = measure(server, arguments, options.tasks)
                all_of[way].add(starts)
                figures.add(f"{way}, p50", statistics.median(starts.waited))
                figures.add(f"{way}, p99", percentile(starts.waited, 0.99))
                print(f"{way}: p50 {statistics.median(starts.waited):.2f} ms, p99 {percentile(starts.waited, 0.99):.2f} ms",
                      flush=True)
        sleeper.kill()
        late = [max(0, int(line)) / 1e6 for line in sleeper.output().splitlines()[:-1]]

    def told(values):
        return f"p50 {statistics.median(values):.2f} ms, p99 {percentile(values, 0.99):.2f} ms"

    for way, of in all_of.items():
        figures.facts[f"{way}, all rounds"] = (f"{told(of.waited)}, p99.9 {percentile(of.waited, 0.999):.2f} ms of "
                                               f"{len(of.waited)} tasks")
        figures.facts[f"{way}, the INSERT's own round trip"] = f"{told(of.trips)}, a durable commit each"
        figures.facts[f"{way}, a COMMIT alone"] = f"{told(of.rested)}; right after another {told(of.committed)}"
    over = statistics.median(all_of["doorbell"].late()) if "doorbell" in ways else float("inf")
    if "doorbell" in ways:
        figures.facts["a start with the doorbell"] = (f"in the median {over:.2f} ms over its INSERT's round trip and a COMMIT "
                                                      "right after another")
    figures.facts["a sleeper beside it is late by"] = f"{told(late)}, p99.9 {percentile(late, 0.999):.2f} ms"
    print("\n" + figures.table())
    figures.write(options.json)
    slowest = percentile(all_of["poll"].waited, 0.99)
    too = [text for text, wrong in (
        (f"with the doorbell {over:.2f} ms over an INSERT and a COMMIT", options.most_over is not None and over > options.most_over),
        (f"p99 with the poll {slowest:.2f} ms", options.most_over_poll is not None and slowest > POLL_MS + options.most_over_poll))
        if wrong]
    if too:
        sys.exit("beyond its bounds: " + "; ".join(too))


if __name__ == "__main__":
    main()
