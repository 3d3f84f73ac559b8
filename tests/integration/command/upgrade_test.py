"""`millrace schema upgrade` as an operator runs it: on tables of each older version that it takes, with what is told, the
exit codes, a worker that still beats, one that is killed half way, as the server is, and a second run."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from chaos.mariadb import MariaDb, numbers
from chaos.processes import Process, wait_until

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
SOURCE = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])
VERSIONS = (2, 3)
TASKS = 25
MANY = int(os.environ.get("MILLRACE_UPGRADE_ROWS", 200_000))  # that are copied for a while
PATIENCE = 100 + MANY / 5_000  # seconds, for those
LIFE = {2: "INSERT INTO millrace_incarnations (id,worker,host,pid,lease_us,slices) VALUES ('old.1','old','here',17,2000000,'')",
        3: "INSERT INTO millrace_incarnations (id,number,worker,host,pid,lease_us,slices) "
           "VALUES ('old.1',5,'old','here',17,2000000,'')"}
BEAT = "INSERT INTO millrace_beats (id,beat) VALUES ('old.1',1)"


def former(version, store):
    return (SOURCE / f"tests/contract/suite/version_{version}/{store}.sql").read_text()


class UpgradeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-upgrade-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.db = MariaDb(str(cls.folder / "db"), databases=[f"v{version}" for version in VERSIONS])
        cls.addClassCleanup(cls.db.stop)

    def environment(self):
        return {**os.environ, "HOME": str(self.folder), "MILLRACE_PASSWORD_FILE": self.db.password_file}

    def millrace(self, *words):
        return subprocess.run([str(BINARY / "millrace"), *words], env=self.environment(), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)

    def expect(self, code, *words):
        done = self.millrace(*words)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}")
        return done.stdout

    def fresh(self, version):
        """The tables of that version, with tasks that wait; the URL of their database."""
        name = f"v{version}"
        self.db.client(f"DROP DATABASE {name}; CREATE DATABASE {name}")
        self.db.client(former(version, "mysql"), name)
        tasks = ",".join(f"('noop','{{\"n\":{number}}}')" for number in range(TASKS))
        self.db.client(f"INSERT INTO tasks (handler,params) VALUES {tasks}", name)
        return self.db.url_of(name)

    def work_off(self, *store, tasks=TASKS):
        self.assertIn(f"{tasks} succeeded, 0 failed", self.expect(
            0, "worker", "--until-idle", "--plugins", str(BINARY / "plugins"), "--state-dir", str(self.folder / "state"),
            *store))

    def test_tables_of_older_versions_are_refused_and_upgraded(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                store = ("--store", self.fresh(version))
                for refused in (("worker", "--until-idle"), ("submit", "--handler", "noop")):
                    self.assertIn("millrace schema upgrade", self.expect(4, *refused, *store))
                told = self.expect(0, "schema", "upgrade", *store)
                self.assertIn(f"version {version} → ", told)
                self.assertIn("up to date, version ", self.expect(0, "schema", "upgrade", *store))
                if version == 2:  # version 3 was never shipped; early tables of it lack what later ones had
                    self.assertIn("as it should be", self.expect(0, "schema", "check", *store))
                self.work_off(*store)

    def test_a_sqlite_file_is_upgraded_alike(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                path = self.folder / f"v{version}.db"
                path.unlink(missing_ok=True)
                database = sqlite3.connect(path)
                database.executescript(former(version, "sqlite"))
                database.executemany("INSERT INTO tasks (handler,params) VALUES ('noop',?)", [("{}",)] * TASKS)
                database.commit()
                database.close()
                store = ("--store", f"sqlite:{path}")
                self.assertIn(f"version {version} → ", self.expect(0, "schema", "upgrade", *store))
                self.assertIn("up to date, version ", self.expect(0, "schema", "upgrade", *store))
                self.work_off(*store)

    def beating(self, database):
        """A worker of the older version that goes on; ends at the end of the `with`."""
        ended = threading.Event()

        def beat():
            while not ended.wait(0.1):
                self.db.rows("UPDATE millrace_beats SET beat=beat+1", database=database)

        thread = threading.Thread(target=beat)

        class Beating:
            def __enter__(self):
                thread.start()

            def __exit__(self, *_):
                ended.set()
                thread.join()

        return Beating()

    def test_a_worker_of_version_2_that_beats_is_named_and_one_of_version_3_goes_on(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                store = ("--store", self.fresh(version))
                for statement in (LIFE[version], BEAT):
                    self.db.client(statement, f"v{version}")
                with self.beating(f"v{version}"):
                    if version == 2:
                        told = self.expect(4, "schema", "upgrade", *store)
                        self.assertIn("the worker old (old.1, process 17 on here)", told)
                        self.assertIn("stop it and all others", told)
                        continue
                    began = time.monotonic()
                    self.expect(0, "schema", "upgrade", *store)
                    self.assertLess(time.monotonic() - began, 30)

    def copied(self, database):
        """How many rows of the old table stand in the new one, while there are both."""
        both = self.db.value("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA=%s AND "
                             "TABLE_NAME='tasks_before'", (database,))
        return self.db.value(f"SELECT COUNT(*) FROM {database}.tasks WHERE id<={TASKS + MANY}") if both else 0

    def test_what_is_cut_off_half_way_goes_on_where_it_was(self):
        database, store = "v2", ("--store", self.fresh(2))
        self.db.client(f"INSERT INTO tasks (id,handler,params) SELECT {TASKS}+seq,'noop',CONCAT('{{\"n\":',seq,'}}') "
                       f"FROM {numbers(MANY)}", database)
        sums = "SELECT COUNT(*),SUM(id),SUM(CRC32(CONCAT(id,' ',params))) FROM tasks"
        before = self.db.rows(sums + f" WHERE id<={TASKS + MANY}", database=database)

        cut_off_at = []
        for share, cut in ((0.25, lambda upgrade: upgrade.kill()), (0.5, lambda upgrade: self.db.process.kill())):
            upgrade = Process("upgrade", [str(BINARY / "millrace"), "schema", "upgrade", *store],
                              str(self.folder / "upgrade.log"), self.environment())
            wait_until("rows are copied", lambda: not upgrade.runs() or self.copied(database) >= share * MANY, PATIENCE)
            self.assertTrue(upgrade.runs(), upgrade.output())
            cut(upgrade)
            code = upgrade.exit_code(PATIENCE)
            if not self.db.process.runs():
                self.assertEqual(code, 3, upgrade.output())
                self.assertIn("127.0.0.1", upgrade.output())
                self.db.start()
            cut_off_at.append(self.copied(database))
            self.assertTrue(share * MANY <= cut_off_at[-1] < MANY, cut_off_at)
            for refused in (("worker", "--until-idle"), ("submit", "--handler", "noop")):
                self.assertIn("millrace schema upgrade", self.expect(4, *refused, *store))
            self.db.client("INSERT INTO tasks (handler,params) VALUES ('noop','{}')", database)  # a producer goes on

        self.assertIn("version 2 → ", self.expect(0, "schema", "upgrade", *store))
        self.assertEqual(self.db.rows(sums + f" WHERE id<={TASKS + MANY}", database=database), before)
        self.assertIn("as it should be", self.expect(0, "schema", "check", *store))
        self.work_off(*store, tasks=TASKS + MANY + 2)
        print(f"\n{MANY:,} rows, cut off at {' and '.join(f'{rows:,}' for rows in cut_off_at)}", file=sys.stderr)

    def test_a_store_without_tables_is_told_what_to_do(self):
        self.db.client("DROP DATABASE v3; CREATE DATABASE v3")
        self.assertIn("millrace schema apply", self.expect(1, "schema", "upgrade", "--store", self.db.url_of("v3")))


if __name__ == "__main__":
    unittest.main()
