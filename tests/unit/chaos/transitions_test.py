"""The judge of the transition log: a row's legal ways, and each fault that it must find."""
import unittest

from chaos.transitions import Event, Judge

W1, W2, OTHER = "w1.aaa", "w2.bbb", "w2.ccc"
NUMBERS = {W1: "11", W2: "22", OTHER: "33", "w1.zzz": "44", None: "0"}  # the last but one was born before the log began
NONE = (None, None, None)


class Log:
    """Writes what the triggers would, about one row."""

    def __init__(self):
        self.events, self._n = [], 100
        for life in (W1, W2, OTHER):
            self._add("born", "", (None, None, NUMBERS[life]), (None, None, life), table="", row=0)

    def _add(self, op, pool, was, now, user="tester", table="tasks", row=7):
        self._n += 1
        self.events.append(Event(table, row, self._n, pool, op, *was, *now, user))
        return self

    def dead(self, life):
        return self._add("dead", "", (None, None, NUMBERS[life]), (None, None, life), table="", row=0)

    def come(self, attempt=0, state=0):
        return self._add("insert", "tasks", NONE, (state, attempt, "0"))

    def claim(self, life, attempt, user=None):
        return self._add("update", "tasks", (0, attempt - 1, "0"), (2, attempt, NUMBERS[life]), user or life[:2])

    def adopt(self, life, attempt, by=None):
        return self._add("update", "tasks", (2, attempt - 1, NUMBERS[life]), (2, attempt, NUMBERS[by or life]),
                         (by or life)[:2])

    def wait(self, life, attempt, user=None, becomes=None):
        return self._add("update", "tasks", (2, attempt, NUMBERS[life]), (0, becomes or attempt, "0"), user or life[:2])

    def into(self, pool, life, attempt, user=None, state=1):
        return self._add("insert", pool, NONE, (state, attempt, life), user or life[:2])

    def leave(self, pool, life, attempt, user="tester"):
        return self._add("delete", pool, (2, attempt, NUMBERS[life]), NONE, user)

    def settle(self, life, attempt, user=None, pool="done"):
        return self.into(pool, life, attempt, user).leave("tasks", life, attempt, user or life[:2])

    def faults(self):
        judge = Judge(("w1", "w2"))
        for event in sorted(self.events, key=lambda event: event.table):  # lives first; the others as they stand
            judge.see(event)
        return judge.end().faults


class LegalWays(unittest.TestCase):
    def assert_fine(self, log):
        self.assertEqual([], log.faults())

    def test_claim_and_settle(self):
        self.assert_fine(Log().come().claim(W1, 1).settle(W1, 1))

    def test_back_to_waiting_and_again(self):
        self.assert_fine(Log().come().claim(W1, 1).wait(W1, 1).claim(W2, 2).settle(W2, 2, pool="failed"))

    def test_rescue_from_the_dead_by_another(self):
        self.assert_fine(Log().come().claim(W1, 1).dead(W1).wait(W1, 1, "w2").claim(W2, 2).settle(W2, 2))

    def test_rescue_from_one_that_was_never_registered(self):
        self.assert_fine(Log().come().claim("w1.zzz", 1).wait("w1.zzz", 1, "w2").claim(W2, 2).settle(W2, 2))

    def test_adoption(self):
        self.assert_fine(Log().come().claim(W1, 1).adopt(W1, 2).settle(W1, 2))

    def test_retry_of_a_failed_one(self):
        log = Log().come().claim(W1, 1).settle(W1, 1, pool="failed").come(1).leave("failed", W1, 1)
        self.assert_fine(log.claim(W1, 2).settle(W1, 2))

    def test_cancel_of_a_waiting_one(self):
        self.assert_fine(Log().come().into("done", "", 0, "tester", state=4).leave("tasks", None, 0))

    def test_one_that_its_producer_takes_back(self):
        self.assert_fine(Log().come().leave("tasks", None, 0))

    def test_pruning(self):
        self.assert_fine(Log().come().claim(W1, 1).settle(W1, 1).leave("done", W1, 1))


class Faults(unittest.TestCase):
    def assert_found(self, log, what):
        faults = log.faults()
        self.assertTrue(any(what in fault for fault in faults), faults)

    def test_an_attempt_with_two_ends(self):
        self.assert_found(Log().come().claim(W1, 1).wait(W1, 1).settle(W1, 1), "second end")
        self.assert_found(Log().come().claim(W1, 1).wait(W1, 1).wait(W1, 1), "second end")

    def test_a_stale_settle_of_another_ones_attempt(self):
        log = Log().come().claim(W1, 1).dead(W1).wait(W1, 1, "w2").claim(W2, 2)
        self.assert_found(log.settle(W2, 2, user="w1"), "attempt 2 of w2.bbb is ended by w1")

    def test_a_settle_back_to_waiting_by_another_while_the_claimer_lives(self):
        self.assert_found(Log().come().claim(W1, 1).wait(W1, 1, user="w2"), "is ended by w2")

    def test_an_attempt_that_goes_down(self):
        self.assert_found(Log().come().claim(W1, 1).wait(W1, 1).claim(W1, 2).wait(W1, 2, becomes=1), "goes down")

    def test_a_claim_that_counts_nothing(self):
        log = Log().come()._add("update", "tasks", (0, 0, "0"), (2, 0, NUMBERS[W1]), "w1")
        self.assert_found(log, "claimed as attempt 0 after 0")

    def test_a_row_left_in_two_pools(self):
        self.assert_found(Log().come().claim(W1, 1).into("done", W1, 1), "ends in two pools")
        self.assert_found(Log().come().claim(W1, 1).into("done", W1, 1).wait(W1, 1), "is in two pools")

    def test_a_row_that_ends_in_two_pools(self):
        self.assert_found(Log().come().claim(W1, 1).settle(W1, 1).into("failed", W1, 1), "in two pools")

    def test_a_lost_row(self):
        self.assert_found(Log().come().leave("tasks", None, 0, "w1"), "gone without an end")

    def test_a_row_taken_back_after_it_ran(self):
        self.assert_found(Log().come().claim(W1, 1).wait(W1, 1).leave("tasks", None, 1), "gone without an end")

    def test_a_claim_of_a_running_row_by_another(self):
        self.assert_found(Log().come().claim(W1, 1).adopt(W1, 2, by=W2), "is taken by w2.bbb")

    def test_a_claim_for_the_dead(self):
        self.assert_found(Log().come().dead(W1).claim(W1, 1), "which is dead")

    def test_a_claim_in_anothers_name(self):
        self.assert_found(Log().come().claim(W1, 1, user="w2"), "by w2")

    def test_a_success_of_what_does_not_run(self):
        self.assert_found(Log().come().settle(W1, 1), "a second end")


if __name__ == "__main__":
    unittest.main()
