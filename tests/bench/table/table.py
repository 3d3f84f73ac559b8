"""A database of its own with the tables, on the server of all, and what one worker makes of it."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from chaos.mariadb import numbers
from chaos.processes import Process

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
CHUNK = 1000  # rows of an INSERT
MOST_IN_A_RUN = 1000
FEW_VERSIONS = 1000


class Table:
    """So many tables share the rows evenly, and so do so many types, each of which does nothing; `params` is a text of SQL.
    Slices are at random, or `in_runs`: as `submit` gives them to what it is told to add at once."""

    def __init__(self, db, folder, database, slices=64, tables=1, types=1, params="'{}'", in_runs=False):
        self.db, self.folder, self.database, self.params = db, folder, database, params
        self.slices, self.in_runs = slices, in_runs
        self.handler = "'noop'" if types == 1 else f"CONCAT('noop', seq % {types})"
        self.environment = {"MILLRACE_STORE": db.url_of(database), "MILLRACE_PASSWORD_FILE": db.password_file}
        subprocess.run([BINARY / "millrace", "schema", "apply", "--slices", str(slices), "--tables", str(tables)], check=True,
                       env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)
        self.names = ["tasks"] if tables == 1 else [f"tasks_{number:03d}" for number in range(tables)]
        self.config = os.path.join(tempfile.mkdtemp(dir=folder), "config.json")
        with open(self.config, "w") as file:
            json.dump({"handlers": {f"noop{number}": {"uses": "noop"} for number in range(types if types > 1 else 0)}}, file)
        self.waiting = 0

    def value(self, sql, values=None):
        return self.db.value(sql, values, self.database)

    def slice_of(self, start, of_table):
        """A text of SQL: of the row `seq` of those from `start` on."""
        run = max(1, min(MOST_IN_A_RUN, of_table // (8 * self.slices)))
        return f"({start} + seq - 1) DIV {run} % {self.slices}" if self.in_runs else f"FLOOR(RAND() * {self.slices})"

    def put_in(self, rows, due="UTC_TIMESTAMP(6)"):
        connection = self.db.connect(database=self.database)
        with connection.cursor() as cursor:
            for place, name in enumerate(self.names):
                of_table = rows // len(self.names) + (place < rows % len(self.names))
                for start in range(0, of_table, CHUNK):
                    cursor.execute(f"INSERT INTO {name} (slice, handler, params, run_at) SELECT {self.slice_of(start, of_table)}, "
                                   f"{self.handler}, {self.params}, {due} FROM {numbers(min(CHUNK, of_table - start))}")
        connection.close()
        self.waiting += rows

    def left(self):
        return sum(self.value(f"SELECT COUNT(*) FROM {name}") for name in self.names)

    def fill_up_to(self, rows):
        """So many wait, none has ended, and the server has cleared away what the last drain left, and written what was put
        in: it would do both beside whatever is measured."""
        for name in self.names:
            self.db.rows(f"TRUNCATE {name}_done", database=self.database)
        self.put_in(rows - self.waiting)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.db.kept_versions() >= FEW_VERSIONS:
            time.sleep(0.1)
        connection = self.db.connect(database=self.database)
        with connection.cursor() as cursor:
            cursor.execute(f"FLUSH TABLES {', '.join(self.names)} FOR EXPORT")
            cursor.execute("UNLOCK TABLES")
        connection.close()

    def start(self, name, *words):
        run = tempfile.mkdtemp(dir=self.folder)
        return Process(name, [BINARY / "millrace", "worker", "--plugins", BINARY / "plugins", "--config", self.config,
                              "--state-dir", run, *words], os.path.join(run, "log"), self.environment)

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
        self.waiting = self.left()
        return peak

    def ends(self):
        """[(seconds since the first end, how many had ended by then)]"""
        counts = {}
        for name in self.names:
            for at, count in self.db.rows("SELECT TIMESTAMPDIFF(MICROSECOND, '2020-01-01', finished_at), COUNT(*) "
                                          f"FROM {name}_done GROUP BY 1", database=self.database):
                counts[at] = counts.get(at, 0) + count
        ended, found, first = 0, [], min(counts)
        for at, count in sorted(counts.items()):
            ended += count
            found.append(((at - first) / 1e6, ended))
        return found

    def rate(self, first=0.1, last=0.9, of=None):
        """Tasks a second between two parts of all that have ended, or of the first so many, by the database's clock."""
        ends = self.ends()
        total = of or ends[-1][1]
        begin = next(one for one in ends if one[1] >= total * first)
        end = next(one for one in ends if one[1] >= total * last)
        return (end[1] - begin[1]) / (end[0] - begin[0])
