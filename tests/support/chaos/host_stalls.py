"""How long the host let a process wait that only wanted to run: other builds and tests share its cores.

A scenario that asks for milliseconds excuses what the host itself took, measured beside it, and nothing else: not the
time in which the worker that is measured had a core for itself, and no more than LONGEST at a time.

    with HostStalls(s.path("stalls"), worker.pid) as host:
        ...
    waited - host.between(began, ended)

As a program (host_stalls.py FILE PID) it is the process that measures.
"""
import sys
import time

from chaos.processes import Process

TICK, UNNOTED = 0.005, 0.001
LONGEST = 0.25  # a host that stands still for longer is too busy to measure on


class HostStalls:
    """Times are those of time.time()."""

    def __init__(self, file, pid):
        self._file = file
        self._pid = pid

    def __enter__(self):
        self._process = Process("host stalls", [sys.executable, "-B", __file__, self._file, self._pid], self._file + ".log")
        return self

    def __exit__(self, *_):
        self._process.kill()

    def between(self, began, ended):
        """The sum of the stalls that ended, or went on, between the two; LONGEST at most."""
        try:
            with open(self._file) as file:
                stalls = [tuple(map(float, line.split())) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return 0.0
        return excuse(stalls, began, ended)


def excuse(stalls, began, ended):
    """`stalls` are (when it ended, how long it was)."""
    return min(LONGEST, sum(max(0.0, min(ended, end) - max(began, end - stall)) for end, stall in stalls))


def cpu_clock(pid):
    """The CPU time that another process has had, as clock_getcpuclockid(3) tells it."""
    clock = (~pid << 3) | 2
    return lambda: time.clock_gettime(clock)


def measure(file, cpu):
    with open(file, "w", buffering=1) as notes:
        while True:
            asleep, used = time.monotonic(), cpu()
            time.sleep(TICK)
            stall = time.monotonic() - asleep - TICK
            stall -= cpu() - used
            if stall > UNNOTED:
                notes.write(f"{time.time():.6f} {stall:.6f}\n")


if __name__ == "__main__":
    measure(sys.argv[1], cpu_clock(int(sys.argv[2])))
