"""A limit of one at a time in the whole cluster holds while workers are killed again and again, and while one of them is
cut off from ZooKeeper: no two runs overlap, none begins before the settle of the one before it, and every task is done.
The handler notes its own begins and ends in a file, which nothing of Millrace guards."""
import os
import random
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.tcp_proxy import TcpProxy

WORKERS = ("w1", "w2", "w3")
CUT_OFF = "w3"
HANDLERS = {"timed": {"limit": {"concurrency": 1}, "timeout": "20s"}}


class Runs:
    """The runs that the handler noted: (begin, end, task), in seconds since 1970, by their begins. One that was cut short
    by a kill ended with its process, at `deaths[pid]` at the latest."""

    def __init__(self, file, deaths):
        self.open = {}
        self.all = []
        self.cut_short = 0
        with open(file) as lines:
            for line in lines:
                what, name, attempt, pid, micros = line.split()
                key, moment = (name, attempt, int(pid)), int(micros) / 1e6
                if what == "begin":
                    self.open[key] = moment
                else:
                    self.all.append((self.open.pop(key), moment, name))
        for (name, _, pid), began in self.open.items():
            self.cut_short += 1
            self.all.append((began, deaths.get(pid, float("inf")), name))
        self.all.sort()

    def overlaps(self):
        found, latest = [], (0, 0, "")
        for run in self.all:
            if run[0] < latest[1]:
                found.append((latest, run))
            latest = max(latest, run, key=lambda one: one[1])
        return found

    def before_the_settle(self, settled):
        """Runs that began before the last one of another task was settled, by the settle's own time."""
        last_run = {name: end for _, end, name in self.all}
        found, latest = [], (0, "")
        for began, end, name in self.all:
            if name != latest[1] and began < latest[0]:
                found.append((latest, name, began))
            if end == last_run[name] and settled.get(name, 0) > latest[0]:
                latest = (settled[name], name)
        return found


def run(s):
    seed = int(os.environ.get("MILLRACE_TEST_SEED", random.randrange(1 << 32)))
    print(f"seed {seed} (MILLRACE_TEST_SEED)")
    chance = random.Random(seed)
    tasks, kills, away, each = s.size(150, 1000), s.size(4, 20), s.size(8, 60), s.size(30, 60)
    cluster = Cluster(s, engine={"lease": s.size("2s", "3s")}, handlers=HANDLERS)
    proxy = TcpProxy(s.zookeeper.servers[0].port)
    for name in WORKERS:
        cluster.start(name, *(("--zk", f"127.0.0.1:{proxy.port}") if name == CUT_OFF else ()))
    cluster.wait_balanced(WORKERS)
    log = s.path("runs")
    began = time.monotonic()
    s.insert("timed", {"ms": each, "log": log}, tasks)
    wait_until("some are done", lambda: s.done() > 5, 30)
    proxy.switch(1)  # nobody listens there
    cut = time.monotonic()
    deaths = kill_again_and_again(s, cluster, log, chance, kills)
    time.sleep(max(0, away - (time.monotonic() - cut)))
    proxy.switch(s.zookeeper.servers[0].port)
    s.wait_all_ended(s.size(60, 300))
    took = time.monotonic() - began
    judge(s, Runs(log, deaths), tasks, kills, away, took)


def kill_again_and_again(s, cluster, log, chance, kills):
    """Every other kill hits whoever runs a task at that moment. When each process was dead, by its pid."""
    deaths = {}
    while len(deaths) < kills:
        time.sleep(chance.uniform(0.5, 2))
        victim = chance.choice([name for name in WORKERS if name != CUT_OFF])
        if len(deaths) % 2 == 0:
            victim = caught(s, cluster, log) or victim
        process = cluster.worker(victim)
        if process.runs():  # else it found its id in use for too long
            process.kill()
            deaths[process.pid] = time.time()
        cluster.start(victim)
    return deaths


def caught(s, cluster, log):
    """The worker that runs a task, standing still in the middle of it; None where none was met within 5 s."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        name = holder(s)
        if name and cluster.worker(name).runs():
            process = cluster.worker(name)
            process.pause()
            if any(pid == process.pid for _, _, pid in Runs(log, {}).open):
                return name
            process.resume()
        time.sleep(0.01)
    return None


def holder(s):
    """The worker that holds the permit now, unless it is the one that is cut off."""
    rows = s.db.rows("SELECT i.worker FROM millrace_permits p JOIN millrace_incarnations i ON i.number = p.incarnation "
                     "WHERE p.handler = 'timed'")
    return rows[0][0] if rows and rows[0][0] != CUT_OFF else None


def judge(s, runs, tasks, kills, away, took):
    overlaps = runs.overlaps()
    s.check(f"one at a time in the whole cluster, with {kills} kills and a worker without ZooKeeper for {away} s: "
            "no two runs overlap", f"{len(overlaps)} overlaps of {len(runs.all)} runs, {runs.cut_short} cut short"
            + "".join(f"; {pair}" for pair in overlaps[:3]), not overlaps and runs.cut_short > 0)
    settled = {f"main/tasks/{row[0]}": float(row[1]) for row in s.db.rows(
        "SELECT id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', finished_at) / 1e6 FROM tasks_done")}
    early = runs.before_the_settle(settled)
    s.check("none begins before the one before it is settled",
            f"{len(early)} did" + "".join(f"; {one}" for one in early[:3]), not early)
    s.check("every task is done once", f"{s.done()} of {tasks} succeeded, {s.failed()} failed; {took:.0f} s",
            (s.done(), s.failed()) == (tasks, 0))
    workers = s.db.rows("SELECT COUNT(DISTINCT SUBSTRING_INDEX(claimed_by, '.', 1)) FROM tasks_done")[0][0]
    s.check("the workers take turns", f"{workers} of {len(WORKERS)} ran some", workers == len(WORKERS))


if __name__ == "__main__":
    main(run)
