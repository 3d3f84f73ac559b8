"""Somebody deletes nodes that always exist, under load: each alone, two at once, the whole tree. Whoever misses them
makes them again, the plan is made anew, terms go on, the configuration is as it was, and the status says what happened.
Last of all nobody who could lead is left: the status says that work stands still, and what to do."""
import itertools
import json
import time

from kazoo.exceptions import NoNodeError, NotEmptyError

from chaos.cluster import ROOT, Cluster
from chaos.moves import read_assignments
from chaos.offered import OfferedLoad, late_starts
from chaos.processes import wait_until
from chaos.scenario import main

FOLDERS = ("assign", "election", "control", "epoch", "config", "history")
POLL = "150ms"


def run(s):
    cluster = Cluster(s, zookeepers=s.size(1, 3))
    workers = [f"w{number}" for number in range(1, 4)]
    for name in workers:
        cluster.start(name)
    cluster.wait_balanced(workers)
    s.millrace("config", "set", "engine.poll", POLL)
    bound = cluster.session + 5
    load = OfferedLoad(s.db, s.size(100, 500))
    since = s.now()
    pairs = [("assign", "election"), ("epoch", "assign"), ("control", "config")]
    if s.full:
        pairs = list(itertools.combinations(FOLDERS, 2))
    for names in [*((name,) for name in FOLDERS), *pairs, ("",), ("..",)]:
        delete(s, cluster, names, bound)
    told = {name: cluster.worker(name).output().count("the assignment of this worker is gone") for name in workers}
    s.check("each worker says in its log that its assignment is gone", told, min(told.values()) > 0)
    gone = [delete(s, cluster, (name,), bound, _delete_one_by_one) for name in ("assign", "config", "")]
    while not any(gone) and len(gone) < 15:  # on a busy machine what is made again meanwhile may win
        gone.append(delete(s, cluster, ("config",), bound, _delete_one_by_one))
    s.check("of those that were deleted one node after another some were gone for once", gone, any(gone))
    until = s.now()
    load.check_all_awarded(s)
    latest = late_starts(s, since, until, percent=100) / 1000
    s.check(f"meanwhile no payment waited longer than {bound} s", f"{latest:.1f} s", latest <= bound)
    stand_still(s, cluster)


def delete(s, cluster, names, bound, how=None):
    """`""` is the cluster with all in it, `".."` the folder of all clusters with it."""
    what = " and ".join({"": "the whole tree", "..": "the tree of all clusters"}.get(name, name) for name in names)
    what += " one node after another" if how else ""
    term = _term(cluster)
    ends = not how and any(name in ("", "..", "epoch") for name in names)
    least = term + 1 if ends else term
    before = _notes(cluster)
    began = time.monotonic()
    went = True
    for name in names:
        went = (how or _delete)(cluster.tree, {"": ROOT, "..": "/millrace"}.get(name, f"{ROOT}/{name}"))
    gone = time.monotonic() - began
    wait_until(f"after a delete of {what} all is there again", lambda: _is_whole(cluster, least), bound + 10, 0.05)
    took = time.monotonic() - began
    told, said = [], False
    while not said and time.monotonic() - began <= bound:  # the note follows what was made again
        time.sleep(0.05)
        told = [node for note in _notes(cluster) if note not in before for node in note["nodes"]]
        said = told or not went if how else all(("/" if name in ("", "..") else f"/{name}") in told for name in names)
    poll = json.loads(cluster.tree.get(f"{ROOT}/config/engine")[0]).get("poll")
    s.check(f"{what} deleted: all owned again within {bound} s, a leader of a term {'above' if ends else 'not below'}, "
            "the configuration as it was, and the status says so", f"{took:.1f} s (the delete itself {gone:.1f} s), term {term} → "
            f"{_term(cluster)}, poll {poll}, made again {' '.join(told[:4]) or 'nothing'} …",
            took <= bound and said and poll == POLL)
    return went


def _delete(tree, path):
    """All at once, so that nobody has a part of it made again before the rest is gone."""
    for _ in range(20):
        try:
            deletes = tree.transaction()
            for each in reversed(_below(tree, path)):
                deletes.delete(each)
            if not any(isinstance(result, Exception) for result in deletes.commit()):
                return True
        except NoNodeError:
            continue  # one of them went meanwhile, by itself
    raise AssertionError(f"{path} can't be deleted")


def _delete_one_by_one(tree, path):
    """As people do it; what is made again meanwhile is deleted again, for a second. Whether it was gone for once."""
    until = time.monotonic() + 1
    while time.monotonic() < until:
        try:
            tree.delete(path, recursive=True)
            return True
        except (NoNodeError, NotEmptyError):
            continue
    return False


def _below(tree, path):
    return [path, *(each for name in tree.get_children(path) for each in _below(tree, f"{path}/{name}"))]


def _notes(cluster):
    return cluster.status()["made_again"]


def _term(cluster):
    try:
        return json.loads(cluster.tree.get(f"{ROOT}/epoch")[0])["epoch"]
    except NoNodeError:
        return 0


def _is_whole(cluster, term):
    try:
        folders = {*FOLDERS, "workers", "status", "leave"} <= set(cluster.tree.get_children(ROOT))
        slices = sum(len(slices) for slices, _ in read_assignments(cluster.tree).values())
        return folders and cluster.leader() and _term(cluster) >= term and slices == cluster.slices \
            and cluster.all_run()
    except NoNodeError:
        return False


def stand_still(s, cluster):
    """Workers that may not lead, after the last that could is gone."""
    cluster.start("w9", "--no-coordinate")
    wait_until("it is there", lambda: cluster.tree.exists(f"{ROOT}/workers/w9"), 10)
    leader = cluster.wait_leader()
    for name in [*(name for name in ("w1", "w2", "w3") if name != leader), leader]:
        cluster.worker(name).terminate()
    told = cluster.command("status", expect=1)
    line = next((line for line in told.splitlines() if "stands still" in line), "nothing")
    s.check("nobody who may lead is left: the status ends with 1, and says what to do", line,
            "nobody leads" in line and "start millrace coordinator" in line)
    cluster.start_coordinator("c1")
    took = cluster.wait_owned(cluster.session + 10)
    cluster.command("status")  # ends with 0 again
    s.check("a coordinator is started: all is owned", f"after {took:.1f} s", took <= cluster.session + 5)


if __name__ == "__main__":
    main(run)
