#!/usr/bin/python3
"""Somebody's snapshot of the database stands open (a dump, a forgotten transaction) while tasks come and go: whether the
worker keeps up with what is offered, what its due maps cost meanwhile, whether its memory grows, and how soon all is as
before once it is gone.

  held.py [--minutes 30] [--rate 2000] [--before 0] [--json FILE]
          [--least 0.95 --most-looking 0.05 --most-grown 0.1 --recovered-within 60]
                                                              (scripts/bench held sets what it needs)
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from chaos.load import SteadyLoad
from chaos.mariadb import MariaDb, numbers
from chaos.metrics import scrape, value
from chaos.processes import Process, free_port, wait_until
from figures.figures import Figures

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
OPTIONS = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G",
           "--performance-schema=OFF")
WINDOW = 10  # seconds in which what has ended is counted
STEP = 2  # seconds over which the cost of a due map is taken, before and after
MOST_DEARER = 2  # a map costs as before while it takes at most so many times as long, or
HARDLY_ANY_MS = 1.0  # so little
SHARE_OF_WINDOWS = 0.99
LEAST_TOLD = 5
PART_OF_MEMORY = 0.1  # of all windows: the last ones' memory beside that of the second ones, since the first warm up


class Held:
    """A private MariaDB with the tables, and a worker on it; stopped and removed at the end of the `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-held-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), OPTIONS)
        environment = {"MILLRACE_STORE": self.db.url_of(), "MILLRACE_PASSWORD_FILE": self.db.password_file}
        subprocess.run([BINARY / "millrace", "schema", "apply", "--slices", "64"], check=True,
                       env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
        self.port = free_port()
        self.worker = Process("worker", [BINARY / "millrace", "worker", "--plugins", BINARY / "plugins", "--state-dir",
                                         os.path.join(self.folder, "state"), "--http", f"127.0.0.1:{self.port}"],
                              os.path.join(self.folder, "worker.log"), environment)
        wait_until("the worker is ready", lambda: "worker registered" in self.worker.output(), 20)
        return self

    def __exit__(self, *_):
        self.worker.kill()
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def maps(self):
        """(how many due maps were asked for, what they took in seconds), since the worker's start."""
        series, _ = scrape(self.port)
        labels = {"shard": "main", "kind": "due"}
        return (value(series, "millrace_query_seconds_count", **labels), value(series, "millrace_query_seconds_sum", **labels))

    def cost_of_a_map_ms(self, seconds=STEP):
        count, took = self.maps()
        time.sleep(seconds)
        later, longer = self.maps()
        return 1000 * (longer - took) / max(1, later - count)

    def cost_of_a_whole_map_ms(self):
        """Asked for here, beside the worker: it wades through what the snapshot keeps of every group."""
        began = time.monotonic()
        self.db.rows("SELECT slice, handler, urgency, MIN(run_at) FROM tasks FORCE INDEX (due) WHERE urgency IS NOT NULL "
                     "GROUP BY slice, handler, urgency")
        return 1000 * (time.monotonic() - began)

    def drain(self, tasks):
        """So many no-op tasks come and go at once, and leave their versions behind."""
        before = self.db.value("SELECT COUNT(*) FROM tasks_done")
        for start in range(0, tasks, 10_000):
            self.db.rows(f"INSERT INTO tasks (handler, params) SELECT 'noop', '{{}}' FROM {numbers(min(10_000, tasks - start))}")
        wait_until("they are done", lambda: self.db.value("SELECT COUNT(*) FROM tasks_done") >= before + tasks, 600, 0.5)

    def ended_in_windows(self, since, count):
        """What ended in each window of so many after a time of the database."""
        ended = dict(self.db.rows(
            f"SELECT TIMESTAMPDIFF(MICROSECOND, %s, finished_at) DIV {WINDOW * 1_000_000}, COUNT(*) FROM tasks_done "
            "WHERE finished_at >= %s GROUP BY 1", (since, since)))
        return [ended.get(window, 0) for window in range(count)]


def measure(held, options, figures):
    load = SteadyLoad(held.db.connect, options.rate, lambda _: ("noop", {}))
    time.sleep(5)
    before = held.cost_of_a_map_ms(2 * STEP)
    snapshot = held.db.connect(autocommit=False)
    with snapshot.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SELECT COUNT(*) FROM tasks_failed")
    if options.before:
        held.drain(options.before)
    time.sleep(2)
    since = held.db.value("SELECT UTC_TIMESTAMP(6)")
    windows = round(options.minutes * 60 / WINDOW)
    memory = []  # of the worker, in MiB
    for _ in range(windows):
        (_, took), began = held.maps(), time.monotonic()
        time.sleep(WINDOW)
        looking = (held.maps()[1] - took) / (time.monotonic() - began)
        figures.add("worker, % of the time in due maps", 100 * looking)
        memory.append(held.worker.memory_mib())
    beside, whole = held.cost_of_a_map_ms(), held.cost_of_a_whole_map_ms()
    versions = held.db.kept_versions()
    snapshot.close()
    ended = time.monotonic()

    def is_as_before():
        return held.cost_of_a_map_ms() <= max(MOST_DEARER * before, HARDLY_ANY_MS) and held.db.kept_versions() < versions / 10

    wait_until("all is as before", is_as_before, 600, 0)
    recovered = time.monotonic() - ended
    figures.facts["recovered"] = f"{recovered:.0f} s after the snapshot's end, the last {STEP} s of looking included"
    load.finish()
    kept_up = [100 * count / (options.rate * WINDOW) for count in held.ended_in_windows(since, windows)]
    for share in kept_up:
        figures.add("worker, % of what was offered", share)
    least = sorted(range(windows), key=kept_up.__getitem__)[:LEAST_TOLD]
    figures.facts["the windows with the least"] = ", ".join(
        f"{kept_up[window]:.0f} % from second {window * WINDOW} on" for window in least)
    figures.facts["a due map"] = (f"{before:.2f} ms before, {beside:.2f} ms at the end of it, whole ones and parts; "
                                  f"{whole:.0f} ms as a whole; the server kept {versions:,} versions")
    part = max(1, int(windows * PART_OF_MEMORY))
    early, late = statistics.median(memory[part:2 * part] or memory), statistics.median(memory[-part:])
    figures.facts["the worker's memory"] = f"{early:.1f} MiB early, {late:.1f} MiB at the end, {max(memory):.1f} MiB at most"
    return recovered, late / early - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, help="for which the snapshot is held")
    parser.add_argument("--rate", type=int, default=2000, help="tasks a second that are offered")
    parser.add_argument("--before", type=int, default=0, help="tasks that come and go at once when the snapshot has begun")
    parser.add_argument("--json")
    parser.add_argument("--least", type=float,
                        help="ends with 1 where in more than a hundredth of all windows less than this of what is offered ends")
    parser.add_argument("--most-looking", type=float, help="the same where due maps take more than this of the time, in all")
    parser.add_argument("--most-grown", type=float, help="the same where the worker's memory grows by more than this share")
    parser.add_argument("--recovered-within", type=float, help="the same of the seconds after the snapshot's end")
    options = parser.parse_args()
    figures = Figures("held", f"Beside a snapshot that is held for {options.minutes:g} minutes", "%")
    with Held() as held:
        figures.facts["server"] = f"{held.db.value('SELECT VERSION()')}, {' '.join(OPTIONS)}"
        figures.facts["offered"] = (f"{options.rate:,} tasks a second by INSERTs of {SteadyLoad.TICK * options.rate:.0f}; "
                                    f"{options.before:,} at once before them; windows of {WINDOW} s")
        recovered, grown = measure(held, options, figures)
    kept_up = sorted(figures.series["worker, % of what was offered"])
    worst = kept_up[int(len(kept_up) * (1 - SHARE_OF_WINDOWS))]
    looking = statistics.mean(figures.series["worker, % of the time in due maps"])
    figures.facts["in 99 % of all windows"] = f"{worst:.1f} % and more of what was offered"
    figures.facts["due maps"] = f"{looking:.2f} % of the time"
    print("\n" + figures.table())
    figures.write(options.json)
    too = [text for text, wrong in (
        (f"{worst:.1f} % of what was offered", options.least is not None and worst < 100 * options.least),
        (f"{looking:.2f} % of the time in due maps", options.most_looking is not None and looking > 100 * options.most_looking),
        (f"{100 * grown:.0f} % more memory at the end", options.most_grown is not None and grown > options.most_grown),
        (f"as before after {recovered:.0f} s",
         options.recovered_within is not None and recovered > options.recovered_within)) if wrong]
    if too:
        sys.exit("beyond its bounds: " + "; ".join(too))


if __name__ == "__main__":
    main()
