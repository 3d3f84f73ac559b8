"""A partner that fails for a while, under a steady load of calls and beside another task type: what its breaker makes of
it, in one worker or in several."""
import time

from chaos.load import SteadyLoad
from chaos.partner import Partner
from chaos.processes import wait_until

PROBE_EVERY = 1.0
MINIMUM = 20
CONCURRENCY = 4
RATE = 60  # calls a second, in all
WINDOW = 2.0


def handlers(partner):
    """The task type that calls it, and another."""
    return {
        "call": {"uses": "http_call", "concurrency": CONCURRENCY, "options": {"url": partner.url},
                 "retry": {"delays": ["1s"], "max_failures": 2},
                 "breaker": {"window": f"{WINDOW:g}s", "minimum": MINIMUM, "probe_every": f"{PROBE_EVERY:g}s"}},
        "other": {"uses": "sleep", "concurrency": CONCURRENCY},
    }


class BrokenPartner:
    """`workers`: how many there are."""

    def __init__(self, s, workers):
        self._s = s
        self._workers = workers
        self.partner = Partner()
        self.outage = s.size(6, 30)

    def _others_per_second(self, seconds):
        """The rate of the other type while so much time passes."""
        before, began = self._s.done_of("other"), time.monotonic()
        time.sleep(seconds)
        return (self._s.done_of("other") - before) / (time.monotonic() - began)

    def run(self, told, told_by=()):
        """`told()`: what status says of the breaker, opened by one of `told_by`; None where nobody can be asked."""
        s, partner = self._s, self.partner
        measured = s.size(4, 10)
        rate = CONCURRENCY * self._workers / 0.010  # the most that the other type can do
        s.insert("other", {"ms": 10}, int(rate * (self.outage + 2 * measured + 12)))
        load = SteadyLoad(s.db.connect, RATE, lambda i: ("call", {"n": i}))
        wait_until("calls are answered", lambda: s.done_of("call") > 100, 30)
        alone = self._others_per_second(measured)

        partner.works, began = False, time.monotonic()
        wait_until("its breaker opens", lambda: partner.refused() >= MINIMUM // 2 and self._quiet(), 10, 0.05)
        opened, opened_at = time.monotonic(), s.now()
        at_first = partner.calls_in(began, opened)
        most = RATE * (WINDOW + 1)  # half a window's share, and until it is seen
        s.check("calls stop once a share of them has failed", f"{at_first} calls in {opened - began:.1f} s, at most {most:.0f}",
                at_first <= most)
        if told:
            said = told()
            s.check("status says that it is open, by whom and why", said,
                    said.get("state") == "open" and said.get("by") in told_by and said.get("why"))
        beside = self._others_per_second(self.outage - (opened - began))
        over = time.monotonic()
        probes = partner.calls_in(opened, over)
        budget = (over - opened) / PROBE_EVERY + 1
        s.check(f"then the partner is called by probes alone, one each {PROBE_EVERY:g} s of all {self._workers} workers",
                f"{probes} calls in {over - opened:.1f} s, at most {budget:.0f}", 1 <= probes <= budget)
        s.check("another task type keeps its rate within a tenth", f"{alone:.0f} a second alone, {beside:.0f} beside",
                beside >= 0.9 * alone)

        partner.works = True
        sent = load.finish()
        wait_until("all calls are done", lambda: s.done_of("call") == sent, 60, 0.1)
        s.check("all are done after it recovers", f"{sent} done, {s.failed()} failed", s.failed() == 0)
        worst = s.db.value("SELECT COALESCE(MAX(n), 0) FROM (SELECT COUNT(*) AS n FROM millrace_attempts "
                           "WHERE kind = 'failed' GROUP BY task_id) AS each_task")
        charged = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind = 'failed'")
        s.check("no task has more than one failure of it", f"at most {worst}; {charged} failures in all",
                worst <= 1)
        probed = s.db.value("SELECT COUNT(*) FROM millrace_attempts WHERE kind = 'failed' AND at > %s", (opened_at,))
        s.check("probes are charged to nobody", f"{probed} failures while it was open", probed == 0)

    def _quiet(self):
        """For a probe's time and a half there was one call at most."""
        now = time.monotonic()
        return self.partner.calls_in(now - 0.5, now) <= 1
