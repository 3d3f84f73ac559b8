"""Work for the workers: the sample payments, paced, and programs that note each of their starts."""
import csv
import json
import os
import threading
import time

import pymysql

from chaos.scenario import PAYMENTS


def payments():
    """The sample payments as (key, params), as `millrace submit --from` makes them."""
    with open(PAYMENTS, newline="") as file:
        for row in csv.DictReader(file):
            yield row["payment_id"], json.dumps({
                "payment_id": int(row["payment_id"]), "customer_id": int(row["customer_id"]),
                "amount": float(row["amount"])})


class PacedPayments(threading.Thread):
    """Inserts all payments by plain SQL, evenly over `seconds`."""

    def __init__(self, db, seconds, chunk=50):
        super().__init__(daemon=True)
        self._db = db
        self._seconds = seconds
        self._chunk = chunk
        self.error = None
        self.start()

    def run(self):
        try:
            self._insert(list(payments()))
        except Exception as problem:  # noted here, raised by finish()
            self.error = problem

    def _insert(self, rows):
        connection = self._db.connect()
        began = time.monotonic()
        with connection.cursor() as cursor:
            for start in range(0, len(rows), self._chunk):
                time.sleep(max(0.0, began + self._seconds * start / len(rows) - time.monotonic()))
                cursor.executemany(
                    "INSERT INTO tasks (handler, biz_key, params) VALUES ('award_points', %s, %s)",
                    rows[start:start + self._chunk])
        connection.close()

    def finish(self):
        self.join(self._seconds + 60)
        if self.error:
            raise self.error
        if self.is_alive():
            raise AssertionError("the payments could not be inserted in time")


class SteadyLoad(threading.Thread):
    """Inserts `rate` tasks a second by plain SQL until finish(). task(i) is the (handler, params) of the i-th.

    A database that is away is offered nothing meanwhile: what could not be inserted is left out.
    """

    TICK = 0.05

    def __init__(self, connect, rate, task, table="tasks"):
        super().__init__(daemon=True)
        self._connect = connect
        self._rate = rate
        self._task = task
        self._table = table
        self._ended = threading.Event()
        self.sent = []  # the numbers of those that were inserted for certain
        self.began = time.time()
        self.start()

    def run(self):
        connection, number = None, 0
        while not self._ended.wait(self.TICK):
            due = int((time.time() - self.began) * self._rate)
            try:
                connection = connection or self._connect()
                self._insert(connection, range(number, due))
                self.sent += range(number, due)
            except pymysql.err.MySQLError:
                connection = None
            number = due

    def _insert(self, connection, numbers):
        if not numbers:
            return
        values = [value for i in numbers for value in (self._task(i)[0], json.dumps(self._task(i)[1]))]
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {self._table} (handler, params) VALUES "
                           + ", ".join(["(%s, %s)"] * len(numbers)), values)

    def finish(self):
        """Ends it; returns how many tasks it has inserted."""
        self._ended.set()
        self.join(90)
        if self.is_alive():
            raise AssertionError("an insert hangs")
        return len(self.sent)


def slowest_window(times, began, ended, seconds=5.0, step=0.5):
    """The fewest of `times` in any window of so many seconds between the two, per second."""
    slowest, start = None, began
    while start + seconds <= ended:
        rate = sum(start <= at < start + seconds for at in times) / seconds
        slowest = rate if slowest is None else min(slowest, rate)
        start += step
    return slowest


class NotedProgram:
    """A program for the handler `exec` that notes each start, with its time, and then takes its time.

    One per worker, so that the notes say who started what.
    """

    def __init__(self, folder, name, seconds):
        self._notes = os.path.join(folder, f"{name}.starts")
        self._script = os.path.join(folder, f"{name}.sh")
        with open(self._script, "w") as script:
            script.write('#!/bin/sh\n'
                         'now=$(date +%s.%N)\n'
                         'read -r task\n'
                         f'echo "$now $task" >>{self._notes}\n'
                         f'exec sleep {seconds}\n')
        os.chmod(self._script, 0o755)

    def handler(self, **more):
        """The configuration of a task type that runs it."""
        return {"uses": "exec", "options": {"program": self._script}, **more}

    def starts(self):
        """(time, task) of every start so far; task is what the handler passes on standard input."""
        if not os.path.exists(self._notes):
            return []
        with open(self._notes) as notes:
            lines = [line.split(" ", 1) for line in notes if line.endswith("\n")]
        return [(float(at), json.loads(task)) for at, task in lines]
