#!/usr/bin/python3
"""Whether the rate of a drain depends on what it should not: how many tasks wait, over how many slices, how many are due
only tomorrow, whether a table is full or nearly empty, how many workers share it. No-op tasks on a private MariaDB; what
is compared alternates, and each ratio is taken within its round.

  scale.py [--only waiting,slices,future,last,workers] [--rounds 3] [--many 10000000] [--few 100000] [--rows 500000]
           [--slices 16384] [--future 1000000] [--long 5000000] [--workers 3] [--seconds 15] [--json FILE]
                                                              (scripts/bench scale sets what it needs)
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from chaos.mariadb import MariaDb
from chaos.processes import Process, wait_until
from chaos.zookeeper import Ensemble
from figures.figures import Figures

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
OPTIONS = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=6G", "--innodb-log-file-size=2G",
           "--performance-schema=OFF")
CHUNK = 1000  # rows of an INSERT
FEW_VERSIONS = 1000
SOON = 8  # seconds until what several workers share is due: all are there by then


class Table:
    """A database of its own with the tables, on the server of all."""

    def __init__(self, db, folder, database, slices=64):
        self.db, self.folder, self.database = db, folder, database
        self.environment = {"MILLRACE_STORE": db.url_of(database), "MILLRACE_PASSWORD_FILE": db.password_file}
        subprocess.run([BINARY / "millrace", "schema", "apply", "--slices", str(slices)], check=True,
                       env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)
        self.waiting = 0

    def value(self, sql, values=None):
        return self.db.value(sql, values, self.database)

    def put_in(self, rows, due="UTC_TIMESTAMP(6)"):
        connection = self.db.connect(database=self.database)
        with connection.cursor() as cursor:
            for start in range(0, rows, CHUNK):
                cursor.execute("INSERT INTO tasks (handler, params, run_at) SELECT 'noop', '{}', " + due
                               + f" FROM seq_1_to_{min(CHUNK, rows - start)}")
        connection.close()
        self.waiting += rows

    def fill_up_to(self, rows):
        """So many wait, none has ended, and the server has cleared away what the last drain left."""
        self.db.rows("TRUNCATE tasks_done", database=self.database)
        self.put_in(rows - self.waiting)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.db.kept_versions() >= FEW_VERSIONS:
            time.sleep(0.1)

    def start(self, name, *words):
        run = tempfile.mkdtemp(dir=self.folder)
        return Process(name, [BINARY / "millrace", "worker", "--plugins", BINARY / "plugins", "--state-dir", run, *words],
                       os.path.join(run, "log"), self.environment)

    def drain(self, seconds=None):
        """One worker works until nothing is due any more, or for so long; what it left waits on. Its peak of memory in MiB,
        where it is stopped."""
        worker = self.start("worker", *([] if seconds else ["--until-idle"]))
        peak = None
        if seconds:
            time.sleep(seconds)
            peak = worker.memory_peak_mib()
            worker.terminate()
        if worker.exit_code(600) != 0:
            raise AssertionError(worker.output()[-2000:])
        self.waiting = self.value("SELECT COUNT(*) FROM tasks")
        return peak

    def ends(self):
        """[(seconds since the first end, how many had ended by then)]"""
        rows = self.db.rows("SELECT TIMESTAMPDIFF(MICROSECOND, '2020-01-01', finished_at), COUNT(*) FROM tasks_done GROUP BY 1 "
                            "ORDER BY 1", database=self.database)
        ended, found = 0, []
        for at, count in rows:
            ended += count
            found.append(((at - rows[0][0]) / 1e6, ended))
        return found

    def rate(self, first=0.1, last=0.9, of=None):
        """Tasks a second between two parts of all that have ended, or of the first so many, by the database's clock."""
        ends = self.ends()
        total = of or ends[-1][1]
        begin = next(one for one in ends if one[1] >= total * first)
        end = next(one for one in ends if one[1] >= total * last)
        return (end[1] - begin[1]) / (end[0] - begin[0])


class Bench:
    def __init__(self, options, figures):
        self.options, self.figures = options, figures

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-scale-")
        self.databases = ("many", "few", "slices", "future", "lasting", "shared", "plain")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), OPTIONS, self.databases)
        self.figures.facts["server"] = f"MariaDB {self.db.value('SELECT VERSION()')}, {' '.join(OPTIONS)}"
        return self

    def __exit__(self, *_):
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def table(self, database, slices=64):
        return Table(self.db, self.folder, database, slices)

    def note(self, name, rate):
        self.figures.add(name, rate)
        print(f"{name}: {rate:,.0f} tasks/s", flush=True)

    def in_pairs(self, *sides):
        """[(name, what is to be done and returns a rate)]: in turn first and last, and the ratio of the first to the last."""
        for number in range(self.options.rounds):
            for name, measure in sides if number % 2 == 0 else reversed(sides):
                self.note(name, measure())
        self.figures.compare(f"{sides[0][0]} / {sides[1][0]}", sides[0][0], sides[1][0])

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

        self.in_pairs((f"worker, {self.options.many:,} wait", of_many), (f"worker, {self.options.few:,} wait", of_few))
        self.figures.facts["worker's memory"] = f"{max(peaks):.0f} MiB at most beside {self.options.many:,} that wait"
        self.db.rows("DROP DATABASE many")

    def all_of(self, table):
        def measure():
            table.fill_up_to(self.options.rows)
            table.drain()
            return table.rate()
        return measure

    def slices(self):
        self.in_pairs((f"worker, {self.options.slices:,} slices", self.all_of(self.table("slices", self.options.slices))),
                      ("worker, 64 slices", self.all_of(self.table("plain"))))

    def future(self):
        later, plain = self.table("future"), self.table("plain")
        later.put_in(self.options.future, "UTC_TIMESTAMP(6) + INTERVAL 1 DAY")

        def beside():
            later.fill_up_to(self.options.future + self.options.rows)
            later.drain()
            return later.rate()

        self.in_pairs((f"worker, {self.options.future:,} due tomorrow", beside), ("worker, none due tomorrow", self.all_of(plain)))

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
            self.in_pairs((f"worker, {self.options.workers} of them", with_workers(self.options.workers)),
                          ("worker, one alone", with_workers(1)))
        finally:
            ensemble.stop()


PARTS = ("waiting", "slices", "future", "last", "workers")


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
