"""Three ZooKeepers, three workers, 64 slices under load: kill -9 of a worker, and of the leader as soon as its plan for
one that joins is seen (plan_cut_short kills in the middle of one); SIGSTOP of a worker with tasks running. What was lost
moves, nothing else does, late settles are refused, and every payment is awarded once."""
import time

from chaos.cluster import Cluster
from chaos.offered import OfferedLoad, capacity
from chaos.processes import wait_until
from chaos.scenario import main

RUNNING = 8


def run(s):
    session, lease = s.size(3, 6), s.size(3, 10)
    cluster = Cluster(s, zookeepers=3, session=session, engine={"lease": f"{lease}s"},
                      handlers={"sleep": {"concurrency": RUNNING, "queue": RUNNING}})
    for name in ("w1", "w2", "w3"):
        cluster.start(name)
    cluster.wait_balanced(("w1", "w2", "w3"))
    load = OfferedLoad(s.db, s.size(200, capacity(s, 100_000) / 2 if s.full else 0))
    time.sleep(2)
    kill_worker(s, cluster)
    join_and_kill_leader(s, cluster)
    stop_and_continue(s, cluster, max(3 * session, 2 * lease) + 1)
    load.check_all_awarded(s)


def heal(s, cluster, victim, what):
    """kill -9: every slice is owned again soon, by the moves that it takes and no other."""
    bound = cluster.session + 2
    lost = cluster.owned()[victim]
    cluster.worker(victim).kill()
    killed = time.monotonic()
    took = cluster.wait_owned(bound + 20, cluster.live())
    s.check(f"kill -9 of {what}: every slice owned again within {bound} s", f"{took:.1f} s", took <= bound)
    time.sleep(1)  # for moves that should not be
    moved = [move.slice for move in cluster.moves.made(killed)]
    s.check(f"kill -9 of {what}: the moves are its {len(lost)} slices", f"{len(moved)} moves",
            sorted(moved) == sorted(lost))
    return killed


def kill_worker(s, cluster):
    leader = cluster.wait_leader()
    heal(s, cluster, next(name for name in cluster.live() if name != leader), "a worker")


def join_and_kill_leader(s, cluster):
    """Two workers have all slices; a third joins, and the leader dies as soon as its plan is seen to be carried out."""
    began = time.monotonic()
    cluster.start("w4")
    wait_until("the plan for the new worker is under way", lambda: cluster.moves.made(began), 30, 0.001)
    killed = heal(s, cluster, cluster.wait_leader(), "the leader after its plan")
    joined = [move for move in cluster.moves.made(began) if move.at < killed]
    s.check("that plan moved a third of 64 slices, to the worker that joined",
            f"{len(joined)} moves to {sorted({move.target for move in joined})}",
            len(joined) == 21 and {move.target for move in joined} == {"w4"})


def stop_and_continue(s, cluster, seconds):
    """SIGSTOP with tasks running; their settles come when others run the same tasks, and are refused."""
    leader = cluster.wait_leader()
    workers = cluster.live()
    victim = next(name for name in workers if name != leader)
    numbers = [int(slice_.rsplit("/", 1)[1]) for slice_ in cluster.owned()[victim]]
    before = cluster.late_settles(victim)
    for i in range(RUNNING):  # over when the worker goes on, and still under way where others run them again
        s.insert("sleep", {"ms": int(900 * seconds)}, columns=", slice", values=f", {numbers[i % len(numbers)]}")
    wait_until(f"{RUNNING} of its tasks are claimed", lambda: sleeping(s) >= RUNNING, 10, 0.01)
    time.sleep(0.3)  # and now they run: what was claimed and not started would be settled by nobody
    cluster.worker(victim).pause()
    paused = time.monotonic()
    cluster.wait_owned(cluster.session + 30, [name for name in workers if name != victim])
    time.sleep(max(0.0, paused + seconds - time.monotonic()))
    others = f"AND claimed_by NOT IN (SELECT number FROM millrace_incarnations WHERE worker = '{victim}')"
    again = sleeping(s, others)
    cluster.worker(victim).resume()
    # The worker's status tells of them as they come: of some at first.
    wait_until("its late settles are refused", lambda: cluster.late_settles(victim) >= before + RUNNING, 20)
    refused = cluster.late_settles(victim) - before
    still = sleeping(s, others)
    s.check(f"SIGSTOP for {seconds} s with {RUNNING} tasks running: its late settles meet rows that others run, and are "
            "refused", f"{again} ran before, {refused} refused, {still} run on",
            again == still == RUNNING and refused >= RUNNING)
    states = {name: worker["state"] for name, worker in cluster.status()["workers"].items()}
    s.check("it rejoins", states.get(victim), states.get(victim) in ("working", "standby", "probation"))
    if s.full:
        cluster.wait_balanced(workers, 60)
        s.check("and has its part of the slices again", len(cluster.owned()[victim]), cluster.balanced(workers))


def sleeping(s, more=""):
    return s.db.value(f"SELECT COUNT(*) FROM tasks WHERE handler = 'sleep' AND state = 2 {more}", ())


if __name__ == "__main__":
    main(run)
