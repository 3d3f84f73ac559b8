"""A batch over two databases, its progress shown by counters; workers and leaders are killed while it drains, and leaders
while ends are decided: each callback is submitted exactly once. No statement counts a pool."""
import json
import random
import time

from chaos.cluster import ROOT
from chaos.pool_counts import counts_pool
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import EFFECTS, Shard, configure

WORKERS = ("w1", "w2", "w3")


def told(number):
    """A callback that says so once: in its own transaction."""
    return json.dumps({"handler": "sql", "params": {"sql": [f"INSERT INTO effects (n) VALUES ({number})"]}})


class Place:
    """Two databases of one server, and three workers of which each may lead."""

    def __init__(self, s):
        self._s = s
        self.server = s.start_server("mariadb", databases=("east", "west"))
        self.east, self.west = self.shards = [Shard("east", self.server), Shard("west", self.server)]
        s.start_zookeeper()
        self.tree = s.zookeeper.client()
        s.millrace("cluster", "status")  # makes the cluster's nodes
        configure(s, self.shards)
        s.millrace("schema", "apply", "--slices", 16)
        for shard in self.shards:
            shard.rows(EFFECTS)
            shard.record_transitions(s)
        self.workers = {}
        for name in WORKERS:
            self.start(name)

    def start(self, name):
        self.workers[name] = self._s.start_worker(name, engine={"lease": "2s"}, handlers={"sleep": {"concurrency": 8}},
                                                  arguments=["--session-timeout", "2s"])

    def leader(self):
        """One that is there, by the tree's word."""
        return wait_until("somebody leads", lambda: self._led() in self.workers and self._led(), 30)

    def _led(self):
        return json.loads(self.tree.get(f"{ROOT}/epoch")[0]).get("leader")

    def kill(self, name):
        """kill -9, and another process in its place at once."""
        self.workers[name].kill()
        self.start(name)

    def submit(self, batch, number, counts, close=True, ms=0):
        for shard, count in zip(self.shards, counts):
            self._s.millrace("submit", "--plugins", self._s.plugins(), "--handler", "sleep", "--params",
                             json.dumps({"ms": ms}), "--count", count, "--shard", shard.name, "--batch", batch, "--open",
                             "--on-success", told(number), "--on-end", told(-number))
        if close:
            self._s.millrace("batch", "close", batch)

    def show(self, batch):
        return json.loads(self._s.millrace("batch", "show", batch, "--json"))

    def callbacks(self, batch):
        """How many tasks there were of each kind in either database, whatever became of them."""
        return [sum(shard.value("SELECT COUNT(*) FROM tasks_all WHERE biz_key = %s", (f"batch/{batch}/{kind}",))
                    for shard in self.shards) for kind in ("success", "end")]


def drain(s, place):
    """The large one; workers are killed at random, the leader among them."""
    total = s.size(4_000, 50_000)
    place.submit("june", 1, (total // 2, total // 2), ms=s.size(40, 20))  # 600 or 1,200 a second: there is time for kills
    # Whoever closes it once more, or adds to it, is refused.
    s.millrace("batch", "close", "june", expect=4)
    s.millrace("submit", "--plugins", s.plugins(), "--handler", "noop", "--shard", "east", "--batch",
               "june", expect=4)
    seen, kills, next_kill = [], 0, time.monotonic()
    deadline = time.monotonic() + s.size(60, 600)
    while time.monotonic() < deadline:
        batch = place.show("june")
        seen.append(batch["succeeded"])
        if batch["state"] == "ended":
            break
        if kills < s.size(2, 30) and time.monotonic() >= next_kill:
            place.kill(place.leader() if kills % 2 else random.choice(WORKERS))
            kills += 1
            next_kill = time.monotonic() + s.size(1, 3)
    s.check("processes are killed while it drains, the leader among them", kills, kills >= s.size(2, 10))
    s.check(f"a batch of {total}, {kills} processes killed: its progress by counters never goes back, and reaches all",
            f"{len(seen)} looks, the last {seen[-1]}", seen == sorted(seen) and seen[-1] == total)
    s.check("it ended with success", {key: batch[key] for key in ("state", "outcome", "failed", "cancelled")},
            (batch["state"], batch["outcome"]) == ("ended", "succeeded"))


def decide(s, place):
    """Small ones; the leader is killed about when their end is decided."""
    rounds = s.size(3, 25)
    for number in range(2, rounds + 2):
        place.submit(f"small-{number}", number, (7, 3), close=False)
        wait_until("its tasks have ended", lambda: not any(shard.unfinished() for shard in place.shards), 60, 0.05)
        leader = place.leader()
        s.millrace("batch", "close", f"small-{number}")
        time.sleep(random.uniform(0, 1.2))
        place.kill(leader)
        wait_until("it ends", lambda: place.show(f"small-{number}")["state"] == "ended", 60, 0.2)
    return range(1, rounds + 2)


def counts_nothing(s, place):
    """All that the program sends for a batch from its beginning to its end, and for who looks at it."""
    place.server.rows("SET GLOBAL log_output = 'TABLE'")
    place.server.rows("TRUNCATE mysql.general_log")
    place.server.rows("SET GLOBAL general_log = ON")
    place.submit("logged", 100, (20, 20))
    s.millrace("batch", "watch", "logged", timeout=60)
    s.millrace("batch", "list")
    place.show("logged")
    place.server.rows("SET GLOBAL general_log = OFF")
    texts = [text.decode() if isinstance(text, bytes) else text
             for text, in place.server.rows("SELECT argument FROM mysql.general_log WHERE command_type IN "
                                            "('Query', 'Execute')")]
    counting = [text[:120] for text in texts if counts_pool(text)]
    of_batches = [text for text in texts if "millrace_batches" in text]
    s.check("of the statements for a batch, and for who looks at it, none counts a pool",
            f"{len(texts)} statements, {len(of_batches)} of batches, {len(counting)} count: {counting[:3]}",
            len(of_batches) > 10 and not counting)


def run(s):
    place = Place(s)
    drain(s, place)
    numbers = decide(s, place)
    counts_nothing(s, place)
    wait_until("all is done", lambda: not any(shard.unfinished() for shard in place.shards), 60, 0.1)
    names = ["june"] + [f"small-{number}" for number in numbers[1:]] + ["logged"]
    callbacks = {name: place.callbacks(name) for name in names}
    wrong = {name: count for name, count in callbacks.items() if count != [1, 1]}
    s.check(f"{len(names)} batches: one task on success and one at the end of each", wrong or "one each", not wrong)
    effects = sorted(n for shard in place.shards for n, in shard.rows("SELECT n FROM effects"))
    wanted = sorted([*numbers, *(-n for n in numbers), 100, -100])
    s.check("and each took effect once", f"{len(effects)} effects", effects == wanted)


if __name__ == "__main__":
    main(run)
