"""A limit of 100 starts a second in the whole cluster, over three workers: never more over any 10 s, also when all that
waits is one worker's, when workers are killed and when one is cut off from ZooKeeper; and hardly less, but from a kill
until the session time-out and 2 s."""
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.tcp_proxy import TcpProxy

RATE = 100
WORKERS = ("w1", "w2", "w3")
CUT_OFF = "w3"
MOVE = 2.0  # seconds in which unused shares move


class Starts:
    """When tasks began, as their handlers noted."""

    def __init__(self, s):
        self.file = s.path("times")
        open(self.file, "w").close()

    def read(self):
        with open(self.file) as times:
            return sorted(int(line) / 1e6 for line in times if line.endswith("\n"))


def most(times, seconds=10.0):
    """Of all windows of so many seconds, the one with the most starts; a second."""
    first, best = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= seconds:
            first += 1
        best = max(best, last - first + 1)
    return best / seconds


def least(times, began, ended, seconds):
    """Of all windows between the two, the one with the fewest; a second."""
    assert ended - began >= seconds, f"only {ended - began:.1f} s to look at"
    worst, start = None, began
    while start + seconds <= ended:
        count = sum(start <= at < start + seconds for at in times)
        worst = count if worst is None else min(worst, count)
        start += 0.1
    return worst / seconds


def run(s):
    session = s.size(5, 6)
    # Dead workers are marked so before their sessions end.
    cluster = Cluster(s, session=session, engine={"lease": s.size("3s", "4s")},
                      handlers={"sleep": {"limit": {"rate": f"{RATE}/s"}}})
    starts = Starts(s)
    proxy = TcpProxy(s.zookeeper.servers[0].port)
    options = {CUT_OFF: ("--zk", f"127.0.0.1:{proxy.port}")}
    for name in WORKERS:
        cluster.start(name, *options.get(name, ()))
    cluster.wait_balanced(WORKERS)
    seconds, window = s.size(11, 40), s.size(5, 10)

    def offer(many, slice_=None):
        more = {} if slice_ is None else {"columns": ", slice", "values": f", {slice_}"}
        s.insert("sleep", {"ms": 2, "times": starts.file}, many, **more)
        return time.time()

    def drained(within):
        wait_until("all tasks are done", lambda: s.unfinished() == 0, within, 0.1)
        return starts.read()[-1]

    def check_least(what, began, ended):
        # At the end one may have work left and the others none: its share grows once more.
        rate = least(starts.read(), began, ended - MOVE, window)
        s.check(f"{what}: at least 95 a second over any {window} s", f"{rate:.1f} in the slowest", rate >= 95)

    began = offer(seconds * RATE)
    ended = drained(2 * seconds + 10)
    check_least("all workers have work", began + MOVE, ended)

    numbers = [int(slice_.rsplit("/", 1)[1]) for slice_ in cluster.owned()["w1"]]
    began = offer(seconds * RATE, numbers[0])
    ended = drained(2 * seconds + 10)
    check_least("all tasks are in one worker's slices", began + MOVE, ended)

    # It runs what it has claimed with the share that it had; the others may not have that meanwhile.
    away = s.size(0, 30)
    if away > 0:
        offer((away + 4) * RATE)
        time.sleep(2)
        proxy.switch(1)  # nobody listens there
        cut = time.time()
        time.sleep(away)
        proxy.switch(s.zookeeper.servers[0].port)
        drained(2 * seconds + 60)
        cluster.wait_balanced(WORKERS)
        slowest = least([at for at in starts.read() if at >= cut], cut, cut + away, window)
        s.check("one worker is cut off from ZooKeeper: the others go on with their shares",
                f"{slowest:.1f} a second in the slowest {window} s", slowest >= 2 / 3 * RATE * 0.95)

    for what in s.size(("a worker",), ("a worker", "the leader")):
        leader = cluster.wait_leader()
        victim = leader if what == "the leader" else next(name for name in cluster.live() if name != leader)
        offer(int((seconds + session + 4) * RATE))
        time.sleep(4)
        cluster.worker(victim).kill()
        again = time.time() + session + 2
        ended = drained(2 * seconds + 30)
        check_least(f"kill -9 of {what}: from the session time-out + 2 s on", again, ended)
        cluster.start(victim, *options.get(victim, ()))
        cluster.wait_owned()
    fastest = most(starts.read())
    faults = s.size("kills", "kills and the one that is cut off")
    s.check(f"at most 105 a second over any 10 s, {faults} included", f"{fastest:.1f} in the fastest", fastest <= 105)


if __name__ == "__main__":
    main(run)
