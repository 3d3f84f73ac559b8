"""Every kind of alert by its cause, and over when that is gone: with `run` on a SQLite file."""
import json
import os
import sqlite3
import time

from chaos.processes import wait_until
from chaos.scenario import main
from chaos.sinks import FAIL, alert, sinks_of, wait_arrived

PROMISED = 10  # seconds from the cause to the first message


class Embedded:
    """`millrace run` on a file, started anew where it dies."""

    def __init__(self, s, config):
        self._s = s
        self.file = s.path("alerts.db")
        self._config = s.path("alerts.json")
        with open(self._config, "w") as file:
            json.dump(config, file)
        os.makedirs(s.path("state-run"), exist_ok=True)
        self.start()

    def start(self):
        self.process = self._s.start_process(
            "run", "run", "--store", f"sqlite:{self.file}", "--config", self._config, "--plugins",
            self._s.plugins(), "--state-dir", self._s.path("state-run"))

    def command(self, *arguments, **more):
        return self._s.millrace(*arguments, "--store", f"sqlite:{self.file}", "--config", self._config, **more)

    def submit(self, handler, params=None, count=1):
        self.command("submit", "--handler", handler, "--params", json.dumps(params or {}), "--count", count, "--force")
        return time.monotonic()

    def change(self, sql):
        """Behind the program's back; how many rows it hit."""
        connection = sqlite3.connect(self.file, timeout=10, isolation_level=None)
        hit = connection.execute(sql).rowcount
        connection.close()
        return hit


def run(s):
    with sinks_of() as (mail, hook):
        every_kind(s, mail, hook)


def every_kind(s, mail, hook):
    config = {"engine": {"lease": "3s"},
              "handlers": {"fail": FAIL, "sleep": {"concurrency": 1, "queue": 1}, "send_mail": mail.handler()},
              "schedules": {"hourly": {"every": "1h", "handler": "noop", "catch_up": "none"}},
              "alerts": {"failed": alert(hook, "failed", more_than=2),
                         "late": alert(hook, "oldest_due", longer_than="2s", handler="sleep"),
                         "unrunnable": alert(hook, "unrunnable"), "refused": alert(hook, "refused"),
                         "crashes": alert(hook, "crashes", handler="crash"), "lost": alert(hook, "worker_lost"),
                         "schedules": alert(hook, "schedule"),
                         "broken": {"kind": "failed", "more_than": 1_000_000, "webhook": hook.url.replace("200", "400")}}}
    store = Embedded(s, config)
    wait_until("the file is there", lambda: os.path.exists(store.file), 20)
    wait_until("a task runs", lambda: _runs(store), 20)
    sinks = (mail, hook)
    said = store.command("alerts", "test", "failed")
    s.check("alerts test sends a mail and calls the webhook", said.count("sent"), said.count("sent") == 2)
    wait_arrived(sinks, ("failed",), "test", 5)  # the sinks note it behind their answer
    said = store.command("alerts", "test", "broken", expect=1)
    s.check("what can't be sent is said, and is the exit code", said.strip().splitlines()[-1], "400" in said)
    s.check("a test leaves no failed task behind", left := store.command("task", "list", "--state", "failed"),
            "no task" in left)
    store.command("alerts", "test", "faild", expect=1)

    began = {"failed": store.submit("fail", count=3), "unrunnable": store.submit("exotic"),
             "late": store.submit("sleep", {"ms": 3000}, 6) + 2}
    # Nobody was there for two and a half hours: what came due in them lapses.
    wait_until("a schedule is late", lambda: store.change(
        "UPDATE millrace_schedules SET anchor=strftime('%Y-%m-%d %H:%M:%f000','now','-150 minutes'), "
        "next_at=strftime('%Y-%m-%d %H:%M:%f000','now','-150 minutes')") == 1, 10)
    began["schedules"] = time.monotonic()
    wait_until("a task sleeps", lambda: store.change("UPDATE tasks SET attempt=attempt+1 WHERE state=2 AND handler='sleep' "
                                                     "AND id=(SELECT MIN(id) FROM tasks WHERE handler='sleep')"), 10)
    refused = time.monotonic() + 3  # when it has slept at the latest
    wait_arrived(sinks, began, "firing", 30)
    check_told(s, sinks, began)
    listed = {one["alert"]: one["firing"] for one in json.loads(store.command("alerts", "list", "--json"))["alerts"]}
    s.check("alerts list says which fire", listed, listed["failed"] and listed["unrunnable"] and not listed["crashes"])
    shown = {one["alert"]: one["fires"] for one in json.loads(store.command(
        "status", "--json", "--sample", "0s", expect=(0, 1)))["alerts"]}
    s.check("and so does status", shown, shown == listed)
    store.command("task", "cancel", "--all-matching", "--handler", "fail", "--state", "failed", "--yes")
    store.command("task", "cancel", "--all-matching", "--handler", "exotic", "--yes")
    wait_arrived(sinks, ("refused",), "firing", 40)
    check_told(s, sinks, {"refused": refused})
    store.command("task", "cancel", "--all-matching", "--handler", "sleep", "--yes")
    wait_until("nobody sleeps", lambda: store.change("UPDATE tasks SET progress=progress WHERE handler='sleep'") == 0, 40)

    store.submit("crash")  # what fires by now is over in another process
    for _ in range(3):
        wait_until("the crash took the process along", lambda: not store.process.runs(), 20)
        store.start()
    again = time.monotonic()
    wait_arrived(sinks, ("crashes", "lost"), "firing", 30)
    check_told(s, sinks, {"crashes": again, "lost": again}, "the start after it")
    wait_arrived(sinks, ("failed", "unrunnable", "late", "refused", "crashes", "lost"), "over", 40)
    wait_arrived(sinks, ("schedules",), "over", 60)  # 75 s are looked back at least
    kinds = ("failed", "late", "unrunnable", "refused", "crashes", "lost", "schedules")
    counts = {name: [len(sink.messages(name, state)) for sink in sinks for state in ("firing", "over")] for name in kinds}
    s.check("each kind was told and was over, by mail and webhook alike", counts,
            all(row[0] == row[2] and row[1] == row[3] and 1 <= row[1] <= row[0] <= 3 for row in counts.values()))
    store.process.terminate()
    store.process.exit_code(30)


def check_told(s, sinks, since, what="its cause"):
    """`since`: of each alert that was told, the time.monotonic() from which on it could be."""
    for name, cause in since.items():
        took = max(sink.messages(name, "firing")[0][0] for sink in sinks) - cause
        s.check(f"{name} is told within {PROMISED} s of {what}", f"{took:.1f} s", took <= PROMISED)


def _runs(store):
    store.submit("noop")
    return store.change("UPDATE tasks_done SET result=result WHERE handler='noop'") > 0


if __name__ == "__main__":
    main(run)
