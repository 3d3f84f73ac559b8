"""What is wrong is said clearly, and costs nothing: addresses, chroots, digests, ids; nodes that hold rubbish, and
workers of another version. Payments come in all the while."""
import json
import os
import time

from chaos.cluster import ROOT, Cluster
from chaos.offered import OfferedLoad
from chaos.processes import wait_until
from chaos.scenario import main

WORKERS = ("w1", "w2")


def run(s):
    cluster = Cluster(s)
    for name in WORKERS:
        cluster.start(name)
    cluster.wait_balanced(WORKERS)
    load = OfferedLoad(s.db, s.size(100, 300))
    addresses(s)
    digests(s, cluster)
    open_cluster(s, cluster)
    id_in_use(s, cluster)
    rubbish_assigned(s, cluster)
    other_versions(s, cluster)
    s.check("both workers live", [cluster.worker(name).runs() for name in WORKERS],
            all(cluster.worker(name).runs() for name in WORKERS))
    load.check_all_awarded(s)


def refused(s, what, worker, code, words, seconds=15):
    """It ends by itself, with this exit code and a message that has these words; returns how long it lived."""
    ended = worker.exit_code(seconds)
    took = time.monotonic() - worker.started
    line = next((line for line in worker.output().splitlines() if line.startswith("millrace: ")), "no message")
    s.check(f"{what}: exit code {code} and a clear message", f"exit code {ended} after {took:.1f} s, {line}",
            ended == code and all(word in line for word in words))
    return took


def addresses(s):
    def start(*arguments):
        return s.start_worker("w9", arguments=arguments)

    refused(s, "wrong ZooKeeper address", start("--zk", "127.0.0.1:1", "--wait", "2s"), 3, ("127.0.0.1:1", "reach"))
    refused(s, "an address that is none", start("--zk", "here there"), 2, ("here there",))
    refused(s, "missing chroot", start("--zk", f"{s.zookeeper.address}/missing"), 2, ("/missing", "does not exist"))


def digests(s, cluster):
    cluster.tree.create("/guarded")
    guarded = ("--zk", f"{s.zookeeper.address}/guarded")
    ours, theirs = digest_file(s, "ours"), digest_file(s, "theirs")
    s.millrace("config", "set", "engine.poll", "200ms", *guarded, "--zk-auth-file", ours)  # makes its nodes
    refused(s, "wrong digest", s.start_worker("w9", arguments=(*guarded, "--zk-auth-file", theirs)), 2,
            ("digest", theirs))
    refused(s, "no digest", s.start_worker("w9", arguments=guarded), 2, ("digest", "--zk-auth-file"))


def open_cluster(s, cluster):
    """A cluster that was made without a digest, and is given one later."""
    cluster.tree.create("/opened")
    opened = ("--zk", f"{s.zookeeper.address}/opened")
    auth = ("--zk-auth-file", digest_file(s, "late"))
    s.millrace("config", "set", "engine.poll", "200ms", *opened)
    refused(s, "a digest for an open cluster", s.start_worker("w9", arguments=(*opened, *auth)), 2,
            ("cluster protect", "everybody"))
    s.millrace("cluster", "protect", *opened, *auth)
    refused(s, "no digest after that", s.start_worker("w9", arguments=opened), 2, ("digest", "--zk-auth-file"))
    s.check("and with the digest it is as it was", s.millrace("config", "get", "engine.poll", *opened, *auth).strip(),
            "200ms" in s.millrace("config", "get", "engine.poll", *opened, *auth))


def digest_file(s, name):
    path = s.path(name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(f"millrace:{name}\n")
    return path


def id_in_use(s, cluster):
    """As on another host, where no lock in a state folder tells of the first."""
    session = cluster.session
    twin = s.start_worker("w1", arguments=("--session-timeout", f"{session}s"), state="twin")
    took = refused(s, "a worker id in use", twin, 4, ("w1", "in use"))
    s.check("a worker id in use: given up after one session time-out, not sooner", f"{took:.1f} s",
            session <= took <= session + 3)


def rubbish_assigned(s, cluster):
    """A person's slip in an assignment: the last good one stays in force, and the leader puts it right."""
    for text in (b'{"slices": rubb', b'[1]', b'{"epoch":1,"generation":1,"slices":["main/tasks/99999"]}'):
        began = time.monotonic()
        cluster.tree.set(f"{ROOT}/assign/w1", text)
        time.sleep(0.5)
        wait_until(f"the leader puts {text} right", cluster.all_run, 10)
        s.check(f"assign/w1 set to {text.decode()}: put right, every slice owned",
                f"after {time.monotonic() - began:.1f} s, {len(cluster.moves.made(began))} moves",
                cluster.balanced(WORKERS))
    said = [line for name in WORKERS for line in cluster.worker(name).output().splitlines()
            if "an assignment can't be read" in line]
    s.check("rubbish in an assign node is reported by whoever leads", said, any("assign/w1" in line for line in said))


def other_versions(s, cluster):
    """A worker of a later version, whose node says things that this one does not know; one whose node is rubbish."""
    known = json.loads(cluster.tree.get(f"{ROOT}/workers/w1")[0])
    later = {**known, "incarnation": "w8.000000000001", "version": "99.0", "colours": ["red"], "zone": {"rack": 3}}
    began = time.monotonic()
    cluster.tree.create(f"{ROOT}/workers/w7", b"\xff no document", ephemeral=True)
    cluster.tree.create(f"{ROOT}/workers/w8", json.dumps(later).encode(), ephemeral=True)
    status = cluster.status()
    s.check("a workers node that is rubbish is reported", status["unreadable"],
            any("workers/w7" in line for line in status["unreadable"]) and "w7" not in status["workers"])
    wait_until("the worker of a later version gets its part", lambda: len(cluster.owned().get("w8", ())) == 21, 20)
    cluster.moves.catch_up()
    s.check("a worker of a later version, with keys unknown here, is one of the cluster",
            f"{len(cluster.owned()['w8'])} slices", "w7" not in cluster.owned())
    cluster.tree.delete(f"{ROOT}/workers/w8")
    cluster.tree.delete(f"{ROOT}/workers/w7")
    cluster.wait_balanced(WORKERS)
    s.check("it leaves: its slices, and no others, went there and come back", f"{len(cluster.moves.made(began))} moves",
            len(cluster.moves.made(began)) == 42)


if __name__ == "__main__":
    main(run)
