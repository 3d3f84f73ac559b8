"""A scenario: one script that starts what it needs, does harm, and checks what must hold.

    def run(s):
        s.start_mariadb()
        s.apply_schema()
        worker = s.start_worker()
        ...
        s.check("every task done", s.settled(), s.waiting() == 0)

    if __name__ == "__main__":
        main(run)

Runs short (a minute at most, for every build) or with --full (the real figures). With MILLRACE_REPORT set, each check
is appended to that file as a JSON line. Whatever a scenario has started is stopped when it ends, however it ends.

Every transition of every row is noted by the database (transitions.py), and judged when the scenario has ended: a
scenario with a database that has nothing to judge fails.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from chaos import transitions
from chaos.mariadb import GivenServer, MariaDb
from chaos.processes import Process, wait_until
from chaos.zookeeper import Ensemble

SOURCE = pathlib.Path(os.environ.get("MILLRACE_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
BINARY = pathlib.Path(os.environ.get("MILLRACE_BINARY_DIR", SOURCE / "build" / "test"))
PAYMENTS = SOURCE / "conf" / "samples" / "payments.csv"
POINTS_SQL = SOURCE / "conf" / "samples" / "points.sql"
TOTAL_PAYMENTS, TOTAL_POINTS, TOTAL_CUSTOMERS = 16_049, 51_552, 599


class Scenario:
    def __init__(self, name, full, folder):
        self.name = name
        self.full = full
        self.folder = folder
        self.checks = []
        self.workers = []
        self.db = None
        self.port = None  # another one for the program than that of `db`
        self._servers = []
        self._recorded = []  # (server; None: what `db` is at the end, database)
        self._users = {}  # of each worker in the scenario's own database
        self.zookeeper = None

    # What must hold.

    def check(self, asked, measured, holds):
        """Notes a line of the report: what was asked, what was measured, whether it holds."""
        self.checks.append({"scenario": self.name, "asked": asked, "measured": str(measured), "pass": bool(holds)})
        print(f"{'ok    ' if holds else 'FAILED'}  {asked}: {measured}", flush=True)

    def check_time(self, asked, measure):
        """Checks a bound on times; `measure` gives what was measured and whether it holds. A build server does other
        things too: what was held up is measured again in the short form, twice at most. A program that is too slow is
        so each time; the full form measures once."""
        tries = self.size(3, 1)
        for number in range(1, tries + 1):
            measured, holds = measure()
            if holds or number == tries:
                break
            print(f"again   {asked}: {measured}", flush=True)
        self.check(asked, measured, holds)

    def size(self, short, full):
        return full if self.full else short

    # What a scenario starts.

    def path(self, name):
        return os.path.join(self.folder, name)

    def start_mariadb(self, options=(), **more):
        self.db = self.start_server("mariadb", options, **more)

    def start_given_or_mariadb(self):
        """The server that MILLRACE_TEST_MYSQL_URL names, or a private MariaDB."""
        url = os.environ.get("MILLRACE_TEST_MYSQL_URL")
        if not url:
            self.start_mariadb()
            return
        self.db = GivenServer(url, os.environ.get("MILLRACE_TEST_MYSQL_PASSWORD_FILE"))
        self._servers.append(self.db)

    def start_server(self, name, *arguments, **more):
        """A MariaDb that the program is told nothing of; it is stopped with the scenario."""
        server = MariaDb(self.path(name), *arguments, **more)
        self._servers.append(server)
        return server

    def start_zookeeper(self, servers=1):
        """From now on every worker and command is told of it: see cluster.py for workers of a cluster."""
        self.zookeeper = Ensemble(self.path("zookeeper"), servers)

    def millrace(self, *arguments, expect=0, timeout=300):
        """Runs one command of the program to its end; returns its standard output. `expect` may be several."""
        done = subprocess.run([BINARY / "millrace", *map(str, arguments)], env=self._environment(),
                              capture_output=True, text=True, timeout=timeout)
        if done.returncode not in (expect if isinstance(expect, tuple) else (expect,)):
            raise AssertionError(f"millrace {' '.join(map(str, arguments))}: exit code {done.returncode}, "
                                 f"expected {expect}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def cluster_status(self):
        """`cluster status --json`, whether or not work stands still; its workers and shards by their names."""
        status = json.loads(self.millrace("cluster", "status", "--json", expect=(0, 1)))
        for many, one in (("workers", "worker"), ("shards", "shard")):
            status[many] = {element[one]: element for element in status[many]}
        return status

    def ask(self, *arguments, answer):
        """Runs a command that asks, with the answer on its standard input; returns all it said."""
        done = subprocess.run([BINARY / "millrace", *arguments], env=self._environment(), input=answer,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.stdout

    def _environment(self, user=None):
        cluster = {"MILLRACE_ZK": self.zookeeper.address} if self.zookeeper else {}
        store = {"MILLRACE_STORE": self.db.url_of(user=user, port=self.port),
                 "MILLRACE_PASSWORD_FILE": self.db.password_file} if self.db else {}
        return {**os.environ, **store, **cluster}

    def apply_schema(self, *arguments):
        self.millrace("schema", "apply", *arguments)
        self.db.client(POINTS_SQL.read_text())
        self.record_transitions()

    def record_transitions(self, server=None, database=None, tables=None):
        """Of what the schema has by now, in the scenario's own database or another one."""
        transitions.record(server or self.db, database, tables)
        if (server, database) not in self._recorded:
            self._recorded.append((server, database))

    def start_worker(self, worker_id="w1", engine=None, handlers=None, arguments=(), state=None):
        """`engine` and `handlers` are those parts of the configuration. `state` names the state folder. A worker of the
        scenario's own database has a user of its own there, of its name."""
        config = {"engine": engine or {}, "handlers": handlers or {}}
        number = len(self.workers) + 1
        config_file = self.path(f"{worker_id}.{number}.json")
        pathlib.Path(config_file).write_text(json.dumps(config))
        state_dir = self.path(f"state-{state or worker_id}")
        os.makedirs(state_dir, exist_ok=True)
        return self.start_process(f"worker {worker_id}", "worker", "--id", worker_id, "--config", config_file,
                                  "--state-dir", state_dir, "--plugins", self.plugins(), *arguments,
                                  user=self._user_of(worker_id))

    def _user_of(self, worker_id):
        if self.db is None:
            return None
        if worker_id not in self._users:
            self._users[worker_id] = self.db.add_user(worker_id)
        return self._users[worker_id]

    def start_process(self, name, *arguments, user=None):
        """One run of the program that lasts; its output goes to a log of its own."""
        log = self.path(f"{name.replace(' ', '-')}.{len(self.workers) + 1}.log")
        process = Process(name, [BINARY / "millrace", *arguments], log, self._environment(user))
        self.workers.append(process)
        return process

    def plugins(self):
        """One folder with the shipped plugins and those that misbehave on purpose."""
        folder = pathlib.Path(self.path("plugins"))
        if not folder.exists():
            folder.mkdir(mode=0o755)
            for plugin in [*BINARY.glob("plugins/*.so"), BINARY / "tests/plugins/chaos_handlers.so"]:
                shutil.copy(plugin, folder)
        return folder

    # What the database says.

    def insert(self, handler, params, count=1, columns="", values=""):
        """Plain SQL inserts of `count` equal tasks; returns their first id."""
        connection = self.db.connect()
        with connection.cursor() as cursor:
            row = f"(%s, %s{values})"
            for start in range(0, count, 1000):
                rows = min(1000, count - start)
                cursor.execute(f"INSERT INTO tasks (handler, params{columns}) VALUES " + ", ".join([row] * rows),
                               [handler, json.dumps(params)] * rows)
                if start == 0:
                    first = cursor.lastrowid
        connection.close()
        return first

    def unfinished(self):
        return self.db.value("SELECT COUNT(*) FROM tasks")

    def running(self):
        return self.db.value("SELECT COUNT(*) FROM tasks WHERE state = 2")

    def done(self):
        return self.db.value("SELECT COUNT(*) FROM tasks_done WHERE state = 1")

    def succeeded(self):
        """As the workers count it: cheap, however much it is."""
        return self.db.value("SELECT CAST(COALESCE(SUM(succeeded), 0) AS SIGNED) FROM millrace_counters")

    def done_of(self, handler):
        return self.db.value("SELECT COUNT(*) FROM tasks_done WHERE state = 1 AND handler = %s", (handler,))

    def now(self):
        """By the database's clock, as in its columns."""
        return self.db.value("SELECT UTC_TIMESTAMP(6)")

    def failed(self):
        return self.db.value("SELECT COUNT(*) FROM tasks_failed")

    def dead(self):
        return self.db.value("SELECT COUNT(*) FROM millrace_incarnations WHERE dead = 1")

    def check_transitions(self):
        """Of all databases that were recorded; in one of them something must have happened."""
        events = 0
        known = [worker for worker, user in self._users.items() if user == worker]
        for server, database in self._recorded:
            users = known if server is None else ()  # workers that a config/shards names have one user for all
            found = transitions.check(server or self.db, database, users)
            self.check("every transition of every row is legal: one pool, one end an attempt"
                       + (", by its claimer" if users else "")
                       + (f" ({database})" if database else ""),
                       f"{len(found.faults)} faults in {found.events} transitions of {found.rows} rows"
                       + "".join(f"; {fault}" for fault in found.faults[:5]), not found.faults)
            events += found.events
        if self._servers and not events:
            self.check("the transitions of all rows are recorded", "none was", False)

    def check_points(self):
        points, customers, payments = self.db.rows(
            "SELECT CAST(SUM(points) AS SIGNED), COUNT(*), CAST(SUM(payments) AS SIGNED) FROM points_account")[0]
        self.check(f"{TOTAL_POINTS} points for {TOTAL_CUSTOMERS} customers, {TOTAL_PAYMENTS} payments",
                   f"{points} points, {customers} customers, {payments} payments",
                   (points, customers, payments) == (TOTAL_POINTS, TOTAL_CUSTOMERS, TOTAL_PAYMENTS))

    def wait_all_ended(self, seconds):
        wait_until("no task left in the waiting pool",
                   lambda: not self.db.value("SELECT EXISTS (SELECT 1 FROM tasks)"), seconds, 0.1)

    # The end.

    def stop_everything(self):
        for worker in self.workers:
            worker.kill()
        if self.zookeeper:
            self.zookeeper.stop()
        for server in self._servers:
            server.stop()

    def show_logs(self):
        for worker in self.workers[-3:]:
            print(f"--- {worker.name}, its last lines\n{worker.output()[-3000:]}", file=sys.stderr)


def _run(run, scenario):
    """What has failed is judged too: it may tell why."""
    for step, what in ((lambda: run(scenario), "the scenario runs to its end"),
                       (scenario.check_transitions, "the transitions can be judged")):
        try:
            step()
        except Exception as problem:
            scenario.check(what, str(problem) or repr(problem), False)
            traceback.print_exc()
    return bool(scenario.checks) and all(check["pass"] for check in scenario.checks)


def main(run):
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="the real figures")
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = pathlib.Path(sys.argv[0]).stem
    folder = tempfile.mkdtemp(prefix=f"millrace-{name}-")
    scenario = Scenario(name, arguments.full, folder)
    began = time.monotonic()
    passed = False
    try:
        passed = _run(run, scenario)
        if not passed:
            scenario.show_logs()
    finally:
        scenario.stop_everything()
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if os.environ.get("MILLRACE_REPORT"):
        with open(os.environ["MILLRACE_REPORT"], "a") as report:
            report.writelines(json.dumps(check) + "\n" for check in scenario.checks)
    print(f"{name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - began:.1f} s")
    sys.exit(0 if passed else 1)
