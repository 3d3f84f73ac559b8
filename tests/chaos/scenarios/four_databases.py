"""Four databases, and one of their servers stopped and killed: the other three keep up, and its tasks go on by themselves
when it is back. Databases and tables added and retired under load."""
import time

from chaos.load import SteadyLoad, slowest_window
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import EFFECTS, Shard, configure, effect, wrong_effects

TAKES_MS = 20
ENGINE = {"lease": "3s"}
HANDLERS = {"work": {"uses": "sql", "concurrency": 8, "timeout": "20s", "retry": {"delays": ["1s"]}}}
IN_FORCE = 2.0


class Loads:
    """The same steady load on each shard."""

    def __init__(self, shards, rate):
        self.rate = rate
        self.of = {shard.name: SteadyLoad(shard.connect, rate, lambda i: ("work", effect(i, TAKES_MS)))
                   for shard in shards}

    def finish(self):
        for load in self.of.values():
            load.finish()


def capacity(s, shards):
    """Tasks a second in all shards together, with all the work there is."""
    count, began = s.size(300, 1000), time.time()
    loads = [SteadyLoad(shard.connect, count / 0.2, lambda i: ("work", effect(-1 - i, TAKES_MS))) for shard in shards]
    time.sleep(0.3)
    total = sum(load.finish() for load in loads)
    wait_until("all is done", lambda: not any(shard.unfinished() for shard in shards), 120, 0.1)
    took = max(max(shard.finished()) for shard in shards) - began
    for shard in shards:
        shard.rows("DELETE FROM effects")
    return total / took


def keep_up(s, what, shards, loads, began, ended):
    slowest = {shard.name: round(slowest_window(shard.finished(), began, ended) / loads.rate, 2) for shard in shards}
    s.check(f"{what}: the others keep up, at least 0.9 of the load in every 5 s", slowest, min(slowest.values()) >= 0.9)


def harm(s, what, shards, loads, hurt, heal):
    """One server away; then back."""
    victim, others = shards[-1], shards[:-1]
    away = s.size(7, 20)
    began = time.time()
    hurt()
    asked = time.monotonic()
    told = s.cluster_status()["shards"]
    asked = time.monotonic() - asked
    time.sleep(max(0.0, began + away - time.time()))
    heal()
    back = time.time()
    s.check(f"{what}: cluster status tells it", f"{told[victim.name].get('error')}, after {asked:.1f} s",
            not told[victim.name]["reachable"] and all(told[shard.name]["reachable"] for shard in others))
    wait_until("its tasks go on", lambda: any(at > back for at in victim.finished()), 60, 0.1)
    first = min(at for at in victim.finished() if at > back) - back
    s.check("started again, its tasks go on by themselves within 5 s", f"{first:.1f} s", first <= 5)
    wait_until("its backlog is worked off", lambda: victim.unfinished() < loads.rate, 60, 0.1)
    keep_up(s, what, others, loads, began - 2, time.time())


def retire_and_add(s, shards, loads):
    victim, others = shards[-1], shards[:-1]
    configure(s, others)
    time.sleep(IN_FORCE)
    before = len(victim.finished())
    time.sleep(1)
    s.check("a shard that is retired: after 2 s nothing of it is done", f"{len(victim.finished()) - before} in 1 s",
            len(victim.finished()) == before)
    configure(s, shards)
    began = time.monotonic()
    wait_until("it is served again", lambda: len(victim.finished()) > before, 30)
    took = time.monotonic() - began
    s.check("added again, its tasks go on within 3 s", f"{took:.1f} s", took <= 3)
    # A second table in the first shard.
    first = shards[0]
    s.millrace("schema", "apply", "--shard", first.name, "--tables", 2, "--slices", 16)
    first.record_transitions(s)
    tables = {"tables": ["tasks", "tasks_001"]}
    load = SteadyLoad(first.connect, loads.rate / 2, lambda i: ("work", effect(-1 - i, TAKES_MS)), "tasks_001")
    wait_until("a new table is served", lambda: first.finished("tasks_001_done"), 10, 0.1)
    late = first.value("SELECT TIMESTAMPDIFF(MICROSECOND, run_at, claimed_at) / 1e6 FROM tasks_001_done ORDER BY id LIMIT 1")
    s.check("a table that is added: its first task waits for 3 s at most", f"{late:.1f} s", late <= 3)
    configure(s, shards, **{first.name: {"tables": ["tasks"]}})
    time.sleep(IN_FORCE)
    before = len(first.finished("tasks_001_done"))
    time.sleep(1)
    more = len(first.finished("tasks_001_done")) - before
    s.check("a table that is retired: after 2 s nothing of it is done", f"{more} in 1 s", more == 0)
    configure(s, shards, **{first.name: tables})
    load.finish()
    wait_until("its rest is worked off", lambda: not first.unfinished("tasks_001"), 30, 0.1)


def run(s):
    east = s.start_server("east", databases=("a", "b", "c"))
    west = s.start_server("west", databases=("d",))
    shards = [Shard("a", east), Shard("b", east), Shard("c", east), Shard("d", west)]
    s.start_zookeeper()
    s.millrace("cluster", "status")  # makes the cluster's nodes
    configure(s, shards)
    s.millrace("schema", "apply", "--slices", 16)
    for shard in shards:
        shard.rows(EFFECTS)
        shard.record_transitions(s)
    for worker_id in ("w1", "w2"):
        s.start_worker(worker_id, engine=ENGINE, handlers=HANDLERS, arguments=["--session-timeout", "3s"])
    most = capacity(s, shards)
    loads = Loads(shards, s.size(0.4, 0.5) * most / len(shards))
    print(f"capacity {most:.0f} tasks/s, offered to each shard {loads.rate:.0f}")
    time.sleep(2)
    harm(s, "one of four stopped", shards, loads, west.process.pause, west.process.resume)
    if s.full:
        harm(s, "one of four killed", shards, loads, west.stop, west.start)
    began = time.time()
    retire_and_add(s, shards, loads)
    loads.finish()
    keep_up(s, "shards and tables come and go", shards[1:3], loads, began, time.time())
    wait_until("all is done", lambda: not any(shard.unfinished() for shard in shards), 60, 0.1)
    wrong = {shard.name: wrong_effects(shard, loads.of[shard.name].sent) for shard in shards}
    sent = {name: len(load.sent) for name, load in loads.of.items()}
    s.check(f"of {sent} tasks none is lost and none took effect twice", wrong, set(wrong.values()) == {(0, 0)})


if __name__ == "__main__":
    main(run)
