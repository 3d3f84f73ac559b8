"""Every transition of every row, noted by the database itself in one table, and whether each of them was legal.

    record(server, database)          # once its tables are there
    ...
    found = check(server, database)   # found.faults is empty where all is well

Triggers on all pools note who did what: the user of the session is the worker's id where a worker has a user of its own
(Scenario.start_worker sees to that). What a transaction does that is rolled back leaves no note.
"""
import collections

import pymysql

WAITING, RUNNING, HELD = 0, 2, 3
SUCCEEDED = 1
LOG = "test_transitions"
POOLS = {"tasks": "", "done": "_done", "failed": "_failed"}

# One line of the log, in the order of its columns. `was_…` is None for a row that came, `state` and what follows for one
# that went. Rows of the hot table name a claimer by its number. Lives have no table: op `born` or `dead`, the incarnation
# in claimed_by, and in was_by its number.
Event = collections.namedtuple(
    "Event", "table id n pool op was_state was_attempt was_by state attempt claimed_by user")
Found = collections.namedtuple("Found", "events rows faults")


def record(server, database=None, tables=None):
    """Notes what happens from now on in all task tables of the database that are not noted yet, or in these."""
    connection = server.connect(database=database)
    with connection.cursor() as cursor:
        cursor.execute(f"""CREATE TABLE IF NOT EXISTS {LOG} (
            task_table VARCHAR(48) CHARACTER SET ascii NOT NULL, id BIGINT UNSIGNED NOT NULL,
            n BIGINT UNSIGNED NOT NULL, pool VARCHAR(8) NOT NULL, op VARCHAR(8) NOT NULL,
            was_state TINYINT, was_attempt INT UNSIGNED, was_by VARCHAR(64),
            state TINYINT, attempt INT UNSIGNED, claimed_by VARCHAR(64), user VARCHAR(32) NOT NULL,
            PRIMARY KEY (task_table, id, n)) ENGINE=InnoDB""")
        cursor.execute("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
        there = {name for name, in cursor.fetchall()}
        cursor.execute("SELECT task_table FROM millrace_schema WHERE task_table <> ''")
        for table in tables or sorted(name for name, in cursor.fetchall()):
            for pool, suffix in POOLS.items():
                for name, text in _triggers(table, pool, table + suffix):
                    if name not in there:
                        cursor.execute(text)
        for name, text in _lives():
            if name not in there:
                cursor.execute(text)
    connection.close()


def _note(table, row_id, pool, op, was, now):
    values = [f"'{table}'", row_id, "UUID_SHORT()", f"'{pool}'", f"'{op}'", *was, *now, "SUBSTRING_INDEX(USER(), '@', 1)"]
    return f"INSERT INTO {LOG} VALUES ({', '.join(values)})"


def _triggers(table, pool, name):
    old, new = (tuple(f"{row}.{column}" for column in ("state", "attempt", "claimed_by")) for row in ("OLD", "NEW"))
    none = ("NULL",) * 3
    same = " AND ".join(f"{a} <=> {b}" for a, b in zip(old, new))
    head = f"ON {name} FOR EACH ROW"
    yield f"test_{name}_i", f"CREATE TRIGGER test_{name}_i AFTER INSERT {head} " + _note(
        table, "NEW.id", pool, "insert", none, new)
    yield f"test_{name}_u", (f"CREATE TRIGGER test_{name}_u AFTER UPDATE {head} IF NOT ({same}) THEN "
                             + _note(table, "NEW.id", pool, "update", old, new) + "; END IF")
    yield f"test_{name}_d", f"CREATE TRIGGER test_{name}_d AFTER DELETE {head} " + _note(
        table, "OLD.id", pool, "delete", old, none)


def _lives():
    number = ("NULL", "NULL", "NEW.number")
    life = ("NULL", "NULL", "NEW.id")
    head = "ON millrace_incarnations FOR EACH ROW"
    yield "test_born", f"CREATE TRIGGER test_born AFTER INSERT {head} " + _note("", "0", "", "born", number, life)
    yield "test_dead", (f"CREATE TRIGGER test_dead AFTER UPDATE {head} IF NEW.dead = 1 AND OLD.dead = 0 THEN "
                        + _note("", "0", "", "dead", number, life) + "; END IF")


def forget(server, database=None):
    """For work that is no part of what is proved; all of it must have ended, and its rows be gone."""
    server.rows(f"DELETE FROM {LOG} WHERE task_table <> ''", database=database)


def check(server, database=None, workers=()):
    """Reads the whole log as it is at one moment. `workers`: the users that are known to be a worker each."""
    connection = server.connect(database=database)
    judge = Judge(workers)
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(f"SELECT * FROM {LOG} ORDER BY task_table, id, n")
        for line in cursor:
            judge.see(Event(*line))
    connection.close()
    return judge.end()


class Judge:
    """Is shown all events, lives first, each row's in the order in which they happened.

    Legal is, for one row: it is in one pool at a time; an attempt begins with a claim, which raises the number by one
    and is made by a worker that lives, and has one end, by whoever claimed it, or back to waiting once its claimer is
    dead; the number never goes down; nothing changes a row that has ended. Whoever added a row may take it back before
    anybody has claimed it, as producers do within their transaction where its key is taken.
    """

    def __init__(self, workers=()):
        self._workers = set(workers)
        self._born, self._dead = {}, {}  # incarnation → when
        self._names = {"0": None}  # by number
        self._key = None
        self._pools = {}  # pool → attempt of the row that stands in it
        self._attempt = 0  # the highest so far
        self._added_by = None  # the user
        self._running = None  # (attempt, claimer)
        self._leaving = None  # the pool that the row must leave next
        self._events, self._rows, self.faults = 0, 0, []

    def see(self, event):
        self._events += 1
        if event.table == "":
            (self._born if event.op == "born" else self._dead).setdefault(event.claimed_by, event.n)
            self._names[event.was_by] = event.claimed_by
            return
        event = event._replace(was_by=self._names.get(event.was_by, event.was_by),
                               claimed_by=self._names.get(event.claimed_by, event.claimed_by))
        if (event.table, event.id) != self._key:
            self._close()
            self._key = event.table, event.id
            self._pools, self._attempt, self._added_by, self._running, self._leaving = {}, 0, None, None, None
            self._rows += 1
        if self._leaving and (event.op, event.pool) != ("delete", self._leaving):
            self._fault(f"is in two pools, and {event.op} in {event.pool}")
        self._leaving, leaving = None, self._leaving
        {"insert": self._insert, "update": self._update, "delete": self._delete}[event.op](event, leaving)

    def end(self):
        self._close()
        return Found(self._events, self._rows, self.faults)

    def _close(self):
        if self._key and (self._leaving or len(self._pools) > 1):
            self._fault(f"ends in two pools: {sorted(self._pools)}")

    def _fault(self, what):
        self.faults.append(f"{self._key[0]}/{self._key[1]} {what}")

    def _insert(self, event, _):
        if event.pool in self._pools:
            self._fault(f"comes into {event.pool} a second time")
        others = [pool for pool in self._pools if pool != event.pool]
        self._pools[event.pool] = event.attempt
        if others:
            self._leaving = others[0]
        if event.attempt < self._attempt:
            self._fault(f"attempt goes down from {self._attempt} to {event.attempt}")
        if event.pool == "tasks":
            self._attempt = max(self._attempt, event.attempt)
            self._added_by = event.user
            if event.state == RUNNING:
                self._fault("is running when it comes")
        elif self._running:
            self._end(event, event.attempt, to_waiting=False)
        elif event.state == SUCCEEDED:
            self._fault(f"attempt {event.attempt} succeeds, and does not run: a second end")

    def _update(self, event, _):
        if event.pool != "tasks":
            self._fault(f"changes in {event.pool}")
            return
        if event.attempt < self._attempt:
            self._fault(f"attempt goes down from {self._attempt} to {event.attempt}")
        if event.state == RUNNING:
            self._claim(event)
        elif event.was_state == RUNNING:
            self._end(event, event.attempt, to_waiting=event.state == WAITING)
        self._attempt = max(self._attempt, event.attempt)
        self._pools["tasks"] = event.attempt

    def _claim(self, event):
        adopted = event.was_state == RUNNING
        if event.attempt != event.was_attempt + 1:
            self._fault(f"is claimed as attempt {event.attempt} after {event.was_attempt}")
        if adopted and event.claimed_by != event.was_by:
            self._fault(f"runs under {event.was_by}, and is taken by {event.claimed_by}")
        if not adopted and event.was_state != WAITING:
            self._fault(f"is claimed from state {event.was_state}")
        if not self._may_be(event.user, event.claimed_by):
            self._fault(f"is claimed for {event.claimed_by} by {event.user}")
        if self._died_before(event.claimed_by, event.n):
            self._fault(f"is claimed for {event.claimed_by}, which is dead")
        self._running = event.attempt, event.claimed_by

    def _end(self, event, attempt, to_waiting):
        if self._running is None:
            self._fault(f"attempt {attempt} has a second end")
            return
        (running, claimer), self._running = self._running, None
        if attempt != running:
            self._fault(f"attempt {attempt} ends while {running} runs")
        rescued = to_waiting and (self._died_before(claimer, event.n) or claimer not in self._born)
        if not rescued and not self._may_be(event.user, claimer):
            self._fault(f"attempt {attempt} of {claimer} is ended by {event.user}")

    def _delete(self, event, leaving):
        self._pools.pop(event.pool, None)
        taken_back = self._attempt == 0 and event.user == self._added_by
        if event.pool == "tasks" and leaving != "tasks" and not taken_back:
            self._fault("is gone without an end")
        if event.pool == "tasks":
            self._running = None

    def _may_be(self, user, incarnation):
        """Whether this session may be that incarnation's, as far as its user tells. Of one that was born before the log
        began there is a number alone."""
        name = str(incarnation)
        return user not in self._workers or name.isdigit() or name.rpartition(".")[0] == user

    def _died_before(self, incarnation, n):
        return self._dead.get(incarnation, n) < n
