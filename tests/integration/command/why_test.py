"""`task why` in each situation that a task can be in, made for real: a server, an ensemble, workers, operators.

Each row of the table makes a situation, asks, and holds the code and the words against what is true. Beside it the
operators' hands themselves: how soon a running task is told to stop, an edit, and acts on many at a rate.
"""
import json
import re
import shutil
import signal
import tempfile
import time
import unittest

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import Scenario

SETTINGS = {"handlers.sleep.concurrency": "1", "handlers.fail.retry.delays": '["10m"]',
            "handlers.fail.retry.max_failures": "3", "handlers.fail.retry.jitter": "0"}
HOUR_MS = 3_600_000


class WhyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="millrace-why-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.s = Scenario("why", False, folder)
        cls.addClassCleanup(cls.s.stop_everything)
        cls.cluster = Cluster(cls.s, slices=1)
        for key, value in SETTINGS.items():
            cls.s.millrace("config", "set", key, value, "--yes")
        cls.cluster.start("w1")
        cls.cluster.wait_owned()

    def run_json(self, *words, expect=0):
        return json.loads(self.s.millrace(*words, "--json", expect=expect))

    def submit(self, handler, params=None, *more):
        added = self.run_json("submit", "--handler", handler, "--params", json.dumps(params or {}), "--force", *more)
        return int(added["names"][0].rsplit("/", 1)[-1])

    def why(self, task):
        return self.run_json("task", "why", str(task))

    def says(self, task, code, words, seconds=15):
        """Waits until the first reason has this code; the words are a pattern in its text."""
        asked = {}

        def right():
            asked.update(self.why(task))
            return asked["code"] == code

        try:
            wait_until(f"why {task} says {code}", right, seconds, 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {asked}") from None
        self.assertEqual(asked["why"][0], asked["reasons"][0]["text"])
        self.assertRegex(asked["why"][0], words)
        text = self.s.millrace("task", "why", str(task)).split("\n")[0]
        self.assertIn(f"main/tasks/{task} is {asked['state']}. ", text)
        return asked

    def ended(self, task):
        wait_until(f"{task} ends", lambda: self.s.db.rows(
            "SELECT state FROM tasks_all WHERE id=%s AND state IN (1,4,-1)", (task,)), 15)

    def end_all(self):
        self.s.millrace("task", "cancel", "--all-matching", "--yes", "--priority", "5")
        self.s.millrace("task", "cancel", "--all-matching", "--yes", "--priority", "3")
        self.s.wait_all_ended(20)

    def test_what_waits_for_its_time(self):
        self.says(self.submit("noop", None, "--in", "3m"), "not_due", r"It waits until .* \(in (2 min 59|3 min)")
        failing = self.submit("fail")
        self.says(failing, "retry_tier", r'\(in (9 min|10 min).*tier 1 of 2 of its retry ladder, after "on_purpose"')
        self.end_all()

    def test_what_has_ended(self):
        done = self.submit("noop")
        self.ended(done)
        self.says(done, "succeeded", r"It succeeded at .* \((now|.* ago)\)")
        failed = self.submit("fail", {"final": True, "why": "no such customer"})
        self.ended(failed)
        self.says(failed, "failed", r"after 1 attempt and needs a person: no such customer")
        keyed = self.submit("noop", None, "--key", "k1")
        self.ended(keyed)
        self.s.db.rows("INSERT INTO tasks (handler, params, biz_key) VALUES ('noop', '{}', 'k1')")
        twin = self.s.db.value("SELECT MAX(id) FROM tasks_all WHERE biz_key='k1'")
        self.ended(twin)
        self.says(twin, "duplicate", rf"duplicate of main/tasks/{keyed}")
        cancelled = self.submit("noop", None, "--in", "1h")
        self.s.millrace("task", "cancel", cancelled)
        self.says(cancelled, "cancelled", r"It was cancelled or skipped at .*, by \w+@")

    def test_what_is_held_and_by_whom(self):
        self.addCleanup(self.s.millrace, "task", "cancel", "--batch", "b", "--all-matching", "--yes")
        ids = [self.submit("noop", None, "--in", "1h", "--batch", "b", "--open") for _ in range(3)]
        self.s.millrace("task", "hold", ids[0])
        self.says(ids[0], "held", r"It is held by \w+@\S+ since .* \(.*\): nothing happens to it until `millrace task rel")
        self.s.millrace("task", "hold", "--batch", "b", "--all-matching", "--yes")
        self.says(ids[2], "held", r"It is held by \w+@")
        row = self.s.db.rows("SELECT COUNT(*), MAX(detail) FROM millrace_audit WHERE action='hold' AND "
                              "detail LIKE '%batch b (act%'")
        self.assertEqual(row[0][0], 1, "one row of the audit for the act on many")
        self.assertIn("2 tasks; were waiting (2); all that match state waiting, batch b", row[0][1])

    def test_what_runs_what_waits_behind_it_and_what_is_told_to_stop(self):
        first = self.submit("sleep", {"ms": HOUR_MS})
        self.says(first, "running", r"It is with w1\.\w+ since .*, which is alive: running, or next in its queue")
        self.s.insert("sleep", {"ms": HOUR_MS}, 3000, ",priority", ",3")
        # Of a priority of its own: a group whose oldest row runs is the oldest in the turn that the oldest has.
        last = self.submit("sleep", {"ms": HOUR_MS}, "--priority", "9")
        asked = self.says(last, "behind", r"waits behind at least [\d,]+ of priority 3")
        told = int(re.search(r"at least ([\d,]+) of", asked["why"][0])[1].replace(",", ""))
        really = self.s.db.value("SELECT COUNT(*) FROM tasks WHERE state=0 AND priority=3")
        self.assertLessEqual(told, really)
        self.assertGreater(told, 1000)
        began = time.monotonic()
        answer = self.run_json("task", "cancel", str(first))
        self.assertEqual(answer["asked_to_stop"], 1)
        wait_until("the running one has stopped", lambda: self.s.db.rows(
            "SELECT state FROM tasks_done WHERE id=%s", (first,)), 10, 0.01)
        took = time.monotonic() - began
        print(f"a running task has ended {took:.2f} s after it was cancelled")
        self.assertLess(took, 3)
        # Priority for one of the many: it is next.
        self.s.millrace("task", "edit", last, "--priority", "0", "--params", '{"ms":1}')
        # By its worker's word of up to two seconds ago, in which the queue had no room.
        self.assertIn(self.why(last)["code"], ("due", "queue_full", "running"), "nothing is before it")
        self.s.millrace("task", "cancel", "--handler", "sleep", "--all-matching", "--yes", "--rate", "100000/s")
        self.s.wait_all_ended(20)

    def test_what_is_paused_by_whom_and_why(self):
        for name in ("cluster", "shard:main", "handler:noop", "slice:main:tasks:0", "worker:w1"):
            with self.subTest(name):
                self.s.millrace("cluster", "pause", name, "--reason", "the partner is down")
                self.addCleanup(self.s.millrace, "cluster", "resume", name, expect=(0, 1))
                time.sleep(2)
                task = self.submit("noop")
                self.says(task, "paused", rf'It is paused \({name}\) by \w+@\S+ since .*, "the partner is down": '
                                          rf"nothing of it starts until `millrace cluster resume {name}`")
                for words in (("status",), ("cluster", "status")):
                    told = " ".join(self.s.millrace(*words, expect=(0, 1)).split())
                    self.assertRegex(told, rf"paused: {name}, by \S+ since \S+: the partner is down")
                time.sleep(1.5)
                self.assertEqual(self.s.db.value("SELECT state FROM tasks WHERE id=%s", (task,)), 0, "it is not started")
                self.assertEqual(list(self.cluster.owned()), ["w1"], "it keeps its slices")
                self.s.millrace("cluster", "resume", name)
                self.ended(task)
        rows = self.s.db.rows("SELECT action, detail FROM millrace_audit WHERE subject='worker:w1' ORDER BY id")
        self.assertEqual([tuple(row) for row in rows], [("pause", "the partner is down"), ("resume", "")])

    def test_without_zookeeper_the_rows_of_the_shard_hold_a_worker(self):
        self.s.db.rows("INSERT INTO millrace_pauses (what, actor) VALUES ('worker:w1', 'ann')")
        time.sleep(1.5)
        task = self.submit("noop")
        self.says(task, "paused", r"It is paused \(worker:w1\) by ann since")
        time.sleep(1)
        self.assertEqual(self.s.db.value("SELECT state FROM tasks WHERE id=%s", (task,)), 0)
        self.s.db.rows("DELETE FROM millrace_pauses")
        self.ended(task)

    def test_what_nobody_can_run(self):
        orphan = self.submit("nobody_has_it")
        self.says(orphan, "no_handler", r"No worker of the cluster runs its type 'nobody_has_it'")
        for undo in (("undrain", "w1"), ("resume", "handler:noop")):
            self.addCleanup(self.s.millrace, "cluster", *undo, expect=(0, 1))
        self.s.millrace("cluster", "pause", "handler:noop")
        self.s.millrace("cluster", "drain", "w1", "--yes")
        time.sleep(1)
        task = self.submit("noop")
        asked = self.says(task, "paused", r"It is paused \(handler:noop\)")
        told = {reason["code"]: reason["text"] for reason in asked["reasons"]}
        self.assertRegex(told["draining"], r"Its slice main/tasks/0 is (nobody's.*w1 gives up all|with w1, which is bein)")
        self.s.millrace("cluster", "undrain", "w1")
        self.s.millrace("cluster", "resume", "handler:noop")
        self.ended(task)
        self.s.millrace("task", "cancel", orphan)

    def test_what_stands_in_a_table_that_is_locked_as_a_whole(self):
        task = self.submit("noop", None, "--in", "3s")
        with self.s.db.connect() as other, other.cursor() as cursor:
            cursor.execute("LOCK TABLES tasks READ")
            self.says(task, "table_rests", r"w1, which has its slice, claims nothing of table tasks in shard main until its "
                                           r"database lets it: .*[Ll]ock wait timeout", 60)
            told = " ".join(self.s.millrace("cluster", "status", expect=(0, 1)).split())
            self.assertRegex(told, r"nothing of table tasks in shard main is claimed by w1: .*[Ll]ock wait timeout")
            cursor.execute("UNLOCK TABLES")
        self.ended(task)

    def test_what_a_dead_worker_has(self):
        task = self.submit("sleep", {"ms": HOUR_MS})
        self.says(task, "running", "alive")
        self.cluster.worker("w1").pause()
        self.says(task, "claimer_silent", r"whose beat stands still", 20)
        self.cluster.worker("w1").resume()
        self.cluster.worker("w1").send(signal.SIGKILL)
        self.s.db.rows("UPDATE millrace_incarnations SET dead=1")  # as who has watched its beat would
        self.says(task, "claimer_dead", r"which is dead or gone")
        waiting = self.submit("noop")
        # Its session lives on for a while: till then the slice is in good hands, as far as anybody knows.
        wait_until("nobody has its slice", lambda: self.why(waiting)["code"] in (
            "owner_gone", "no_handler", "slice_unowned"), 15, 0.2)
        ensemble, self.s.zookeeper = self.s.zookeeper, None
        try:
            self.says(waiting, "no_worker", r"No worker is running on this store")
        finally:
            self.s.zookeeper = ensemble
        self.cluster.start("w1")
        self.ended(waiting)
        self.s.millrace("task", "cancel", task)
        self.ended(task)

    def test_acts_on_many_keep_to_their_rate_and_can_be_stopped_and_repeated(self):
        self.s.insert("noop", {}, 2000, ",run_at,batch", ",UTC_TIMESTAMP()+INTERVAL 1 DAY,'many'")
        chosen = ("--batch", "many", "--all-matching")
        shown = self.run_json("task", "hold", *chosen, "--dry-run")
        self.assertEqual((shown["matched"], shown["groups"]),
                         (2000, [{"handler": "noop", "state": "waiting", "count": 2000}]))
        self.assertEqual(shown["filter"], "state waiting, batch many")
        self.assertEqual(self.s.db.value("SELECT COUNT(*) FROM tasks WHERE state=3"), 0, "it only looks")
        began = time.monotonic()
        self.assertEqual(self.run_json("task", "hold", *chosen, "--yes", "--rate", "1000/s")["changed"], 2000)
        took = time.monotonic() - began
        self.assertTrue(1.7 < took < 6, f"2000 tasks at 1000/s took {took:.1f} s")
        self.assertEqual(self.s.db.value("SELECT COUNT(*) FROM millrace_audit WHERE action='hold' AND detail LIKE "
                                         "'%%batch many%%'"), 8, "a row for each step")
        stopped = self.s.start_process("release", "task", "release", *chosen, "--yes", "--rate", "400/s", "--json")
        wait_until("some are released", lambda: self.s.db.value(
            "SELECT COUNT(*) FROM tasks WHERE state=0 AND batch='many'") >= 100, 10)
        stopped.send(signal.SIGINT)
        self.assertEqual(stopped.exit_code(5), 1)
        released = self.s.db.value("SELECT COUNT(*) FROM tasks WHERE state=0 AND batch='many'")
        self.assertIn(f'"changed":{released},"asked_to_stop":0,"stopped":true', stopped.output())
        again = self.run_json("task", "release", *chosen, "--yes")
        self.assertEqual(again["changed"], 2000 - released)
        edited = self.run_json("task", "edit", "--batch", "many", "--all-matching", "--yes", "--priority", "1")
        self.assertEqual(edited["changed"], 2000)
        self.assertEqual(self.run_json("task", "edit", *chosen, "--yes", "--priority", "1")["changed"], 0)
        stopped = self.s.start_process("edit", "task", "edit", *chosen, "--yes", "--rate", "400/s", "--in", "2d")
        wait_until("some are edited", lambda: self.s.db.value(
            "SELECT COUNT(*) FROM tasks WHERE run_at>UTC_TIMESTAMP()+INTERVAL 36 HOUR AND batch='many'") >= 100, 10)
        stopped.send(signal.SIGINT)
        self.assertEqual(stopped.exit_code(5), 1)
        self.assertIn("stopped before the end: the same again begins with the first of them", stopped.output())
        self.assertEqual(self.run_json("task", "cancel", *chosen, "--yes")["changed"], 2000)


if __name__ == "__main__":
    unittest.main()
