"""`millrace doctor` on real servers: nothing on a healthy cluster, and each fault that is made for real, with its remedy."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest

from chaos.mariadb import MariaDb
from chaos.processes import Process, free_port, free_ports, wait_until
from chaos.zookeeper import Ensemble

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
MILLRACE = str(BINARY / "millrace")
QUIET = "quiet"  # a database on which nobody works


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-doctor-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.plugins = cls.folder / "plugins"
        cls.plugins.mkdir(mode=0o755)
        shutil.copy(BINARY / "plugins/noop.so", cls.plugins)
        os.chmod(cls.plugins / "noop.so", 0o755)
        cls.db = MariaDb(str(cls.folder / "db"), databases=[QUIET])
        cls.addClassCleanup(cls.db.stop)
        cls.user = cls.db.add_user("worker")
        cls.ensemble = Ensemble(str(cls.folder / "zookeeper"))
        cls.addClassCleanup(cls.ensemble.stop)
        for store in (cls.store(), cls.store(QUIET)):
            made = cls.run_command("schema", "apply", "--store", store)
            assert made.returncode == 0, made.stdout
        # The doctor watches each beat for a third of the lease.
        cls.brisk = cls.folder / "brisk.json"
        cls.brisk.write_text('{"engine":{"lease":"2s"}}')
        cls.start("w1", "--zk", cls.ensemble.address, "--store", cls.store(), "--handlers", "noop")
        wait_until("the worker has its slices",
                   lambda: '"slices":64' in cls.run_command("cluster", "status", "--json", "--zk", cls.ensemble.address,
                                                            "--store", cls.store()).stdout, 60, 0.5)

    @classmethod
    def store(cls, database=None, user=None, port=None):
        return cls.db.url_of(database, user or cls.user, port)

    @classmethod
    def environment(cls):
        return {**os.environ, "HOME": str(cls.folder), "MILLRACE_PASSWORD_FILE": cls.db.password_file}

    @classmethod
    def run_command(cls, *words, environment=None):
        return subprocess.run([MILLRACE, *words], env={**cls.environment(), **(environment or {})}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)

    @classmethod
    def start(cls, name, *words):
        process = Process(name, [MILLRACE, "worker", "--id", name, "--state-dir", str(cls.folder / f"state-{name}"),
                                 "--plugins", str(cls.plugins), "--config", str(cls.brisk), *words], str(cls.folder / f"{name}.log"),
                          cls.environment())
        cls.addClassCleanup(process.kill)
        return process

    def doctor(self, *words, environment=None, code=None):
        """What it finds, without notes: {name: finding}; what is said of several of one name, a line each."""
        words = list(words)
        for flag, value in (("--plugins", self.plugins), ("--state-dir", self.folder / "state-doctor")):
            if flag not in words:
                words += [flag, str(value)]
        done = self.run_command("doctor", "--json", *words, environment=environment)
        self.assertIn(done.returncode, (0, 1, 3), done.stdout)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout)
        found = {}
        for finding in json.loads(done.stdout)["findings"]:
            if finding["severity"] == "note":
                continue
            if finding["name"] in found:
                found[finding["name"]]["what"] += "\n" + finding["what"]
            else:
                found[finding["name"]] = finding
        self.assertEqual(done.returncode == 0, not found, done.stdout)
        for finding in found.values():
            self.assertTrue(finding["what"] and finding["remedy"] and finding["where"], finding)
        return found

    def clustered(self, *words, **more):
        return self.doctor("--zk", self.ensemble.address, "--store", self.store(), *words, **more)

    def quiet(self, *words, **more):
        return self.doctor("--store", self.store(QUIET), *words, **more)

    def sql(self, text, database=None):
        self.db.client(text, database)

    @contextlib.contextmanager
    def fault(self, made, undone, database=None):
        self.sql(made, database)
        try:
            yield
        finally:
            self.sql(undone, database)

    def contents(self, database):
        """A checksum of each table."""
        names = [row[0] for row in self.db.rows("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA="
                                                "DATABASE() AND TABLE_TYPE='BASE TABLE'", database=database)]
        return sorted(self.db.rows("CHECKSUM TABLE " + ",".join(names), database=database))

    def file(self, name, text="", mode=0o600):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path


class FaultsTest(Doctor):
    def test_faults_of_the_tables(self):
        with self.fault("ALTER TABLE tasks DROP INDEX due",
                        "ALTER TABLE tasks ADD INDEX due (slice,handler,urgency,run_at)", QUIET):
            self.assertIn("due", self.quiet(code=1)["store.schema"]["what"])
        with self.fault("RENAME TABLE tasks_keys TO away", "RENAME TABLE away TO tasks_keys", QUIET):
            self.assertIn("tasks_keys", self.quiet(code=1)["store.schema"]["what"])
        with self.fault("ALTER TABLE tasks_done MODIFY result VARCHAR(10) NULL",
                        "ALTER TABLE tasks_done MODIFY result TEXT NULL", QUIET):
            self.assertIn("result", self.quiet("--scratch", code=1)["store.schema"]["what"])
        with self.fault("UPDATE millrace_schema SET version=version-2 WHERE task_table=''",
                        "UPDATE millrace_schema SET version=version+2 WHERE task_table=''", QUIET):
            self.assertIn("upgrade", self.quiet(code=1)["store.schema"]["what"])
        with self.fault("CREATE TABLE zz0123456789abcdef_tasks (id INT PRIMARY KEY); "
                        "CREATE VIEW zz0123456789abcdef_tasks_all AS SELECT 1",
                        "DROP VIEW zz0123456789abcdef_tasks_all; DROP TABLE zz0123456789abcdef_tasks", QUIET):
            left = self.quiet(code=1)["store.leftovers"]["what"]
            self.assertIn("2 tables and views behind, whose names begin with zz0123456789abcdef_", left)
            with contextlib.closing(self.db.connect()) as another:  # that looks at this moment
                with another.cursor() as cursor:
                    cursor.execute("SELECT GET_LOCK('zz0123456789abcdef_',0)")
                self.assertEqual(self.quiet(code=0), {})
        with self.fault("INSERT INTO tasks_failed (id,slice,state,handler,run_at,params) VALUES "
                        "(1,0,-1,'noop',UTC_TIMESTAMP(6),'{}')", "DELETE FROM tasks_failed", QUIET):
            self.assertIn("tasks_failed has 1 row,", self.quiet(code=1)["store.counters"]["what"])
        with self.fault("INSERT INTO tasks_failed (id,slice,state,handler,run_at,params,last_error) VALUES "
                        "(1,0,-1,'noop',UTC_TIMESTAMP(6),'{}','quarantined: 3 times');"
                        "INSERT INTO millrace_counters (task_table,handler,failed) VALUES ('tasks','noop',1)",
                        "DELETE FROM tasks_failed; DELETE FROM millrace_counters", QUIET):
            self.assertEqual(list(self.quiet(code=1)), ["store.quarantine"])

    def connections_of(self, keys):
        """What each worker may open, where a type with 200 threads has these keys beside."""
        greedy = self.file("greedy.json", json.dumps({"handlers": {"noop": {"concurrency": 200, **keys}}}))
        what = self.clustered("--config", str(greedy), code=1)["store.connections"]["what"]
        workers, wanted = re.match(r"(\d+) workers? may open (\d+) connections, and max_connections is ", what).groups()
        return int(wanted) / int(workers)

    def test_faults_of_the_server(self):
        with self.fault("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                        "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ"):
            self.assertEqual(list(self.clustered(code=1)), ["store.isolation"])
        with self.fault("SET GLOBAL innodb_flush_log_at_trx_commit=2", "SET GLOBAL innodb_flush_log_at_trx_commit=1"):
            self.assertEqual(list(self.quiet(code=1)), ["store.flush"])
        with self.fault("SET GLOBAL read_only=1", "SET GLOBAL read_only=0"):
            self.assertIn("store.read_only", self.quiet(code=1))
        with self.fault("SET GLOBAL init_connect='SET timestamp=UNIX_TIMESTAMP()+3600'", "SET GLOBAL init_connect=''"):
            self.assertIn("ahead of", self.quiet(code=1)["store.clock"]["what"])
        with self.fault(f"CREATE USER weak@'127.0.0.1' IDENTIFIED BY '{self.db.password}';"
                        "GRANT SELECT, INSERT, UPDATE ON quiet.* TO weak@'127.0.0.1'", "DROP USER weak@'127.0.0.1'"):
            lacking = self.doctor("--store", self.store(QUIET, "weak"), code=1)["store.rights"]
            self.assertRegex(lacking["what"], "DELETE on .*tasks_done")
            self.assertIn("conf/grants.sql", lacking["remedy"])
        self.assertEqual(self.connections_of({}), 7 + 200)
        self.assertEqual(self.connections_of({"limit": {"concurrency": 9}}), 8 + 200)  # one for permits
        follow = self.file("follow.json", json.dumps({"shards": {"main": {"url": self.store(QUIET), "doorbell": {}}}}))
        self.assertEqual(list(self.doctor("--config", str(follow), code=1)), ["store.doorbell"])

    def test_faults_of_lives_and_of_their_tasks(self):
        with self.fault("INSERT INTO tasks (handler,params,state,attempt,claimed_by) VALUES ('noop','{}',2,1,777)",
                        "DELETE FROM tasks", QUIET):
            self.assertIn("#777", self.quiet(code=1)["store.orphans"]["what"])
        with self.fault("INSERT INTO millrace_incarnations (id,number,worker,host,pid,lease_us,slices) VALUES "
                        "('w9.0',9,'w9','elsewhere',1,1000000,''); INSERT INTO millrace_beats VALUES ('w9.0',1)",
                        "DELETE FROM millrace_incarnations; DELETE FROM millrace_beats", QUIET):
            self.assertIn("w9", self.quiet(code=1)["store.silent"]["what"])
        half = self.start("half", "--store", self.store(QUIET), "--load-balance", "0-31")
        wait_until("it beats", lambda: self.db.value("SELECT COALESCE(SUM(beat),0) FROM millrace_beats", database=QUIET)
                   > 1, 30)
        self.assertIn("32", self.quiet(code=1)["store.uncovered"]["what"])
        half.terminate()
        self.assertEqual(self.quiet(code=0), {})

    def test_faults_of_the_cluster(self):
        with self.fault("INSERT INTO tasks (handler,params) VALUES ('nobody_has_it','{}')", "DELETE FROM tasks"):
            self.assertIn("nobody_has_it", self.clustered(code=1)["cluster.no_handler"]["what"])
        limit = ["cluster", "limit", "w1", "--zk", self.ensemble.address]
        limited = self.run_command(*limit, "--load-balance", "0-31")
        self.assertEqual(limited.returncode, 0, limited.stdout)
        wait_until("half of the slices are nobody's", lambda: "cluster.trouble" in self.clustered(), 60, 1)
        self.assertIn("no worker", self.clustered()["cluster.trouble"]["what"])
        self.assertEqual(self.run_command(*limit, "--none").returncode, 0)
        wait_until("the worker has its slices", lambda: not self.clustered(), 60, 1)

    def test_faults_of_zookeeper(self):
        secret = self.file("digest", "admin:secret\n")
        opened = self.clustered("--zk-auth-file", str(secret), code=1)["zookeeper.open"]
        self.assertIn("cluster protect", opened["remedy"])
        unread = self.doctor("--zk", self.ensemble.address, "--zk-auth-file", str(secret), code=1)
        self.assertNotIn("store.unnamed", unread)
        self.assertIn("were not looked at", unread["zookeeper.open"]["what"])
        with contextlib.closing(ClientOf(self.ensemble)) as tree:
            tree.client.create("/millrace/default/history/large", b"x" * 600_000)
            try:
                self.assertIn("history/large", self.clustered(code=1)["zookeeper.large_node"]["what"])
            finally:
                tree.client.delete("/millrace/default/history/large")
        dead = f"{self.ensemble.address},127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
        self.assertEqual(list(self.doctor("--zk", dead, "--store", self.store(), code=1)), ["zookeeper.server"])
        nowhere = self.doctor("--zk", self.ensemble.address + "/nowhere", "--store", self.store(), code=1)
        self.assertIn("/nowhere", nowhere["zookeeper.refused"]["what"])
        other = self.doctor("--zk", self.ensemble.address, "--cluster", "defualt", "--store", self.store(), code=1)
        self.assertIn("did you mean", other["zookeeper.refused"]["what"])
        with contextlib.closing(ClientOf(self.ensemble)) as tree:
            self.assertFalse(tree.client.exists("/millrace/defualt"))

    def test_faults_of_this_host(self):
        bad = self.folder / "bad"
        bad.mkdir(mode=0o755)
        whole = (BINARY / "plugins/noop.so").read_bytes()
        for name, content in (("noop.so", whole), ("text.so", b"no library"), ("torn.so", whole[:len(whole) // 2])):
            (bad / name).write_bytes(content)
            (bad / name).chmod(0o755)
        done = self.run_command("doctor", "--json", "--store", self.store(QUIET), "--plugins", str(bad), "--state-dir",
                                str(self.folder / "state-doctor"))
        plugins = [f["what"] for f in json.loads(done.stdout)["findings"] if f["name"] == "host.plugin"]
        self.assertEqual(len(plugins), 2, done.stdout)  # each by itself
        bad.chmod(0o777)
        self.assertIn("host.plugins", self.quiet("--plugins", str(bad), code=1))
        shown = self.file("shown", self.db.password + "\n", 0o644)
        secret = self.quiet(environment={"MILLRACE_PASSWORD_FILE": str(shown)})["host.secret"]
        self.assertIn("0644", secret["what"])
        # A file system on which there is no room at all.
        self.assertTrue({"host.space", "host.folder"} & set(self.quiet("--state-dir", "/proc/millrace", code=1)))

    def test_faults_of_a_file(self):
        file = self.folder / "tasks.db"
        store = ["--store", f"sqlite:{file}"]
        self.assertIn("store.refused", self.doctor(*store, code=3))
        self.assertFalse(file.exists())
        self.assertEqual(self.run_command("schema", "apply", *store).returncode, 0)
        self.assertEqual(self.doctor(*store, code=0), {})
        self.assertEqual(self.doctor(*store, "--scratch", code=0), {})
        file.chmod(0o666)
        self.assertEqual(list(self.doctor(*store, code=1)), ["host.store_mode"])
        file.chmod(0o600)
        with contextlib.closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
        self.assertEqual(list(self.doctor(*store, code=1)), ["host.journal"])
        with contextlib.closing(sqlite3.connect(file)) as db:
            db.execute("DROP INDEX " + db.execute("SELECT name FROM sqlite_master WHERE type='index' AND tbl_name='tasks' "
                                                  "AND sql IS NOT NULL").fetchone()[0])
        self.assertIn("store.schema", self.doctor(*store, "--scratch", code=1))
        with open(file, "r+b") as damaged:
            damaged.seek(5 * 4096)
            damaged.write(b"\xff" * 4096 * 3)
        self.assertTrue({"store.integrity", "store.schema", "store.refused"} & set(self.doctor(*store)))


class WholeTest(Doctor):
    def test_a_healthy_cluster_has_nothing_and_nothing_is_changed(self):
        self.assertEqual(self.clustered(code=0), {})
        self.assertEqual(self.clustered("--scratch", code=0), {})
        before = self.contents(QUIET)
        self.assertEqual(len(before), 15)
        self.assertEqual(self.quiet(code=0), {})
        self.assertEqual(self.quiet("--scratch", code=0), {})
        self.assertEqual(self.contents(QUIET), before)  # no row, and no table more
        # For people: each line fits a terminal, and it says what was looked at.
        told = self.run_command("doctor", "--zk", self.ensemble.address, "--store", self.store(), "--plugins",
                                str(self.plugins), "--state-dir", str(self.folder / "state-doctor"))
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn("nothing is wrong", told.stdout)
        self.assertIn("looked at", told.stdout)
        self.assertLessEqual(max(len(line) for line in told.stdout.splitlines()), 80, told.stdout)

    def test_who_is_away_hides_nobody_else(self):
        tree, no_tree, no_other_tree = self.ensemble.address, *(f"127.0.0.1:{port}" for port in free_ports(2))
        no_store = self.store(port=free_port())
        with concurrent.futures.ThreadPoolExecutor() as at_once:  # each waits for who is away
            store_away = at_once.submit(self.doctor, "--zk", tree, "--store", no_store, code=1)
            tree_away = at_once.submit(self.doctor, "--zk", no_tree, "--store", self.store(), code=1)
            refused = at_once.submit(self.doctor, "--store", self.store("no_such_database"), code=3)
            nothing = at_once.submit(self.doctor, "--zk", no_other_tree, "--store", no_store, code=3)
        self.assertEqual(list(store_away.result()), ["store.away"])
        self.assertEqual(set(tree_away.result()), {"zookeeper.server", "zookeeper.away"})
        self.assertIn("store.refused", refused.result())
        self.assertLessEqual({"store.away", "zookeeper.away"}, set(nothing.result()))
        self.db.process.pause()
        try:
            began = time.monotonic()
            frozen = self.clustered(code=1)
            self.assertLess(time.monotonic() - began, 60)
        finally:
            self.db.process.resume()
        self.assertIn("store.away", frozen)
        wait_until("the cluster is well again", lambda: not self.clustered(), 60, 1)


class ClientOf:
    """A client of an ensemble that can be closed."""

    def __init__(self, ensemble):
        self.client = ensemble.client()

    def close(self):
        self.client.stop()
        self.client.close()


if __name__ == "__main__":
    unittest.main()
