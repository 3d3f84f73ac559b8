#!/usr/bin/python3
"""Whether the rate of a drain depends on what it should not: how many tasks wait, over how many slices (at random, and in
runs as `submit` gives them), how many are due only tomorrow, whether a table is full or nearly empty, how many workers
share it, how many types and tables there are; and what their parameters' bytes make of it. No-op tasks on a private
MariaDB; what is compared alternates, and each ratio is taken within its round.

  scale.py [--only waiting,slices,future,last,workers,types,tables,bytes] [--rounds 3] [--many 10000000] [--few 100000]
           [--rows 500000] [--slices 16384] [--future 1000000] [--long 5000000] [--workers 3] [--types 200] [--tables 1000]
           [--bytes 65536] [--seconds 15] [--json FILE]
                                                              (scripts/bench scale sets what it needs)
"""
import argparse
import os
import shutil
import statistics
import tempfile
import time

from chaos.mariadb import MariaDb
from chaos.processes import wait_until
from chaos.zookeeper import Ensemble
from figures.figures import Figures
from table.table import Table

OPTIONS = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=6G", "--innodb-log-file-size=2G",
           "--performance-schema=OFF")
BYTES_OF_A_DRAIN = 1_000_000_000  # of parameters, at most
SOON = 8  # seconds until what several workers share is due: all are there by then


