"""Every statement that the program sends is known to the doctor, and conf/grants.sql has just the rights for them.

A server's general log is the witness. The contract suite calls all that a store can do; `schema check` walks through
the statements and explains them. What the suite sends and the walk does not is named: it needs a call in
framework/store/rehearsal.cc.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import pymysql

from chaos.mariadb import MariaDb

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
SOURCE = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])
MILLRACE = BINARY / "millrace"
SUITE = BINARY / "tests/contract/mysql/mysql_contract_test"
EXPLAIN = "EXPLAIN FORMAT=TRADITIONAL "
OUR_SESSION = "SET SESSION sql_mode='STRICT_TRANS_TABLES"  # every session of the store begins so
WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE")
SCRATCH = re.compile(r"\bzz[0-9a-f]+_\d+")
TABLE = re.compile(r"\b(?:zz[0-9a-f]+_\d+|tasks(?:_\d{3})?)((?:_done|_failed|_all)?)\b(?!_)")
# Sent where a schema is made, changed or looked at, not where tasks are worked on: nothing of it needs a plan.
NOT_WORK = re.compile(r"information_schema|(INTO|UPDATE) millrace_schema|@@|VERSION\(\)|_before\b|_after\b|CONNECTION_ID"
                      r"|ROW_COUNT|WHERE 1=0")


def log_entries(file):
    """Pairs of a connection and a statement that it sent as text."""
    entry = re.compile(rb"^(?:\d{6} [ \d]\d:\d\d:\d\d|[-\d]{10}T[:.\d]{15}Z)?\t+ *(\d+) (\w+)\t?(.*)$")
    for line in file.read_bytes().split(b"\n"):
        found = entry.match(line)
        if found and found[2] == b"Query":
            yield int(found[1]), found[3].decode("latin-1")


def shapes(statement):
    """A statement without its values, its lists' lengths and its tables' names; each part of a UNION ALL by itself."""
    text = re.sub(r"[xX]?'(?:[^'\\]|\\.|'')*'", "?", statement)
    text = TABLE.sub(r"T\1", text)
    text = re.sub(r"\bUTC_TIMESTAMP\(6\)|\bNULL\b(?! *[,)]? *IS)|(?<![\w.])\d+(?:\.\d+)?\b", "?", text)
    text = text.replace("UTC_TIMESTAMP(?)", "?").replace("IS ?", "IS NULL").replace("IS NOT ?", "IS NOT NULL")
    text = re.sub(r"\? [-+] INTERVAL -?\?(?: MICROSECOND)?", "?", text).replace("-?", "?")
    while True:
        shorter = re.sub(r"CASE(?:(?!CASE).)*?END", "?", text)  # a value for each row
        shorter = re.sub(r"TIMESTAMP\?|IF\(id<\?(?:,\?)*\)", "?", shorter)  # likewise, by halves
        shorter = re.sub(r"\?(?:,\?)+", "?", shorter)
        shorter = re.sub(r"\(\?\)(?:, ?\(\?\))+", "(?)", shorter)
        shorter = re.sub(r"slice BETWEEN \? AND \?(?: OR slice BETWEEN \? AND \?)+", "slice BETWEEN ? AND ?", shorter)
        if shorter == text:
            break
        text = shorter
    text = re.sub(r"\b(counted|head)\d+", r"\1", text)  # its place in the statement
    text = text.replace("LEAST(failures,?)+?", "failures").replace("run_at=run_at", "run_at=?")
    text = re.sub(r"\blast_error\b", "?", text)
    text = re.sub(r"\?(?:,\?)+", "?", text)
    if re.search(r" ORDER BY (?:finished_at DESC,)?id(?: DESC)? LIMIT \?| AS counted GROUP BY state", text):
        # What a filter of people asks for, and where a look at many rows ends.
        text = re.sub(r" AND (?:(?:state|handler|batch|biz_key|error_class|slice|priority)=|(?:created_at|finished_at)>="
                      r"|(?:created_at|finished_at|run_at)<|id<=)\?", "", text)
    return [shape for part in text.split(" UNION ALL ") for shape in of_each_slice(part.strip().strip("()").strip())]


def of_each_slice(statement):
    """A scan of several slices, as if of one: for each way in which their conditions go on."""
    found = re.search(r"\((slice=\?.*)\)(?= ORDER BY slice,run_at,id)", statement)
    if not found:
        return [statement]
    ways = sorted(set(re.split(r" OR (?=slice=)", found[1])))
    return [statement[:found.start(1)] + way + statement[found.end(1):] for way in ways]


class StatementsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-statements-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.log = cls.folder / "general.log"
        cls.db = MariaDb(str(cls.folder / "db"), ["--general-log=1", f"--general-log-file={cls.log}"])
        cls.addClassCleanup(cls.db.stop)
        cls.use_grants("--force")  # those on tables have to wait for the tables
        cls.expect(cls.millrace("owner", "schema", "apply"))
        cls.use_grants()
        before = cls.log.stat().st_size
        cls.expect(cls.millrace("owner", "schema", "check"))
        cls.rehearsed = []
        for _, text in log_entries_behind(cls.log, before):
            if text.startswith(EXPLAIN):
                cls.rehearsed.append(text[len(EXPLAIN):])

    @classmethod
    def use_grants(cls, *options):
        """conf/grants.sql as an administrator would run it, with accounts of this test."""
        text = (SOURCE / "conf/grants.sql").read_text()
        accounts = sorted(set(re.findall(r"\bmillrace_(?:owner|worker|submit|producer|operator)@'%'", text)))
        cls.accounts = accounts
        made = "".join(f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{cls.db.password}';" for account in accounts)
        subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{cls.db.port}", "-utester", *options, "millrace"],
                       input=made + text, text=True, check=not options, stderr=subprocess.DEVNULL if options else None,
                       env={**os.environ, "MYSQL_PWD": cls.db.password})

    @classmethod
    def millrace(cls, account, *words, seconds=120):
        environment = {**os.environ, "HOME": str(cls.folder), "MILLRACE_PASSWORD_FILE": cls.db.password_file,
                       "MILLRACE_STORE": cls.db.url_of(user=f"millrace_{account}")}
        return subprocess.run([MILLRACE, *words], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False)

    @classmethod
    def expect(cls, done, code=0):
        if done.returncode != code:
            raise AssertionError(f"{done.args} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def connect(self, account):
        connection = pymysql.connect(host="127.0.0.1", port=self.db.port, user=f"millrace_{account}",
                                     password=self.db.password, database="millrace", autocommit=True)
        self.addCleanup(connection.close)
        return connection

    def denied(self, connection, statements):
        """Those that this account may not send: the servers check its rights when they plan."""
        refused = []
        with connection.cursor() as cursor:
            for statement in statements:
                try:
                    cursor.execute(EXPLAIN + SCRATCH.sub("tasks", statement).replace("%", "%%"), ())
                except pymysql.err.MySQLError as error:
                    self.assertIn(error.args[0], (1142, 1143, 1370), f"{error}: {statement[:300]}")
                    refused.append(statement)
        return refused

    def test_every_statement_of_the_contract_suite_is_explained_by_the_check(self):
        before = self.log.stat().st_size
        environment = {**os.environ, "MILLRACE_TEST_MYSQL_URL": self.db.url_of(),
                       "MILLRACE_TEST_MYSQL_PASSWORD_FILE": self.db.password_file}
        subprocess.run([SUITE, "--gtest_filter=-*Upgrade*", "--gtest_brief=1"], env=environment, timeout=500,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # what fails is told elsewhere
        entries = list(log_entries_behind(self.log, before))
        ours = {connection for connection, text in entries if text.startswith(OUR_SESSION)}
        ours -= {connection for connection, text in entries if text.startswith("CREATE TABLE IF NOT EXISTS zz")}
        known = {shape for statement in self.rehearsed for shape in shapes(statement)}
        new = {}
        for connection, text in entries:
            if connection not in ours or not text.startswith(WORDS) or NOT_WORK.search(text):
                continue
            for shape in shapes(text):
                if shape not in known:
                    new.setdefault(shape, text)
        self.assertGreater(len(known), 60)
        self.assertGreater(len(ours), 100)
        self.assertEqual(len(new), 0, "\nnot rehearsed, so that nobody looks at their plans (add a call to "
                         "framework/store/rehearsal.cc):\n" + "\n".join(f"{s[:400]}" for s in new))

    def test_workers_and_people_have_the_rights_for_every_statement_and_no_others(self):
        statements = [s for s in dict.fromkeys(self.rehearsed) if not NOT_WORK.search(s)]
        worker, operator = self.connect("worker"), self.connect("operator")
        refused = self.denied(worker, statements)
        # Who submits makes batches, and takes away one that nothing was added to.
        makers = [s for s in refused if re.match(r"(INSERT IGNORE INTO|DELETE) millrace_batches\b", s)]
        self.assertTrue(makers)
        self.assertEqual(self.denied(self.connect("submit"), makers), [])
        people = [s for s in refused if s not in makers]
        self.assertEqual([s for s in people if not re.search(r"millrace_pauses\b|^UPDATE \w+_failed\b", s)], [])
        self.assertEqual(self.denied(operator, people), [])
        # Each right is needed: without it something is refused.
        text = (SOURCE / "conf/grants.sql").read_text()
        for rights, table in re.findall(r"^GRANT (.*) ON millrace\.(\w+) TO millrace_worker@", text, re.MULTILINE):
            for right in rights.split(", "):
                self.db.rows(f"REVOKE {right} ON millrace.{table} FROM millrace_worker@'%'")
                lacking = [s for s in self.denied(worker, statements) if s not in refused]
                told = self.millrace("worker", "doctor", "--json").stdout if right != "SELECT" else "store.rights"
                self.db.rows(f"GRANT {right} ON millrace.{table} TO millrace_worker@'%'")
                self.assertTrue(lacking, f"nothing needs {right} on {table}")
                self.assertIn("store.rights", told, f"{right} on {table}")

    def test_everything_works_with_just_these_rights(self):
        rows = self.folder / "tasks.jsonl"
        rows.write_text("".join('{"params":{},"key":"k%d"}\n' % i for i in range(20)))
        for _ in range(2):
            self.expect(self.millrace("submit", "submit", "--handler", "noop", "--from", str(rows)))
        self.expect(self.millrace("submit", "submit", "--handler", "nobody_has_it", "--count", "3", "--force"))
        self.expect(self.millrace("submit", "submit", "--handler", "noop", "--batch", "june", "--on-end",
                                  '{"handler":"noop"}'))
        with self.connect("producer").cursor() as cursor:
            cursor.execute("INSERT INTO tasks (handler, params, biz_key) VALUES ('noop', '{}', 'by hand')")
            with self.assertRaises(pymysql.err.OperationalError):
                cursor.execute("SELECT * FROM tasks")
        self.expect(self.millrace("worker", "worker", "--until-idle", "--handlers", "noop",
                                  "--state-dir", str(self.folder / "state")))
        self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks_done"), 23)
        self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks_keys WHERE keep_until IS NOT NULL"), 22)
        first = self.db.value("SELECT MIN(id) FROM tasks")
        for words in (["list"], ["show", str(first)], ["why", str(first)], ["hold", str(first)],
                      ["release", str(first)], ["cancel", str(first), "--yes"]):
            self.expect(self.millrace("operator", "task", *words))
        self.assertIn('"outcome":"succeeded"', self.expect(self.millrace("operator", "batch", "show", "june", "--json")))
        config = self.folder / "alerts.json"
        config.write_text('{"alerts":{"failed":{"kind":"failed","webhook":"http://127.0.0.1:1/"}}}')
        self.expect(self.millrace("operator", "alerts", "test", "failed", "--config", str(config), "--wait", "0s"))
        found = self.expect(self.millrace("worker", "doctor", "--json"))
        self.assertNotIn('"store.rights"', found)

    def test_submit_without_its_right_blames_no_row(self):
        rows = self.folder / "many.jsonl"
        rows.write_text("".join('{"params":{"n":%d}}\n' % i for i in range(3000)))
        before = self.db.value("SELECT COUNT(*) FROM tasks")
        self.db.rows("REVOKE INSERT ON millrace.tasks FROM millrace_submit@'%'")
        self.addCleanup(self.use_grants)
        told = self.expect(self.millrace("submit", "submit", "--handler", "noop", "--from", str(rows)), 2)
        self.assertIn("lacks a right", told)
        self.assertNotIn("line 2", told)
        self.assertNotRegex(told, r"\bbad\b|refused")
        self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks"), before)

    def test_succeeded_tasks_wait_for_the_right_to_settle_them(self):
        self.expect(self.millrace("submit", "submit", "--handler", "noop", "--count", "3"))
        settled = self.db.value("SELECT COUNT(*) FROM tasks_done")
        failed = self.db.value("SELECT COUNT(*) FROM tasks_failed")
        self.db.rows("REVOKE INSERT ON millrace.tasks_done FROM millrace_worker@'%'")
        self.addCleanup(self.use_grants)
        before = self.log.stat().st_size
        environment = {**os.environ, "HOME": str(self.folder), "MILLRACE_PASSWORD_FILE": self.db.password_file,
                       "MILLRACE_STORE": self.db.url_of(user="millrace_worker")}
        words = [MILLRACE, "worker", "--until-idle", "--handlers", "noop", "--state-dir", str(self.folder / "state")]
        with open(self.folder / "worker.log", "wb") as log, subprocess.Popen(words, env=environment, stdout=log,
                                                                             stderr=log) as worker:
            self.addCleanup(worker.kill)
            until = time.monotonic() + 60
            tries = 0
            while tries < 3 and time.monotonic() < until:
                time.sleep(0.1)
                tries = sum("INSERT INTO tasks_done" in text for _, text in log_entries_behind(self.log, before))
            self.assertGreaterEqual(tries, 3, "it is not tried again")
            self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks WHERE state=2"), 3)
            self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks_failed"), failed)
            self.db.rows("GRANT INSERT ON millrace.tasks_done TO millrace_worker@'%'")
            self.assertEqual(worker.wait(60), 0, (self.folder / "worker.log").read_text())
        self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks_done"), settled + 3)
        self.assertEqual(self.db.value("SELECT COUNT(*) FROM tasks_failed"), failed)


def log_entries_behind(file, size):
    """The entries of a log from this place on."""
    rest = file.with_suffix(".rest")
    with open(file, "rb") as log:
        log.seek(size)
        rest.write_bytes(log.read())
    return log_entries(rest)


if __name__ == "__main__":
    unittest.main()
