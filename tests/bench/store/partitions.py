"""PARTITION BY the slice, beside the same tables without it: the statements of a drain, and the due map.

Usage: partitions.py [--rows 100000] [--rounds 4]. Starts a private MariaDB, and drains the tables of fixed_width.sql, as
they are and partitioned, in turn on one connection, 999 rows of one slice a batch: keyset scan, claim, settle, two
durable commits. Where a way names the slice, its claims and settles do, so that one partition is asked.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
SLICES = 64
BATCH = 999
CLAIMER = "6501337291844056010"
KEPT = ("id,slice,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,claimed_by,claimed_at,progress,"
        "created_at")
DUE_MAP = ("SELECT slice,handler,urgency,MIN(run_at) FROM tasks FORCE INDEX (due) WHERE slice BETWEEN 0 AND 63 "
           "AND urgency IS NOT NULL GROUP BY slice,handler,urgency;\n")
MAPS = 20  # looked at before each drain
# What is compared: whether its tasks are partitioned, and whether its statements name the slice.
WAYS = {"plain": (False, False), "plain, slice named": (False, True),
        "partitioned": (True, False), "partitioned, slice named": (True, True)}
# The slice has to be in every key then.
PARTITIONED = {"PRIMARY KEY (id),": "PRIMARY KEY (id,slice),",
               ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;":
               ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin PARTITION BY HASH(slice) PARTITIONS 16;"}


class Server:
    """A MariaDB of its own, without a network, which ends with the program."""

    def __init__(self, folder):
        self.socket = folder + "/socket"
        subprocess.run(["mariadb-install-db", "--no-defaults", "--datadir=" + folder + "/data",
                        "--auth-root-authentication-method=normal", "--user=root"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        self.process = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=root", "--datadir=" + folder + "/data", "--socket=" + self.socket,
             "--skip-networking", "--log-error=" + folder + "/log", "--innodb-flush-log-at-trx-commit=1",
             "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--performance-schema=OFF"],
            stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.socket):
            if time.monotonic() > deadline:
                raise SystemExit("mariadbd did not start: see " + folder + "/log")
            time.sleep(0.1)

    def ask(self, statements, database=""):
        command = ["mariadb", "-uroot", "--socket=" + self.socket, "-N", "-B"] + ([database] if database else [])
        return subprocess.run(command, input=statements.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def schema(partitioned):
    tasks, others = (HERE / "fixed_width.sql").read_text().split("CREATE TABLE tasks_done", maxsplit=1)
    for plain, parted in PARTITIONED.items() if partitioned else ():
        if tasks.count(plain) != 1:
            raise SystemExit(f"fixed_width.sql: of its tasks `{plain}` is to stand there once")
        tasks = tasks.replace(plain, parted)
    return tasks + "CREATE TABLE tasks_done" + others


def drain_text(rows, names_slice):
    text = ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET autocommit=0;"]
    for slice_number in range(SLICES):
        own = [number for number in range(1, rows + 1) if number % SLICES == slice_number]
        for first in range(0, len(own), BATCH):
            batch = own[first:first + BATCH]
            ids = ",".join(map(str, batch))
            named = f" AND slice={slice_number}" if names_slice else ""
            after = " AND (run_at=@at AND id>@id OR run_at>@at)" if first else ""
            running = (f" FROM tasks FORCE INDEX (PRIMARY) WHERE id IN ({ids}) AND state=2 AND claimed_by={CLAIMER} "
                       f"AND attempt=1{named}")
            text += [
                "SELECT MAX(run_at),MAX(id),SUM(LENGTH(params)),SUM(attempt) INTO @at,@id,@bytes,@attempts FROM (SELECT "
                "id,run_at,state,attempt,updated_at,params,biz_key,batch,progress,created_at FROM tasks FORCE INDEX "
                f"(due) WHERE slice={slice_number} AND handler='noop' AND urgency=50{after} AND "
                f"run_at<=UTC_TIMESTAMP(6) ORDER BY run_at,id LIMIT {BATCH}) page;",
                f"UPDATE tasks FORCE INDEX (PRIMARY) SET state=2, attempt=attempt+1, claimed_by={CLAIMER}, "
                f"claimed_at=UTC_TIMESTAMP(6) WHERE id IN ({ids}) AND state=0 AND attempt=0 AND "
                f"run_at<=UTC_TIMESTAMP(6){named} AND EXISTS (SELECT 1 FROM millrace_incarnations WHERE id={CLAIMER} "
                "AND dead=0 LOCK IN SHARE MODE); COMMIT;",
                f"INSERT INTO tasks_done ({KEPT},state,last_error,result,finished_at) SELECT {KEPT},1,last_error,'',"
                f"UTC_TIMESTAMP(6){running} FOR UPDATE; DELETE tasks{running};",
                "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded) VALUES "
                f"('tasks','noop','',{CLAIMER},{len(batch)}) ON DUPLICATE KEY UPDATE "
                "succeeded=succeeded+VALUES(succeeded); COMMIT;"]
    return "\n".join(text)


def measure(server, database, rows, text):
    """Tasks a second, the server's CPU for a task in microseconds, and a due map in milliseconds."""
    server.ask("TRUNCATE tasks; TRUNCATE tasks_done; INSERT INTO tasks (id,handler,params,slice) SELECT seq,'noop','{}',"
               f"seq%{SLICES} FROM seq_1_to_{rows}; ANALYZE TABLE tasks;", database)
    begun = time.monotonic()
    server.ask(DUE_MAP * MAPS, database)
    map_ms = (time.monotonic() - begun) * 1000 / MAPS
    cpu, begun = server.cpu_seconds(), time.monotonic()
    server.ask(text, database)
    took, cpu = time.monotonic() - begun, server.cpu_seconds() - cpu
    counts = server.ask("SELECT COUNT(*) FROM tasks; SELECT COUNT(*) FROM tasks_done;", database).split()
    if counts != ["0", str(rows)]:
        raise SystemExit(f"of {rows} tasks {counts[0]} are left and {counts[1]} are done")
    return rows / took, cpu * 1e6 / rows, map_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-partitions-") as folder:
        server = Server(folder)
        try:
            run(server, options)
        finally:
            server.stop()


def run(server, options):
    texts = {named: drain_text(options.rows, named) for named in (False, True)}
    databases = {way: f"way{number}" for number, way in enumerate(WAYS)}
    for way, (partitioned, _) in WAYS.items():
        server.ask(f"CREATE DATABASE {databases[way]}; USE {databases[way]}; " + schema(partitioned) +
                   f"\nINSERT INTO millrace_incarnations (id) VALUES ({CLAIMER});")
    seen = {way: [] for way in WAYS}
    for number in range(options.rounds):
        # In turn first and last, so that a drift of the machine favours nobody.
        for way in list(WAYS)[::1 if number % 2 == 0 else -1]:
            seen[way].append(measure(server, databases[way], options.rows, texts[WAYS[way][1]]))
    print(server.ask("SELECT VERSION()").strip())
    for way, measured in seen.items():
        rate, cpu, map_ms = (statistics.median(one) for one in zip(*measured))
        ratios = [own[0] / plain[0] for own, plain in zip(measured, seen["plain"])]
        print(f"{way}: {rate:,.0f} tasks/s, server {cpu:.1f} us of CPU a task, due map {map_ms:.1f} ms; rate beside "
              f"plain {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