class Bench:
    def __init__(self, options, figures):
        self.options, self.figures = options, figures

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-scale-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), OPTIONS)
        self.figures.facts["server"] = f"{self.db.value('SELECT VERSION()')}, {' '.join(OPTIONS)}"
        return self

    def __exit__(self, *_):
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def table(self, database, slices=64, **more):
        self.db.rows(f"CREATE DATABASE IF NOT EXISTS {database}")
        return Table(self.db, self.folder, database, slices, **more)

    def note(self, name, rate):
        self.figures.add(name, rate)
        print(f"{name}: {rate:,.0f} tasks/s", flush=True)

    def in_turn(self, *sides):
        """[(name, what is to be done and returns a rate)]: in turn first and last, and the ratios of all to the last."""
        for number in range(self.options.rounds):
            for name, measure in sides if number % 2 == 0 else reversed(sides):
                self.note(name, measure())
        *others, (base, _) = sides
        for name, _ in others:
            self.figures.compare(f"{name} / {base}", name, base)

    def waiting(self):
        many, few, peaks = self.table("many"), self.table("few"), []

        def of_many():
            many.fill_up_to(self.options.many)
            peaks.append(many.drain(self.options.seconds))
            self.note(f"worker, {self.options.many:,} wait, {self.options.seconds:g} s of it", many.rate())
            return many.rate(of=self.options.few)  # as few as of the few: a drain slows down while it lasts

        def of_few():
            few.fill_up_to(self.options.few)
            few.drain()
            return few.rate()

        self.in_turn((f"worker, {self.options.many:,} wait", of_many), (f"worker, {self.options.few:,} wait", of_few))
        self.figures.facts["worker's memory"] = f"{max(peaks):.0f} MiB at most beside {self.options.many:,} that wait"
        self.db.rows("DROP DATABASE many")

    def all_of(self, table, rows=None):
        def measure():
            table.fill_up_to(rows or self.options.rows)
            table.drain()
            return table.rate()
        return measure

    def slices(self):
        for how, in_runs in (("", False), (" in runs", True)):
            self.in_turn(*((f"worker, {count:,} slices{how}",
                            self.all_of(self.table(f"slices_{count}_{in_runs:d}", count, in_runs=in_runs)))
                           for count in (self.options.slices, 64)))

    def future(self):
        later, plain = self.table("future"), self.table("plain")
        later.put_in(self.options.future, "UTC_TIMESTAMP(6) + INTERVAL 1 DAY")

        def beside():
            later.fill_up_to(self.options.future + self.options.rows)
            later.drain()
            return later.rate()

        self.in_turn((f"worker, {self.options.future:,} due tomorrow", beside), ("worker, none due tomorrow", self.all_of(plain)))

    def last(self):
        table = self.table("lasting")
        for _ in range(self.options.rounds):
            table.fill_up_to(self.options.long)
            table.drain()
            self.note(f"worker, last tenth of {self.options.long:,}", table.rate(0.9, 0.999))
            self.note("worker, first tenth", table.rate(0.001, 0.1))
        self.figures.compare("last tenth / first", f"worker, last tenth of {self.options.long:,}", "worker, first tenth")

    def workers(self):
        table = self.table("shared")
        ensemble = Ensemble(os.path.join(self.folder, "zookeeper"))
        beats = "SELECT COUNT(*) FROM millrace_beats b JOIN millrace_incarnations i ON i.id = b.id WHERE i.dead = 0"

        def with_workers(count):
            def measure():
                table.fill_up_to(0)
                cluster = os.path.basename(tempfile.mkdtemp(dir=self.folder)).replace("_", "-")
                started = [table.start(f"w{number}", "--id", f"w{number}", "--zk", ensemble.address, "--cluster", cluster)
                           for number in range(count)]
                wait_until("all workers beat", lambda: table.value(beats) >= count, 60, 0.2)
                time.sleep(SOON)
                due = table.value(f"SELECT UTC_TIMESTAMP(6) + INTERVAL {SOON + self.options.rows // 50_000} SECOND")
                table.put_in(self.options.rows, f"'{due}'")
                wait_until("all are done", lambda: not table.value("SELECT EXISTS (SELECT 1 FROM tasks)"), 300, 0.5)
                table.waiting = 0
                for worker in started:
                    worker.terminate()
                return table.rate()
            return measure

        try:
            self.in_turn((f"worker, {self.options.workers} of them", with_workers(self.options.workers)),
                          ("worker, one alone", with_workers(1)))
        finally:
            ensemble.stop()


    def types(self):
        counts = sorted({self.options.types, min(10, self.options.types), 1}, reverse=True)
        self.in_turn(*((f"worker, {count:,} type{'s' if count > 1 else ''}",
                        self.all_of(self.table(f"types_{count}", types=count))) for count in counts))

    def tables(self):
        counts = sorted({self.options.tables, min(32, self.options.tables), 1}, reverse=True)
        self.in_turn(*((f"worker, {count:,} table{'s' if count > 1 else ''}",
                        self.all_of(self.table(f"tables_{count}", max(1, 64 // count), tables=count))) for count in counts))

    def bytes(self):
        sizes = sorted({self.options.bytes, 8192, 1024, 100}, reverse=True)
        sides = {size: f"worker, {size:,} bytes of parameters" for size in sizes}
        self.in_turn(*((name, self.all_of(
            self.table(f"bytes_{size}", params=f"CONCAT('{{\"x\":\"', REPEAT('x', {size - 8}), '\"}}')"),
            min(self.options.rows, BYTES_OF_A_DRAIN // size))) for size, name in sides.items()))
        self.figures.facts["parameters, MB/s"] = ", ".join(
            f"{statistics.median(self.figures.series[name]) * size / 1e6:,.0f} of {size:,} bytes" for size, name in sides.items())


PARTS = ("waiting", "slices", "future", "last", "workers", "types", "tables", "bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="these of " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=10_000_000, help="tasks that wait at once")
    parser.add_argument("--few", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=500_000, help="tasks of a drain, but for those")
    parser.add_argument("--slices", type=int, default=16_384)
    parser.add_argument("--future", type=int, default=1_000_000, help="tasks that are due tomorrow")
    parser.add_argument("--long", type=int, default=5_000_000, help="tasks of the drain whose tenths are compared")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--types", type=int, default=200)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--bytes", type=int, default=65_536, help="of the parameters of a task, beside 8192, 1024 and 100")
    parser.add_argument("--seconds", type=float, default=15, help="for which those of --many are drained")
    parser.add_argument("--json")
    options = parser.parse_args()
    parts = options.only.split(",")
    for part in parts:
        if part not in PARTS:
            parser.error(f"--only: there is no {part}, but {', '.join(PARTS)}")
    figures = Figures("scale", "One worker's drain, by what should not matter", "tasks/s")
    with Bench(options, figures) as bench:
        for part in parts:
            getattr(bench, part)()
    print("\n" + figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
