#!/usr/bin/python3
"""Tens of millions of tasks go through one table: whether its size on the disk, a page of a scan, a due map and the rate of
a drain are at the end as they were at the start. Each round fills the table, and one worker drains it; the table of
what has ended is emptied before the next.

  churn.py [--tasks 50000000] [--at-once 1000000] [--json FILE]
                                                              (scripts/bench churn sets what it needs)
"""
import argparse
import http.client
import os
import shutil
import statistics
import tempfile
import time

from chaos.mariadb import MariaDb
from chaos.metrics import scrape, value
from chaos.processes import free_port
from figures.figures import Figures
from table.table import Table

OPTIONS = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=2G", "--innodb-log-file-size=2G",
           "--performance-schema=OFF")
SHARE = 0.2  # of all rounds: so many are the first, and as many the last


class Round:
    """What one showed."""

    def __init__(self, table, rows):
        table.fill_up_to(rows)
        self.full = table.db.file_size("tasks", table.database)
        port = free_port()
        worker = table.start("worker", "--until-idle", "--http", f"127.0.0.1:{port}")
        series = {}
        while worker.runs():
            try:
                series, _ = scrape(port)
            except (OSError, http.client.HTTPException):  # before it listens, and after
                pass
            time.sleep(0.1)
        if worker.exit_code(0) != 0:
            raise AssertionError(worker.output()[-2000:])
        table.waiting = table.left()
        self.rate = table.rate()
        self.map_ms, self.page_ms = self.mean_ms(series, "due"), self.mean_ms(series, "scan")
        self.size = table.db.file_size("tasks", table.database)

    @staticmethod
    def mean_ms(series, kind):
        labels = {"shard": "main", "kind": kind}
        count = value(series, "millrace_query_seconds_count", **labels)
        return 1000 * value(series, "millrace_query_seconds_sum", **labels) / count

    def __str__(self):
        return (f"{self.rate:,.0f} tasks/s, a page {self.page_ms:.2f} ms, a due map {self.map_ms:.2f} ms, "
                f"{self.full / 1e6:,.0f} MB full and {self.size / 1e6:,.0f} MB empty")


def told(rounds, of, form):
    return form.format(statistics.median(of(one) for one in rounds))


def measure(db, folder, options, figures):
    table = Table(db, folder, db.database)
    rounds = []
    for number in range(max(2, options.tasks // options.at_once)):
        rounds.append(Round(table, options.at_once))
        print(f"after {(number + 1) * options.at_once:,}: {rounds[-1]}", flush=True)
    part = max(1, int(len(rounds) * SHARE))
    first, last = rounds[:part], rounds[-part:]
    names = [f"worker, the {which} {part * options.at_once:,}" for which in ("last", "first")]
    for name, those in zip(names, (last, first)):
        for one in those:
            figures.add(name, one.rate)
    figures.compare("last / first", *names)
    for what, of, form in (("a page", lambda one: one.page_ms, "{:.2f} ms"), ("a due map", lambda one: one.map_ms, "{:.2f} ms"),
                           ("the table's file, full", lambda one: one.full / 1e6, "{:,.0f} MB"),
                           ("the table's file, drained", lambda one: one.size / 1e6, "{:,.0f} MB")):
        figures.facts[what] = f"{told(first, of, form)} at the start, {told(last, of, form)} at the end, medians"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50_000_000, help="in all")
    parser.add_argument("--at-once", type=int, default=1_000_000, help="tasks of a round")
    parser.add_argument("--json")
    options = parser.parse_args()
    figures = Figures("churn", f"{options.tasks:,} tasks through one table", "tasks/s")
    folder = tempfile.mkdtemp(prefix="millrace-churn-")
    db = MariaDb(os.path.join(folder, "mariadb"), OPTIONS)
    try:
        figures.facts["server"] = f"{db.value('SELECT VERSION()')}, {' '.join(OPTIONS)}"
        measure(db, folder, options, figures)
    finally:
        db.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n" + figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
