"""Restarts that are announced cost no move; a drain under load moves what it must and delays nobody; a worker that
comes and goes keeps nobody busy."""
import statistics
import time

from chaos.cluster import Cluster
from chaos.offered import OfferedLoad, capacity, late_starts
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2", "w3")
LATER = 100  # ms: how much worse the 99th percentile may become


def run(s):
    cluster = Cluster(s)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    load = OfferedLoad(s.db, capacity(s, 100_000) / 2 if s.full else 200)
    time.sleep(1)
    calm = rolling_restart(s, cluster)
    drain(s, cluster, calm)
    flap(s, cluster)
    load.check_all_awarded(s)


class Span:
    """A time in which payments come due, as the database tells it."""

    def __init__(self, s, seconds=0.0):
        self._s = s
        self._since = s.now()
        time.sleep(seconds)
        self._until = s.now()

    def end(self):
        self._until = self._s.now()

    def late(self, slices):
        """The 99th percentile of due-to-start, in ms, for these slices, once all that came due then is done."""
        wait_until("what was due by then is done", lambda: not self._s.db.value(
            "SELECT COUNT(*) FROM tasks WHERE run_at < %s", (self._until,)), 60, 0.05)
        numbers = [int(slice_.rsplit("/", 1)[1]) for slice_ in slices]
        return late_starts(self._s, self._since, self._until, numbers)


def rolling_restart(s, cluster):
    """Returns a calm span after it."""
    began = time.monotonic()
    for name in WORKERS:
        cluster.command("expect", name)
        cluster.worker(name).terminate()
        cluster.start(name)
        cluster.wait_owned(30)
    # A leader judges who is missing after a session, and balances after 5 s of quiet: moves would come by then.
    time.sleep(s.size(0, 10))  # what came in meanwhile is worked off
    calm = Span(s, s.size(cluster.session + 4, 20))
    moved = cluster.moves.made(began)
    s.check("rolling restart of all workers with cluster expect: 0 moves", f"{len(moved)} moves", not moved)
    return calm


def drain(s, cluster, calm):
    slices = cluster.owned()["w3"]
    before = calm.late(slices)
    began = time.monotonic()
    cluster.command("drain", "w3")
    during = Span(s, s.size(4, 15)).late(slices)
    moved = [move.slice for move in cluster.moves.made(began)]
    s.check("drain under load: the moves are exactly the slices of the drained worker",
            f"{len(moved)} moves of {len(slices)}", sorted(moved) == sorted(slices))
    s.check(f"drain under load: due-to-start p99 of its slices at most {LATER} ms worse",
            f"{before:.0f} ms before, {during:.0f} ms from the drain on", during <= before + LATER)
    cluster.command("undrain", "w3")
    cluster.wait_balanced(WORKERS)


def flap(s, cluster):
    """Killed and started again, over and over: up and down by turns."""
    slices = cluster.owned()["w3"]
    others = [slice_ for name in ("w1", "w2") for slice_ in cluster.owned()[name]]
    # Down for longer than a session and the wait of the leader; up for so long that it would have its slices back by
    # then, were it not for its probation.
    down, up, rounds = 5, 9, s.size(2, 10)
    before = Span(s, s.size(2, 20)).late(others)
    began = time.monotonic()
    spans = []
    for _ in range(rounds):
        spans.append(Span(s))
        cluster.worker("w3").kill()
        time.sleep(down)
        cluster.start("w3")
        time.sleep(up)
        spans[-1].end()
    # At the first loss the others have its slices to work off besides, as at any loss: that is no flapping.
    then = [span.late(others) for span in spans]
    cluster.wait_owned(30)
    moved = cluster.moves.made(began)
    s.check(f"a worker that flaps every {down + up} s, {rounds} times: at most twice its {len(slices)} slices move",
            f"{len(moved)} moves", 0 < len(moved) <= 2 * len(slices))
    usual = statistics.median(then)
    s.check(f"meanwhile due-to-start p99 of the other slices rises by at most {LATER} ms in the usual round",
            f"{before:.0f} ms before, {usual:.0f} ms then, {then[0]:.0f} ms at the first loss, {max(then):.0f} ms in the worst",
            usual <= before + LATER)


if __name__ == "__main__":
    main(run)
