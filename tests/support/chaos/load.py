"""Work for the workers: the sample payments, paced, and programs that note each of their starts."""
import csv
import json
import os
import threading
import time

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
