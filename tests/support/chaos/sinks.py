"""Where mail and webhooks arrive: the servers of the handlers' own tests, with what they were sent."""
import base64
import contextlib
import email
import json
import pathlib
import subprocess
import threading
import time

from chaos.processes import wait_until

_SERVERS = pathlib.Path(__file__).parents[2] / "integration" / "handlers"


class Sink:
    """A server in a process of its own, which prints its port and then a JSON line for each message."""

    def __init__(self, script):
        self._child = subprocess.Popen(["/usr/bin/python3", "-B", _SERVERS / script], stdout=subprocess.PIPE, text=True)
        self.address = f"127.0.0.1:{self._child.stdout.readline().strip()}"
        self._messages = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._child.stdout:
            self._messages.append((time.monotonic(), self.parse(json.loads(line))))

    def parse(self, message):
        raise NotImplementedError

    def messages(self, alert, state):
        """Of an alert, (when, what) in their order; `state` is firing, over or test."""
        return [(at, message) for at, message in list(self._messages)
                if message["alert"] == alert and message["state"] == state]

    def stop(self):
        self._child.kill()
        self._child.wait()


class WebhookSink(Sink):
    def __init__(self):
        super().__init__("http_server.py")
        self.url = f"http://{self.address}/200"

    def parse(self, message):
        return json.loads(message["body"])


class MailSink(Sink):
    def __init__(self):
        super().__init__("smtp_server.py")

    def parse(self, message):
        mail = email.message_from_string(message["text"])
        body = base64.b64decode(mail.get_payload()).decode()
        words = mail["Subject"].removeprefix("[millrace] ")
        state = "test" if words.startswith("test of ") else "over" if words.endswith(" is over") else "firing"
        alert = {"test": words.split(" ")[-1], "over": words.removesuffix(" is over")}.get(state, words.split(":")[0])
        return {"alert": alert, "state": state, "to": message["to"], "subject": mail["Subject"], "body": body}

    def handler(self):
        """What the configuration has of send_mail: the server, for alerts alone."""
        return {"options": {"server": self.address, "security": "none", "from": "millrace@example.com"}}


FAIL = {"retry": {"delays": ["1s"], "max_failures": 1}}  # of a type that is in the failed pool at once


@contextlib.contextmanager
def sinks_of():
    mail, hook = MailSink(), WebhookSink()
    try:
        yield mail, hook
    finally:
        mail.stop()
        hook.stop()


def alert(hook, kind, every="5s", **more):
    return {"kind": kind, "mail": ["ops@example.com"], "webhook": hook.url, "every": every, **more}


def wait_arrived(sinks, names, state, seconds):
    """Until each of the sinks has a message of each alert."""
    for name in names:
        wait_until(f"{name} is {state}", lambda name=name: all(sink.messages(name, state) for sink in sinks), seconds, 0.05)
