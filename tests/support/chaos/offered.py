"""A steady load of payments, and whether the workers keep up with it."""
import json
import threading
import time

from chaos import transitions
from chaos.processes import wait_until

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
    """Inserts `award_points` by plain SQL at `rate` a second until stop(), or until there are `total`."""

    def __init__(self, db, rate, total=None, tick=0.05):
        super().__init__(daemon=True)
        self._db = db
        self.rate = rate
        self._total = total
        self._tick = tick
        self._stop_asked = threading.Event()
        self._error = None
        self.count = 0
        self.began = db.value("SELECT UTC_TIMESTAMP(6)")
        self.start()

    def run(self):
        try:
            self._offer()
        except Exception as problem:  # noted here, raised by stop()
            self._error = problem

    def _offer(self):
        connection = self._db.connect()
        began = time.monotonic()
        with connection.cursor() as cursor:
            while not self._stop_asked.wait(self._tick) and self.count != self._total:
                due = int((time.monotonic() - began) * self.rate)
                self._insert(cursor, due if self._total is None else min(due, self._total))
        connection.close()

    def _insert(self, cursor, until):
        while self.count < until:
            end = min(until, self.count + 500)
            insert(cursor, range(self.count, end))
            self.count = end

    def wait(self, seconds):
        """Until all of `total` are there."""
        self.join(seconds)
        self.stop()
        if self.count != self._total:
            raise AssertionError(f"only {self.count} of {self._total} payments could be inserted in {seconds} s")

    def stop(self):
        self._stop_asked.set()
        self.join(60)
        if self._error:
            raise self._error

    def check_all_awarded(self, s, seconds=60):
        """stop(), and wait until everything has ended: nothing lost, each customer has exactly what is due to him."""
        self.stop()
        s.wait_all_ended(seconds)
        s.check(f"0 lost: all {self.count} payments done", f"{s.done()} succeeded, {s.failed()} failed",
                self.count > 0 and (s.done_of("award_points"), s.failed()) == (self.count, 0))
        awarded = {customer: (points, payments) for customer, points, payments in
                   s.db.rows("SELECT customer_id, points, payments FROM points_account")}
        wrong = sum(awarded.get(customer) != sums for customer, sums in self._sums().items())
        s.check("the sums are exact, customer by customer", f"{wrong} of {len(awarded)} customers are wrong",
                wrong == 0 and awarded.keys() == self._sums().keys())

    def _sums(self):
        sums = {}
        for number in range(self.count):
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
    wait_until("all are done", lambda: not s.db.value("SELECT EXISTS (SELECT 1 FROM tasks)"), 240, 0.25)
    took = s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, %s, MAX(finished_at)) FROM tasks_done", (due,)) / 1e6
    for table in ("tasks_done", "points_account"):
        s.db.rows(f"DELETE FROM {table}")
    transitions.forget(s.db)
    return tasks / took


def slowest_window(s, since, until, window=5.0, step=0.5):
    """What ended as a part of what came in, in the worst of all `window` seconds between two times of the database;
    1.0 is to keep up. To be asked once all of it has ended."""
    steps = int(window / step)
    last = s.db.value("SELECT TIMESTAMPDIFF(MICROSECOND, %s, %s) DIV %s", (since, until, int(step * 1e6)))
    ended, offered = (dict(s.db.rows(
        f"SELECT TIMESTAMPDIFF(MICROSECOND, %s, {column}) DIV %s, COUNT(*) FROM tasks_done "
        f"WHERE handler = 'award_points' AND {column} >= %s AND {column} < %s GROUP BY 1",
        (since, int(step * 1e6), since, until))) for column in ("finished_at", "created_at"))
    parts = [sum(ended.get(first + i, 0) for i in range(steps)) /
             max(1, sum(offered.get(first + i, 0) for i in range(steps))) for first in range(last - steps)]
    return min(parts)


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
