"""A process that was started with --store beside a config/shards of two databases, as the leader and as a worker: it
serves and plans the cluster's shards like all others, and says so. A config/shards that nobody can follow moves
nothing."""
import json
import os
import time

from chaos.cluster import ROOT
from chaos.moves import read_assignments
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import Shard, configure

SLICES = 16


def within(condition, seconds):
    """Whether it comes true; the check that follows tells what there is instead."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


class Both:
    """The two databases of the cluster, and a third that only command lines know."""

    def __init__(self, s):
        self._s = s
        self.server = s.start_server("mariadb", databases=("east", "west", "own"))
        os.environ["MILLRACE_PASSWORD_FILE"] = self.server.password_file
        self.shards = [Shard("east", self.server), Shard("west", self.server)]
        self.own = Shard("own", self.server)
        s.start_zookeeper()
        self.tree = s.zookeeper.client()
        s.millrace("cluster", "status")  # makes the cluster's nodes
        for name, shard in (("own", self.own), *((shard.name, shard) for shard in self.shards)):
            self.command("schema", "apply", "--slices", SLICES, "--store", self.server.url_of(name))
            shard.record_transitions(s)
        configure(s, self.shards)

    def command(self, *arguments, **more):
        return self._s.millrace(*arguments, **more)

    def start(self, worker_id, *arguments):
        return self._s.start_worker(worker_id, engine={"lease": "3s"},
                                    arguments=["--session-timeout", "3s", *arguments])

    def assigned(self):
        """By slice: who has it."""
        return {name: worker for worker, (slices, _) in read_assignments(self.tree).items() for name in slices}

    def all_served(self, workers):
        """Every slice of both databases is with one of these workers, and each has its part."""
        wanted = {f"{shard.name}/tasks/{number}" for shard in self.shards for number in range(SLICES)}
        assigned = self.assigned()
        return set(assigned) == wanted and set(assigned.values()) == set(workers)

    def leads(self):
        return json.loads(self.tree.get(f"{ROOT}/epoch")[0]).get("leader")

    def work(self):
        """A task in every slice of both; how many are left after all should be done."""
        for shard in self.shards:
            connection = shard.connect()
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO tasks (handler, params, slice) VALUES "
                               + ", ".join(f"('noop', '{{}}', {number})" for number in range(SLICES)))
            connection.close()
        within(lambda: not any(shard.unfinished() for shard in self.shards), 15)
        return {shard.name: shard.unfinished() for shard in self.shards}


def order(s, both, what, first, second, stranger):
    """The first of two workers leads; one of them, the stranger, was started with the store of nobody else."""
    store = ("--store", both.server.url_of("own"))
    processes = {}
    for worker_id in (first, second):
        processes[worker_id] = both.start(worker_id, *(store if worker_id == stranger else ()))
        wait_until(f"{first} leads", lambda: both.leads() == first, 20, 0.05)
        wait_until(f"{worker_id} is there", lambda: both.tree.exists(f"{ROOT}/workers/{worker_id}"), 20, 0.05)
    planned = within(lambda: both.all_served((first, second)), 20)
    s.check(f"{what}: every slice of both databases is planned", f"{len(both.assigned())} of {2 * SLICES}", planned)
    left = both.work()
    s.check(f"{what}: every task of both databases is done", f"left: {left}", not any(left.values()))
    served = json.loads(both.tree.get(f"{ROOT}/workers/{stranger}")[0]).get("shards")
    s.check(f"{what}: the worker announces the cluster's shards", served, served == ["east", "west"])
    status = both.command("cluster", "status")
    said = [f"{stranger}: --store" in status, "is ignored" in status, "is ignored" in processes[stranger].output()]
    s.check(f"{what}: cluster status and the worker's own output say that --store is ignored", said, all(said))
    return processes


def stop(both, processes):
    for process in processes.values():
        process.terminate()
    wait_until("nobody is there", lambda: not both.tree.get_children(f"{ROOT}/workers"), 20, 0.1)


def refused_shards(s, both, processes):
    """A SQLite file in the node, set past the program; then a leader that has never seen a good one."""
    before = both.assigned()
    shards = {"east": {"url": "sqlite:/tmp/own.db"}, "west": both.shards[1].config()}
    both.tree.set(f"{ROOT}/config/shards", json.dumps(shards).encode())
    new = s.start_process("coordinator c1", "coordinator", "--id", "c1", "--session-timeout", "3s")
    wait_until("the new candidate stands", lambda: len(both.tree.get_children(f"{ROOT}/election")) == 3, 20, 0.05)
    for worker_id in processes:
        s.millrace("cluster", "expect", worker_id)  # nobody but the new leader has a say in what becomes of them
    stop(both, processes)
    wait_until("the new candidate leads", lambda: both.leads() == "c1", 20, 0.05)

    def told():
        return both.tree.exists(f"{ROOT}/plan") and json.loads(both.tree.get(f"{ROOT}/plan")[0]).get("troubles")
    wait_until("the new leader says what it lacks", told, 20, 0.05)
    again = {worker_id: both.start(worker_id) for worker_id in processes}
    wait_until("the workers are back", lambda: len(both.tree.get_children(f"{ROOT}/workers")) == 2, 20, 0.1)
    moved = within(lambda: both.assigned() != before, 9)  # a move by choice comes 5 s after who came, and is planned by then
    s.check("a SQLite file in config/shards, and all processes new: nothing is moved or taken away",
            f"{sum(both.assigned().get(name) == worker for name, worker in before.items())} of {len(before)} stay",
            not moved)
    configure(s, both.shards)
    left = both.work()
    s.check("with the shards named again the work goes on", f"left: {left}", not any(left.values()))
    stop(both, {**again, "c1": new})


def run(s):
    both = Both(s)
    processes = order(s, both, "a leader with --store", "w1", "w2", stranger="w1")
    stop(both, processes)
    processes = order(s, both, "a worker with --store under another leader", "w3", "w4", stranger="w4")
    refused_shards(s, both, processes)


if __name__ == "__main__":
    main(run)
