"""A stand-in for the service manager speaks its protocol, kills a worker whose watchdog is not fed, and starts it again.
A mill that stands still is restarted; a busy one, one beside a long task, and one whose database is away are not.

What makes a mill stand still here is what may in earnest: whoever takes the log does not take it any more, so that the
next thread with a word to say waits for ever."""
import fcntl
import os
import pathlib
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from chaos.mariadb import MariaDb
from chaos.processes import die_with_parent, wait_until

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
WATCHDOG = 3.0  # seconds
SEVERAL = 3 * WATCHDOG
F_SETPIPE_SZ = 1031
failures = []


def check(asked, measured, holds):
    print(f"{'ok    ' if holds else 'FAILED'}  {asked}: {measured}", flush=True)
    if not holds:
        failures.append(asked)


class Log:
    """The pipe that takes the log of one life, as a journal would."""

    def __init__(self, path):
        self._end, self.writing = os.pipe()
        fcntl.fcntl(self._end, F_SETPIPE_SZ, 4096)
        self._taking, self._parked = threading.Event(), threading.Event()
        self._taking.set()
        threading.Thread(target=self._take, args=(path,), daemon=True).start()

    def _take(self, path):
        with open(path, "ab") as file:
            while part := os.read(self._end, 4096):
                file.write(part)
                file.flush()
                if not self._taking.is_set():
                    self._parked.set()
                    self._taking.wait()

    def stop_taking(self):
        """Full at once: what is written from now on waits."""
        self._taking.clear()
        os.write(self.writing, b"taken no more\n")
        self._parked.wait()
        filler = os.open(f"/proc/self/fd/{self.writing}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            for size in [1024] * 20 + [1] * 4096:
                try:
                    os.write(filler, b"." * size)
                except BlockingIOError:
                    pass
        finally:
            os.close(filler)


class Manager:
    """systemd's part: Type=notify, WatchdogSec, Restart=on-failure."""

    def __init__(self, folder, arguments, environment=None):
        self.folder, self.environment = folder, environment or {}
        self.command = [str(part) for part in (BINARY / "millrace", *arguments, "--state-dir", f"{folder}/state", "--plugins",
                                               BINARY / "tests" / "plugins")]
        self.lives, self.ready, self.statuses, self.stopping = 0, 0, [], False
        self.process, self.log, self._fed, self._ended = None, None, None, threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"{folder}/notify")
        self._socket.settimeout(0.05)
        self._begin()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _begin(self):
        self.lives += 1
        self._fed = None
        self.log = Log(f"{self.folder}/log")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log.writing,
            preexec_fn=die_with_parent,
            env={**os.environ, **self.environment, "NOTIFY_SOCKET": f"{self.folder}/notify",
                 "WATCHDOG_USEC": str(int(WATCHDOG * 1e6))})

    def _run(self):
        while not self._ended.is_set():
            self._hear()
            watched = self._fed is not None and not self.stopping
            if watched and time.monotonic() - self._fed > WATCHDOG:
                self.process.send_signal(signal.SIGABRT)
                try:
                    self.process.wait(5)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            if self.process.poll() not in (None, 0) and not self._ended.is_set():
                self._begin()

    def _hear(self):
        try:
            message = self._socket.recv(4096).decode()
        except socket.timeout:
            return
        for line in message.splitlines():
            key, _, value = line.partition("=")
            if key == "READY":
                self.ready += 1
            if key in ("READY", "WATCHDOG"):
                self._fed = time.monotonic()
            if key == "STATUS":
                self.statuses.append(value)
            if key == "STOPPING":
                self.stopping = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self.process.kill()
        self.process.wait()


def millrace(*arguments, environment=None):
    done = subprocess.run([BINARY / "millrace", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == 0, done.stderr
    return done.stdout


def not_restarted(manager, what, lives):
    check(f"{what} is not restarted", f"{manager.lives} lives", manager.lives == lives and manager.process.poll() is None)


def away(database, seconds):
    """Nobody else writes to the database for so long."""
    connection = sqlite3.connect(database, timeout=30, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    time.sleep(seconds)
    connection.execute("ROLLBACK")
    connection.close()


def embedded(folder, manager):
    database, store = f"{folder}/tasks.db", f"sqlite:{folder}/tasks.db"
    wait_until("the worker is ready", lambda: manager.ready == 1, 30)
    wait_until("it says how it is", lambda: any("tasks a second" in status for status in manager.statuses), 30)
    check("it says once that it is ready, and how it is", f"{manager.ready} times, {manager.statuses[-1]}",
          manager.ready == 1 and "tasks a second" in manager.statuses[-1])

    millrace("submit", "--store", store, "--handler", "sleep", "--force", "--params", f'{{"ms": {int(SEVERAL * 1000)}}}')
    until, submitted = time.monotonic() + SEVERAL, 0
    while time.monotonic() < until:
        millrace("submit", "--store", store, "--handler", "noop", "--count", 2000)
        submitted += 2000
    not_restarted(manager, f"a busy mill ({submitted} tasks in {SEVERAL:g} s, beside one long one)", 1)

    away(database, SEVERAL)
    not_restarted(manager, "a mill whose database is away", 1)

    # It has to be over the first trouble: the second is then news, which is said.
    millrace("submit", "--store", store, "--handler", "noop", "--wait")
    time.sleep(WATCHDOG)
    manager.log.stop_taking()
    locked = sqlite3.connect(database, timeout=30, isolation_level=None)
    locked.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    wait_until("a mill that stands still is restarted", lambda: manager.lives == 2, 60)
    took = time.monotonic() - began
    locked.execute("ROLLBACK")
    locked.close()
    named = [status for status in manager.statuses if "stands still" in status]
    check("a mill that stands still is restarted", f"after {took:.1f} s; {named[-1:]}", bool(named))
    wait_until("the next life is ready", lambda: manager.ready == 2, 30)
    millrace("submit", "--store", store, "--handler", "noop", "--wait")
    check("the next life works", f"{manager.lives} lives", manager.lives == 2)

    manager.process.terminate()
    wait_until("SIGTERM is a stop", lambda: manager.stopping, 10)
    check("it ends in good order after SIGTERM", manager.process.wait(40), manager.process.returncode == 0)


def beside_a_server(manager, server, environment):
    wait_until("the worker is ready", lambda: manager.ready == 1, 30)
    server.process.pause()
    time.sleep(SEVERAL)
    not_restarted(manager, "a mill whose database is frozen", 1)
    server.process.resume()
    millrace("submit", "--handler", "noop", "--wait", environment=environment)
    not_restarted(manager, "a mill whose database is back", 1)


def run(folder):
    one, other = f"{folder}/embedded", f"{folder}/server"
    os.mkdir(one)
    with Manager(one, ["run", "--store", f"sqlite:{one}/tasks.db"]) as manager:
        embedded(one, manager)
    server = MariaDb(other)
    try:
        environment = {"MILLRACE_STORE": server.url_of(), "MILLRACE_PASSWORD_FILE": server.password_file}
        millrace("schema", "apply", environment=environment)
        with Manager(other, ["worker"], environment) as manager:
            beside_a_server(manager, server, environment)
    finally:
        server.stop()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # whoever is not fed is aborted
    with tempfile.TemporaryDirectory() as temporary:
        run(temporary)
    sys.exit(1 if failures else 0)
