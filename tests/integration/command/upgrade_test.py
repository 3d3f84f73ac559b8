"""`millrace schema upgrade` as an operator runs it: on tables of each older version that it takes, with what is told, the
exit codes, a worker that still beats, and a second run."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from chaos.mariadb import MariaDb

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
SOURCE = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])
VERSIONS = (2, 3)
TASKS = 25
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

    def millrace(self, *words):
        environment = {**os.environ, "HOME": str(self.folder), "MILLRACE_PASSWORD_FILE": self.db.password_file}
        return subprocess.run([str(BINARY / "millrace"), *words], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, check=False)

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

    def work_off(self, *store):
        self.assertIn(f"{TASKS} succeeded, 0 failed", self.expect(
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

    def test_a_store_without_tables_is_told_what_to_do(self):
        self.db.client("DROP DATABASE v3; CREATE DATABASE v3")
        self.assertIn("millrace schema apply", self.expect(1, "schema", "upgrade", "--store", self.db.url_of("v3")))


if __name__ == "__main__":
    unittest.main()
