"""A steady load of payments, and whether the workers keep up with it."""
import json
import threading
import time

import pymysql

from chaos import transitions

CUSTOMERS = 500


def payment(number):
    return {"payment_id": number, "customer_id": number % CUSTOMERS, "amount": (number % 9) + 0.5}


def insert(cursor, numbers, due=None):
    """Payments, due now or at a time of the database, up to 1000 of them by one statement: pymysql makes one where the
    values are nothing but marks."""
    column, value = ("run_at, ", (due,)) if due else ("", ())
    cursor.executemany(f"INSERT INTO tasks ({column}handler, params) VALUES ({'%s, ' if due else ''}%s, %s)",
                       [(*value, "award_points", json.dumps(payment(number))) for number in numbers])


class OfferedLoad(threading.Thread):
    """Inserts `award_points` by plain SQL at `rate` a second until stop().

    A database that is away is offered nothing meanwhile, and what is lost of its answers is asked for again: `count` is
    exact.
    """

    def __init__(self, db, rate, tick=0.05):
        super().__init__(daemon=True)
        self._db = db
        self.rate = rate
        self._tick = tick
        self._stop_asked = threading.Event()
        self._error = None
        self.count = 0
        self.began = db.value("SELECT UTC_TIMESTAMP(6)")
        db.rows("CREATE TABLE IF NOT EXISTS test_offered (n BIGINT NOT NULL PRIMARY KEY)")
        self.start()

    def run(self):
        try:
            self._offer()
        except Exception as problem:  # noted here, raised by stop()
            self._error = problem

    def _offer(self):
        connection = None
        began, missed = time.monotonic(), 0
        while not self._stop_asked.wait(self._tick) or connection is None:
            try:
                if connection is None:
                    connection = self._db.connect(autocommit=False)
                    self.count = self._stored(connection)
                    missed = int((time.monotonic() - began) * self.rate) - self.count
                self._insert(connection, int((time.monotonic() - began) * self.rate) - missed)
            except pymysql.err.OperationalError:
                connection = None
        connection.close()

    def _stored(self, connection):
        with connection.cursor() as cursor:
            cursor.execute("SELECT COALESCE(MAX(n), 0) FROM test_offered")
            return cursor.fetchone()[0]

    def _insert(self, connection, until):
        while self.count < until:
            end = min(until, self.count + 500)
            with connection.cursor() as cursor:
                insert(cursor, range(self.count, end))
                cursor.execute("INSERT INTO test_offered VALUES (%s)", (end,))
            connection.commit()
            self.count = end

    def stop(self):
        self._stop_asked.set()
        self.join(60)
        if self._error:
            raise self._error

    def check_all_awarded(self, s, seconds=60):
        """stop(), and wait until everything has ended: nothing lost, each customer has exactly what is due to him."""
        self.stop()
        s.wait_all_ended(seconds)
        # A task whose runs were cut short by too many kills is in the failed pool, has taken no effect, and says why.
        failed = s.db.rows("SELECT params, last_error FROM tasks_failed")
        quarantined = {json.loads(params)["payment_id"] for params, why in failed if "quarantined" in why}
        done = s.done_of("award_points")
        s.check(f"0 lost: all {self.count} payments done, or in quarantine",
                f"{done} succeeded, {len(quarantined)} in quarantine, {len(failed)} failed",
                self.count > 0 and done + len(quarantined) == self.count and len(quarantined) == len(failed))
        awarded = {customer: (points, payments) for customer, points, payments in
                   s.db.rows("SELECT customer_id, points, payments FROM points_account")}
        sums = self._sums(quarantined)
        wrong = sum(awarded.get(customer) != due for customer, due in sums.items())
        s.check("the sums are exact, customer by customer", f"{wrong} of {len(awarded)} customers are wrong",
                wrong == 0 and awarded.keys() == sums.keys())

    def _sums(self, without):
        sums = {}
        for number in range(self.count):
            if number in without:
                continue
            award = payment(number)
            points, payments = sums.get(award["customer_id"], (0, 0))
            sums[award["customer_id"]] = points + int(award["amount"]), payments + 1
        return sums


def capacity(s, tasks):
    """Payments a second that the workers settle with all the work there is. They are all inserted before the first is
    due, and taken away again afterwards, sums included. Take enough of them: a second's worth goes to the servers'
    memory alone, and says nothing of what can be kept up."""
    connection = s.db.connect()
    with connection.cursor() as cursor:
        due = s.db.value("SELECT UTC_TIMESTAMP(6) + INTERVAL %s SECOND", (2 + tasks // 5_000,))
        for start in range(0, tasks, 1000):
            insert(cursor, range(start, min(tasks, start + 1000)), due)
    connection.close()
    s.wait_all_ended(240)
    took = s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, %s, MAX(finished_at)) FROM tasks_done", (due,)) / 1e6
    for table in ("tasks_done", "points_account"):
        s.db.rows(f"DELETE FROM {table}")
    transitions.forget(s.db)
    return tasks / took


def slowest_window(s, rate, since, until, window=5.0, step=0.5):
    """What ended as a part of what was offered, `rate` a second, in the worst of all `window` seconds between two times
    of the database; 1.0 is to keep up. Workers that hold the inserts up gain nothing by it. To be asked once all of it
    has ended."""
    steps = int(window / step)
    last = s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, %s, %s) DIV %s", (since, until, int(step * 1e6)))
    ended = dict(s.db.rows(
        "SELECT TIMESTAMPDIFF(MICROSECOND, %s, finished_at) DIV %s, COUNT(*) FROM tasks_done "
        "WHERE handler = 'award_points' AND finished_at >= %s AND finished_at < %s GROUP BY 1",
        (since, int(step * 1e6), since, until)))
    return min(sum(ended.get(first + i, 0) for i in range(steps)) for first in range(last - steps)) / (rate * window)


def late_starts(s, since, until, slices=None, percent=99):
    """The given percentile, in ms, of the time from a payment's due time to its end: an upper bound of due-to-start,
    since a payment takes but a moment. Of those due between two times of the database, and of these slices alone."""
    where, values = "", [since, until]
    if slices is not None:
        where, values = " AND slice IN %s", [*values, list(slices)]
    took = [row[0] for row in s.db.rows(
        "SELECT TIMESTAMPDIFF(MICROSECOND, run_at, finished_at) FROM tasks_done WHERE handler = 'award_points' "
        f"AND run_at >= %s AND run_at < %s{where} ORDER BY 1", values)]
    if not took:
        raise AssertionError("no payment was due in that time")
    return took[min(len(took) - 1, len(took) * percent // 100)] / 1000
