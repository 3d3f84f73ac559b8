"""Child processes that never outlive the test, and waiting with a deadline."""
import ctypes
import os
import random
import signal
import socket
import subprocess
import time

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(what, condition, seconds, pause=0.02):
    """Polls `condition` until it is true and returns its value; fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(pause)


def free_ports(count):
    """Ports of this process alone until it ends, as free_ports.cc has them too: a name for each keeps other tests from
    it, and none is of those that the kernel gives to clients, which would take that of a server that is away."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        clients = max(21_024, int(file.read().split()[0]))
    ports = range(clients - 20_000, clients)
    found = [port for port, _ in zip(filter(_claim, random.sample(ports, len(ports))), range(count))]
    if len(found) < count:
        raise AssertionError(f"no {count} ports are free from {ports.start} to {ports.stop}")
    return found


_claims = []  # sockets whose names are the ports'


def _claim(port):
    claim, server = socket.socket(socket.AF_UNIX), socket.socket()
    try:
        claim.bind(f"\0millrace-test-port-{port}")
        server.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    finally:
        server.close()
    _claims.append(claim)
    return True


def free_port():
    return free_ports(1)[0]


class Process:
    """One child; its output goes to a file. Killed by the kernel when the test's process dies."""

    def __init__(self, name, command, log, environment=None):
        self.name = name
        self.log = log
        with open(log, "ab") as output:
            self._child = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**os.environ, **(environment or {})}, preexec_fn=die_with_parent)
        self.pid = self._child.pid
        self.started = time.monotonic()

    def runs(self):
        return self._child.poll() is None

    def exit_code(self, seconds):
        """Waits for the end; fails if it does not come."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {seconds:g} s") from None

    def send(self, number):
        if self.runs():
            self._child.send_signal(number)

    def kill(self):
        self.send(signal.SIGKILL)
        self._child.wait()

    def pause(self):
        """SIGSTOP; returns when it stands still."""
        self.send(signal.SIGSTOP)
        if self.runs():
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self):
        self.send(signal.SIGCONT)

    def terminate(self, seconds=40):
        """SIGTERM, and the exit code."""
        self.send(signal.SIGTERM)
        return self.exit_code(seconds)

    def memory_mib(self):
        """The resident set."""
        return self._status_mib("VmRSS")

    def memory_peak_mib(self):
        """The largest resident set so far."""
        return self._status_mib("VmHWM")

    def _status_mib(self, key):
        with open(f"/proc/{self.pid}/status") as status:
            for line in status:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) / 1024
        raise AssertionError(f"{self.name} has no {key}")

    def output(self):
        with open(self.log, errors="replace") as log:
            return log.read()
