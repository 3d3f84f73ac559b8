#!/usr/bin/python3
"""How long `millrace status` takes on a store that is full: tasks that wait and that have ended, in many tables of two
databases; the whole command from its start to its end, and the longest statement, by the server's own log.

  status.py [--tables 1024] [--waiting 10000000] [--finished 10000000] [--slices 16] [--handlers 2]
            [--rounds 7] [--json FILE] [--most 200 --most-statement 50]     (scripts/bench status sets what it needs)
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from chaos.mariadb import MariaDb, numbers
from figures.figures import Figures

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
OPTIONS = ("--innodb-buffer-pool-size=3G", "--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=1G",
           "--innodb-doublewrite=0", "--performance-schema=OFF", "--table-open-cache=8000", "--table-definition-cache=8000",
           "--log-output=TABLE", "--open-files-limit=65535")
DATABASES = ("east", "west")
HANDLERS = ("award_points", "noop", "send_mail", "http_call", "exec")


def millrace(environment, *words):
    return subprocess.run([BINARY / "millrace", *words], env={**os.environ, **environment}, capture_output=True, text=True)


class Store:
    """Two databases on a private MariaDB, half of the tables in each, and a file that names them."""

    def __init__(self, options):
        self.folder = tempfile.mkdtemp(prefix="millrace-status-")
        self.db = MariaDb(os.path.join(self.folder, "mariadb"), OPTIONS, DATABASES)
        self.config = os.path.join(self.folder, "millrace.json")
        with open(self.config, "w") as file:
            json.dump({"shards": {name: {"url": self.db.url_of(name)} for name in DATABASES}}, file)
        self.environment = {"MILLRACE_CONFIG": self.config, "MILLRACE_PASSWORD_FILE": self.db.password_file}
        self.tables = max(1, options.tables // len(DATABASES))
        for database in DATABASES:
            made = millrace({"MILLRACE_PASSWORD_FILE": self.db.password_file}, "schema", "apply", "--store",
                            self.db.url_of(database), "--tables", str(self.tables), "--slices", str(options.slices))
            if made.returncode != 0:
                raise SystemExit(made.stderr)

    def names(self):
        return ["tasks"] if self.tables == 1 else [f"tasks_{number:03d}" for number in range(self.tables)]

    def fill(self, options):
        tables = self.tables * len(DATABASES)
        waiting, finished = options.waiting // tables, options.finished // tables
        types = HANDLERS[:options.handlers]
        handler = f"ELT(1 + seq % {len(types)}, " + ", ".join(f"'{name}'" for name in types) + ")"
        for database in DATABASES:
            connection = self.db.connect(database=database)
            with connection.cursor() as cursor:
                for table in self.names():
                    cursor.execute(f"INSERT INTO {table} (slice, handler, params, run_at) SELECT seq DIV {len(types)} % {options.slices}, "
                                   f"{handler}, '{{\"n\":1}}', UTC_TIMESTAMP(6) - INTERVAL seq SECOND FROM {numbers(waiting)}")
                    cursor.execute(f"INSERT INTO {table}_done (id, slice, state, handler, params, run_at, attempt) SELECT "
                                   f"seq + {waiting}, seq % {options.slices}, 1, {handler}, '{{\"n\":1}}', UTC_TIMESTAMP(6), 1 "
                                   f"FROM {numbers(finished)}")
                    cursor.execute("INSERT INTO millrace_counters (task_table, handler, incarnation, succeeded) SELECT "
                                   f"'{table}', handler, CONCAT('w', seq, '.1'), COUNT(*) DIV 4 FROM {table}_done, "
                                   f"{numbers(4)} GROUP BY handler, seq")
                    cursor.execute(f"ANALYZE TABLE {table}, {table}_done")
                    cursor.fetchall()
            connection.close()

    def longest(self):
        """Of the statements since the last call: how many, and the longest in ms and as text."""
        # The settings' own statements are the tester's, too; they do not name a table of tasks.
        rows = self.db.rows("SELECT TIME_TO_SEC(query_time) * 1000, sql_text FROM mysql.slow_log WHERE sql_text LIKE '%tasks%' "
                            "OR sql_text LIKE '%millrace_%' ORDER BY query_time DESC")
        self.db.rows("TRUNCATE mysql.slow_log")
        return len(rows), float(rows[0][0]), rows[0][1]

    def log(self, on):
        self.db.rows("SET GLOBAL long_query_time=0")
        self.db.rows(f"SET GLOBAL slow_query_log={'ON' if on else 'OFF'}")
        self.db.rows("TRUNCATE mysql.slow_log")

    def close(self):
        self.db.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def measure(store, options, figures):
    """Alternating with the log of statements off, which slows them down, and on."""
    store.log(False)
    first = millrace(store.environment, "status")
    print(first.stdout + first.stderr)
    statements, text = 0, ""
    longest = 0.0
    for _ in range(options.rounds):
        start = time.monotonic()
        ended = millrace(store.environment, "status", "--json")
        figures.add("the command", (time.monotonic() - start) * 1000)
        if ended.returncode not in (0, 1):
            raise SystemExit(ended.stderr)
        store.log(True)
        millrace(store.environment, "status", "--json")
        statements, took, slowest = store.longest()
        figures.add("its longest statement", took)
        if took > longest:
            longest, text = took, slowest
        store.log(False)
    start = time.monotonic()
    millrace({}, "--version")
    figures.facts["the program's start alone"] = f"{(time.monotonic() - start) * 1000:.1f} ms"
    figures.facts["statements"] = str(statements)
    print("longest: " + str(text)[:300] + " …\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1024)
    parser.add_argument("--waiting", type=int, default=10_000_000)
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--slices", type=int, default=16)
    parser.add_argument("--handlers", type=int, choices=range(1, len(HANDLERS) + 1), default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--most", type=float, help="ends with 1 where the command's best round takes longer, in ms")
    parser.add_argument("--most-statement", type=float, help="the same of its longest statement")
    options = parser.parse_args()
    figures = Figures("status", "millrace status on a full store", "ms")
    store = Store(options)
    try:
        store.fill(options)
        figures.facts["tasks"] = (f"{options.waiting:,} waiting, {options.finished:,} finished, {options.tables} tables of "
                                  f"{options.slices} slices in {len(DATABASES)} databases, of {options.handlers} types")
        measure(store, options, figures)
    finally:
        store.close()
    print(figures.table())
    figures.write(options.json)
    # The best round: on a machine with other work the others say how busy that is.
    for series, most in (("the command", options.most), ("its longest statement", options.most_statement)):
        if most is not None and min(figures.series[series]) > most:
            sys.exit(f"{series}: {min(figures.series[series]):.0f} ms at best, more than {most:.0f}")


if __name__ == "__main__":
    main()
