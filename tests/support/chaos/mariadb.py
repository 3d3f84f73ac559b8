"""A private MariaDB: its own folder, its own port on the loopback address, durable commits. Or a server that is given."""
import fcntl
import functools
import getpass
import os
import secrets
import shutil
import subprocess
import tempfile
import urllib.parse

import pymysql

from chaos.processes import Process, free_port, wait_until


def numbers(count):
    """What stands behind FROM for the numbers from 1 to `count` as `seq`: sequences are MariaDB's alone."""
    digits = "(SELECT " + " UNION ALL SELECT ".join(["0 AS i", *"123456789"]) + ")"
    places = range(len(str(count - 1)))
    tables = ", ".join(f"{digits} d{place}" for place in places)
    return f"(SELECT 1{''.join(f' + d{place}.i * {10 ** place}' for place in places)} AS seq FROM {tables} HAVING seq <= {count}) numbers"


def template_folder():
    """A data folder to copy: made once for a user, by one process at a time, as private_mariadb.cc does too."""
    base = os.path.join(tempfile.gettempdir(), f"millrace-mariadb-{os.geteuid()}")
    os.makedirs(base, mode=0o700, exist_ok=True)
    ready = os.path.join(base, "data-1")
    with open(os.path.join(base, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(ready):
            making = os.path.join(base, "making")
            shutil.rmtree(making, ignore_errors=True)
            install_db(making)
            os.rename(making, ready)
    return ready


def install_db(folder):
    made = subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={folder}",
         "--skip-test-db", "--auth-root-authentication-method=normal"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise AssertionError(f"mariadb-install-db ended with {made.returncode}:\n{made.stdout[-4000:]}")


class Server:
    """A database server as a test asks it: host, port, user, password file, and the database that is meant by default."""

    host, port, user, password_file, database = "127.0.0.1", None, "tester", None, "millrace"

    @property
    def password(self):
        with open(self.password_file) as file:
            return file.read().strip()

    def url_of(self, database=None, user=None, port=None):
        return f"mysql://{user or self.user}@{self.host}:{port or self.port}/{database or self.database}"

    def connect(self, autocommit=True, database=None):
        """Autocommit unless asked otherwise; READ COMMITTED, in UTC."""
        connection = pymysql.connect(
            host=self.host, port=self.port, user=self.user, password=self.password,
            database=database or self.database, autocommit=autocommit, connect_timeout=5, read_timeout=60,
            charset="utf8mb4")
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection

    def rows(self, sql, values=None, database=None):
        """All rows of one statement, on a connection of its own."""
        connection = self.connect(database=database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, values)
                return cursor.fetchall()
        finally:
            connection.close()

    def value(self, sql, values=None, database=None):
        return self.rows(sql, values, database)[0][0]

    @functools.cached_property
    def is_mariadb(self):
        return "MariaDB" in self.value("SELECT VERSION()")

    def lock_waits(self):
        """How many wait for a row that somebody else has."""
        waits = "information_schema.innodb_lock_waits" if self.is_mariadb else "performance_schema.data_lock_waits"
        return self.value(f"SELECT COUNT(*) FROM {waits}")

    def kept_versions(self):
        """Of rows that somebody may still see, or that are not cleared away yet."""
        return int(self.value("SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"))

    def client(self, sql, database=None):
        """Runs a text in the plain `mariadb` client."""
        subprocess.run(
            ["mariadb", "--no-defaults", f"-h{self.host}", f"-P{self.port}", f"-u{self.user}",
             database or self.database],
            input=sql, text=True, check=True, env={**os.environ, "MYSQL_PWD": self.password})


class MariaDb(Server):
    """A private one. Runs until stop(); start() keeps port and data.

    The user `tester` may do everything. Those of `add_user` may use the databases alone, as a worker's user does, and
    have the same password; so may a second server that is to take this one's place: give it `password`.
    """

    private = True

    def __init__(self, folder, options=(), databases=(), password=None):
        self._databases = [self.database, *databases]
        self._given = password
        self._data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "mariadb.log")
        self._options = list(options)
        self._init = os.path.join(folder, "init.sql")
        self.password_file = os.path.join(folder, "password")
        self.port = free_port()
        os.makedirs(folder, exist_ok=True)
        self._install()
        self.start()

    def _install(self):
        password = self._given or secrets.token_hex(12)
        lines = [f"CREATE DATABASE IF NOT EXISTS {name};" for name in self._databases]
        lines.append(f"CREATE USER IF NOT EXISTS tester@'127.0.0.1' IDENTIFIED BY '{password}';")
        lines.append("GRANT ALL ON *.* TO tester@'127.0.0.1' WITH GRANT OPTION;")
        for path, text in ((self.password_file, password + "\n"), (self._init, "\n".join(lines) + "\n")):
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)
        shutil.copytree(template_folder(), self._data)

    def start(self):
        self.process = Process("mariadbd", [
            "mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self._data}",
            f"--init-file={self._init}", "--bind-address=127.0.0.1", f"--port={self.port}", "--socket=mariadb.sock",
            # A server that starts removes from its tmpdir what it takes for its own of old.
            f"--tmpdir={os.path.dirname(self._data)}",
            "--pid-file=mariadb.pid", "--skip-name-resolve", "--skip-log-bin", *self._options], self.log)
        wait_until("mariadbd answers", self._answers, 60, 0.1)
        if self.is_mariadb == ("MILLRACE_MYSQL_ROOT" in os.environ):  # which scripts/with-mysql sets
            raise AssertionError("the other kind of server was started: who has changed PATH?")

    def _answers(self):
        if not self.process.runs():
            raise AssertionError(f"mariadbd ended at start:\n{self.process.output()[-2000:]}")
        try:
            self.connect().close()
            return True
        except pymysql.err.OperationalError:
            return False

    def file_size(self, table, database=None):
        """What a table takes on the disk, in bytes."""
        return os.stat(os.path.join(self._data, database or self.database, f"{table}.ibd")).st_blocks * 512

    def add_user(self, name):
        self.client(f"CREATE USER IF NOT EXISTS {name}@'127.0.0.1' IDENTIFIED BY '{self.password}';" + "".join(
            f"GRANT ALL ON {database}.* TO {name}@'127.0.0.1';" for database in self._databases))
        return name

    def stop(self):
        self.process.kill()


class GivenServer(Server):
    """The server that MILLRACE_TEST_MYSQL_URL names, MySQL perhaps, with a database of its own until stop(). It has one
    user for all, who may make databases and triggers."""

    private = False

    def __init__(self, url, password_file):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.user = parts.hostname, parts.port or 3306, parts.username
        self.password_file = password_file
        self.database = None
        name = "millrace_chaos_" + secrets.token_hex(6)
        self.rows(f"CREATE DATABASE {name}")
        self.database = name

    def add_user(self, _):
        return self.user

    def stop(self):
        self.rows(f"DROP DATABASE IF EXISTS {self.database}")
