"""A whole cluster: MariaDB, an ensemble and workers as real processes, looked at from outside.

    cluster = Cluster(s, zookeepers=3)
    for name in ("w1", "w2", "w3"):
        cluster.start(name)
    cluster.wait_owned()
    cluster.worker("w2").kill()
    cluster.wait_owned(session + 2)
    s.check("moves are those of w2", cluster.moves.count(), ...)
"""
import json
import time

from kazoo.exceptions import NoNodeError

from chaos.moves import Moves, read_assignments
from chaos.processes import wait_until

ROOT = "/millrace/default"


class Cluster:
    """64 slices, sessions of `session` seconds. `engine` and `handlers` are what every worker is started with."""

    def __init__(self, scenario, zookeepers=1, session=3, slices=64, engine=None, handlers=None):
        self._s = scenario
        self.session = session
        self.slices = slices
        self._engine = engine or {"lease": "3s"}
        self._handlers = handlers or {}
        self._workers = {}  # the last process of each id
        if scenario.db is None:
            scenario.start_mariadb()
        scenario.start_zookeeper(zookeepers)
        scenario.apply_schema("--slices", slices)
        self.tree = scenario.zookeeper.client()
        self.moves = Moves(scenario.zookeeper.client())

    # Workers.

    def start(self, worker_id, *arguments, engine=None, handlers=None):
        """`arguments` are further ones of `millrace worker`."""
        process = self._s.start_worker(
            worker_id, engine={**self._engine, **(engine or {})}, handlers={**self._handlers, **(handlers or {})},
            arguments=("--session-timeout", f"{self.session}s", *arguments))
        self._workers[worker_id] = process
        return process

    def start_coordinator(self, name):
        """A candidate that works on nothing: it can lead and be killed without a slice to lose."""
        process = self._s.start_process(
            f"coordinator {name}", "coordinator", "--id", name, "--session-timeout", f"{self.session}s")
        self._workers[name] = process
        return process

    def worker(self, worker_id):
        return self._workers[worker_id]

    def live(self):
        """The ids whose process runs; one that is paused still counts."""
        return [name for name, process in self._workers.items() if process.runs()]

    # What the cluster says.

    def command(self, *arguments, **more):
        return self._s.millrace("cluster", *arguments, **more)

    def status(self):
        return self._s.cluster_status()

    def statuses(self):
        """What each worker says of itself, by id; those that are there alone. Cheaper than status()."""
        return self._documents("status")

    def leader(self):
        """The id of whoever leads; None while its process is gone."""
        epoch = json.loads(self.tree.get(f"{ROOT}/epoch")[0])
        standing = [document["id"] for document in self._documents("election").values()]
        return epoch.get("leader") if epoch.get("leader") in standing else None

    def holding(self):
        """Whether the leader moves nothing since very many workers vanished at once."""
        return json.loads(self.tree.get(f"{ROOT}/plan")[0]).get("holding")

    def wait_leader(self, seconds=30):
        return wait_until("somebody leads", self.leader, seconds, 0.05)

    def owned(self):
        """The slices of each worker, by id, as they are assigned."""
        return {name: slices for name, (slices, _) in read_assignments(self.tree).items() if slices}

    def all_run(self, among=None):
        """Whether every slice is assigned to a worker that is there (and one of `among`), and says that it runs it."""
        if not self.tree.exists(f"{ROOT}/workers"):
            return False  # nobody has been there yet
        present = set(self.tree.get_children(f"{ROOT}/workers"))
        assigned = {name: found for name, found in read_assignments(self.tree).items() if found[0]}
        if not set(assigned) <= present or (among is not None and not set(assigned) <= set(among)):
            return False
        statuses = self.statuses()
        return (sum(len(slices) for slices, _ in assigned.values()) == self.slices and all(
            statuses.get(name, {}).get("generation") == generation for name, (_, generation) in assigned.items()))

    def wait_owned(self, seconds=30, among=None):
        """Until every slice is owned, and run, by a worker that lives; returns how long it took. Workers that are
        killed or paused count as there until their session ends: name those that live in `among`."""
        began = time.monotonic()
        wait_until("every slice is owned by a worker that is there and says so",
                   lambda: self.all_run(among), seconds, 0.05)
        return self._took(began)

    def balanced(self, workers):
        counts = [len(self.owned().get(name, ())) for name in workers]
        return max(counts) - min(counts) <= 1 and sum(counts) == self.slices

    def wait_balanced(self, workers, seconds=40):
        """Until these workers have all slices between them, within one of each other, and run them."""
        began = time.monotonic()
        wait_until(f"all slices are spread over {', '.join(workers)}",
                   lambda: self.balanced(workers) and self.all_run(workers), seconds, 0.1)
        return self._took(began)

    def _took(self, began):
        """How long a wait took that began then; the moves that it saw are noted."""
        took = time.monotonic() - began
        self.moves.catch_up()
        return took

    def late_settles(self, worker_id):
        return self.statuses().get(worker_id, {}).get("late_settles", 0)

    def _documents(self, folder):
        documents = {}
        for name in self.tree.get_children(f"{ROOT}/{folder}"):
            node = self.tree.retry(_get_or_none, self.tree, f"{ROOT}/{folder}/{name}")
            if node is not None:
                documents[name] = json.loads(node)
        return documents


def _get_or_none(tree, path):
    try:
        return tree.get(path)[0]
    except NoNodeError:
        return None
