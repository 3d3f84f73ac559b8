"""How long the host let a process wait that only wanted to run: other builds and tests share its cores.

A scenario that asks for milliseconds excuses what the host itself took, measured beside it, and nothing else.

    with HostStalls(s.path("stalls")) as host:
        ...
    waited - host.between(began, ended)

As a program (host_stalls.py FILE) it is the process that measures.
"""
import sys
import time

from chaos.processes import Process

TICK, UNNOTED = 0.005, 0.001


class HostStalls:
    """Times are those of time.time()."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        self._process = Process("host stalls", [sys.executable, "-B", __file__, self._file], self._file + ".log")
        return self

    def __exit__(self, *_):
        self._process.kill()

    def between(self, began, ended):
        """The sum of the stalls that ended, or went on, between the two."""
        try:
            with open(self._file) as file:
                stalls = [tuple(map(float, line.split())) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return 0.0
        return sum(max(0.0, min(ended, end) - max(began, end - stall)) for end, stall in stalls)


def measure(file):
    with open(file, "w", buffering=1) as notes:
        while True:
            asleep = time.monotonic()
            time.sleep(TICK)
            stall = time.monotonic() - asleep - TICK
            if stall > UNNOTED:
                notes.write(f"{time.time():.6f} {stall:.6f}\n")


if __name__ == "__main__":
    measure(sys.argv[1])
