"""Every kind of alert by its cause, and over when that is gone: with `run` on a SQLite file, and in a cluster, where
10,000 failures make one mail and one call of the webhook though the leader is killed twice, and one more each when it is
over."""
import json
import os
import sqlite3
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.sinks import MailSink, WebhookSink

FAIL = {"retry": {"delays": ["1s"], "max_failures": 1}}
PROMISED = 10  # seconds from the cause to the first message


def run(s):
    mail, hook = MailSink(), WebhookSink()
    try:
        embedded(s, mail, hook)
        clustered(s, mail, hook)
    finally:
        mail.stop()
        hook.stop()


def send_mail(mail):
    return {"options": {"server": mail.address, "security": "none", "from": "millrace@example.com",
                        "subject": "-", "body": "-"}}


def alert(hook, kind, every="5s", **more):
    return {"kind": kind, "mail": ["ops@example.com"], "webhook": hook.url, "every": every, **more}


def arrived(sinks, name, state, count=1):
    return all(len(sink.messages(name, state)) >= count for sink in sinks)


def wait_arrived(sinks, names, state, seconds):
    for name in names:
        wait_until(f"{name} is {state}", lambda name=name: arrived(sinks, name, state), seconds, 0.05)


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


def embedded(s, mail, hook):
    config = {"engine": {"lease": "3s"},
              "handlers": {"fail": FAIL, "sleep": {"concurrency": 1, "queue": 1}, "send_mail": send_mail(mail)},
              "alerts": {"failed": alert(hook, "failed", more_than=2),
                         "late": alert(hook, "oldest_due", longer_than="2s", handler="sleep"),
                         "unrunnable": alert(hook, "unrunnable"), "refused": alert(hook, "refused"),
                         "crashes": alert(hook, "crashes"), "lost": alert(hook, "worker_lost"),
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
    store.command("alerts", "test", "faild", expect=2)

    began = {"failed": store.submit("fail", count=3), "unrunnable": store.submit("exotic"),
             "late": store.submit("sleep", {"ms": 5000}, 5) + 2}
    wait_until("a task sleeps", lambda: store.change("UPDATE tasks SET attempt=attempt+1 WHERE state=2 AND handler='sleep' "
                                                     "AND id=(SELECT MIN(id) FROM tasks WHERE handler='sleep')"), 10)
    wait_arrived(sinks, began, "firing", 30)
    for name, cause in began.items():
        took = max(sink.messages(name, "firing")[0][0] for sink in sinks) - cause
        s.check(f"{name} is told within {PROMISED} s of its cause", f"{took:.1f} s", took <= PROMISED)
    listed = {one["alert"]: one["firing"] for one in json.loads(store.command("alerts", "list", "--json"))["alerts"]}
    s.check("alerts list says which fire", listed, listed["failed"] and listed["unrunnable"] and not listed["crashes"])
    shown = {one["alert"]: one["fires"] for one in json.loads(store.command(
        "status", "--json", "--sample", "0s", expect=(0, 1)))["alerts"]}
    s.check("and so does status", shown, shown == listed)
    store.command("task", "cancel", "--all-matching", "--handler", "fail", "--state", "failed", "--yes")
    store.command("task", "cancel", "--all-matching", "--handler", "exotic", "--yes")
    wait_arrived(sinks, ("refused",), "firing", 40)
    store.command("task", "cancel", "--all-matching", "--handler", "sleep", "--yes")
    wait_until("nobody sleeps", lambda: store.change("UPDATE tasks SET progress=progress WHERE handler='sleep'") == 0, 40)

    store.submit("crash")  # what fires by now is over in another process
    for _ in range(3):
        wait_until("the crash took the process along", lambda: not store.process.runs(), 20)
        store.start()
    wait_arrived(sinks, ("crashes", "lost"), "firing", 30)
    wait_arrived(sinks, ("failed", "unrunnable", "late", "refused", "crashes", "lost"), "over", 40)
    kinds = ("failed", "late", "unrunnable", "refused", "crashes", "lost")
    counts = {name: [len(sink.messages(name, state)) for sink in sinks for state in ("firing", "over")] for name in kinds}
    s.check("each kind was told and was over, by mail and webhook alike", counts,
            all(row[0] == row[2] and row[1] == row[3] and 1 <= row[1] <= row[0] <= 3 for row in counts.values()))
    s.check("mail has no header but its own", "", not any("\nBcc" in m["subject"] for _, m in mail.messages("failed", "firing")))
    store.process.terminate()
    store.process.exit_code(30)


def _runs(store):
    store.submit("noop")
    return store.change("UPDATE tasks_done SET result=result WHERE handler='noop'") > 0


def clustered(s, mail, hook):
    sinks = (mail, hook)
    for sink in sinks:
        sink.forget()
    failures = 10_000
    cluster = Cluster(s, handlers={"fail": {**FAIL, "concurrency": 8}, "send_mail": send_mail(mail)})
    cluster.start_coordinator("c1")
    wait_until("c1 leads", lambda: cluster.leader() == "c1", 20, 0.05)
    s.millrace("config", "set", "alerts", json.dumps(
        {"failed": alert(hook, "failed", "1h"), "unowned": alert(hook, "unowned", "1h")}))
    cluster.start("w1", "--no-coordinate", "--load-balance", "0-31")
    wait_arrived(sinks, ("unowned",), "firing", 30)
    w2 = cluster.start("w2", "--no-coordinate")
    cluster.wait_owned()
    wait_arrived(sinks, ("unowned",), "over", 30)

    s.insert("fail", {}, failures)
    wait_until("tasks fail", s.failed, 20, 0.005)
    cluster.worker("c1").kill()
    cluster.start_coordinator("c2")
    wait_until("all have failed", lambda: s.failed() == failures, 60, 0.1)
    wait_until("c2 leads", lambda: cluster.leader() == "c2", 30, 0.05)
    wait_arrived(sinks, ("failed",), "firing", 30)
    cluster.worker("c2").kill()
    cluster.start_coordinator("c3")
    wait_until("c3 leads", lambda: cluster.leader() == "c3", 30, 0.05)
    time.sleep(7)  # for a message that should not be
    told = [len(sink.messages("failed", "firing")) for sink in sinks]
    s.check(f"{failures} failures, the leader killed twice: one mail and one call", told, told == [1, 1])
    call, letter = hook.messages("failed", "firing")[0][1], mail.messages("failed", "firing")[0][1]
    s.check("both have the count, and examples",
            f"{call['count']}; {letter['subject']}; {len(call['examples'])} examples",
            call["count"] == failures and str(failures) in letter["subject"] and call["examples"]
            and call["examples"][0] in letter["body"])
    s.millrace("task", "cancel", "--all-matching", "--state", "failed", "--yes")
    wait_arrived(sinks, ("failed",), "over", 30)
    time.sleep(3)
    told = [len(sink.messages("failed", state)) for sink in sinks for state in ("firing", "over")]
    s.check("and one more each when it is over", told, told == [1, 1, 1, 1])
    w2.terminate()


if __name__ == "__main__":
    main(run)
