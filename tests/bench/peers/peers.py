#!/usr/bin/python3
"""Other job queues and Millrace with the same no-op work, one after another, each on a private server of its own with
durable commits, in the setting that its documentation names as the fastest and as it is without settings.

  peers.py [--jobs 300000] [--rounds 3] [--tasks 300] [--short] [--only drain|latency]
           [--peer NAME]... [--json FILE]
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from chaos.processes import Process, wait_until
from figures.figures import Figures, percentile
from latency import latency
from servers import ForgetfulRedis, Postgres, Redis

HERE = pathlib.Path(__file__).resolve().parent
BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
INSTALLED = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"]) / "build/bench/peers"
LONGEST = 25  # seconds that a drain is watched; what is slower is judged by what it did until then
MILLRACE = "Millrace"
# `fast`: finished tasks leave no row, and slices are those that its bulk producers give; the default is that of plain
# INSERTs, whose finished tasks are kept.
OURS = (f"{MILLRACE}, fast", f"{MILLRACE}, default")

Setting = collections.namedtuple("Setting", "peer server name processes share")
# `share`: of the jobs; what takes a job at a time gets fewer.
SETTINGS = [
    Setting("graphile-worker", Postgres, "fast", 1, 1), Setting("graphile-worker", Postgres, "fast", 2, 1),
    Setting("graphile-worker", Postgres, "default", 1, 0.2),
    Setting("bullmq", Redis, "fast", 1, 1), Setting("bullmq", Redis, "fast", 2, 1), Setting("bullmq", Redis, "default", 1, 0.2),
    Setting("bullmq", ForgetfulRedis, "fast", 2, 1),
    Setting("pg-boss", Postgres, "fast", 1, 1), Setting("pg-boss", Postgres, "default", 1, 0.01),
]


def of_peers(names):
    """The settings of these peers; of all where none is named."""
    return [setting for setting in SETTINGS if not names or setting.peer in names]


def title(setting):
    return (f"{setting.peer}, {setting.name}" + (f", {setting.processes} processes" if setting.processes > 1 else "")
            + (", not durable" if setting.server is ForgetfulRedis else ""))


def install():
    """The packages of the lock file, in the build's folder."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "peer.mjs"):
        shutil.copy(HERE / name, INSTALLED / name)
    wanted = (HERE / "package-lock.json").read_bytes()
    stamp = INSTALLED / "node_modules/installed"
    if stamp.exists() and stamp.read_bytes() == wanted:
        return
    # Not `npm ci`, which refuses a lock file without the packages for other systems.
    subprocess.run(["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                   cwd=INSTALLED, check=True)
    stamp.write_bytes(wanted)


def version(package):
    return json.loads((INSTALLED / "node_modules" / package / "package.json").read_text())["version"]


def node(server, *words):
    done = subprocess.run(["node", INSTALLED / "peer.mjs", *map(str, words)], env={**os.environ, "PEER_URL": server.url},
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stderr[-3000:]}")
    return done.stdout


class Worker:
    """A process of a peer that runs jobs until `end`."""

    def __init__(self, server, setting, number):
        self.process = Process(title(setting), ["node", INSTALLED / "peer.mjs", setting.peer, "work", setting.name],
                               os.path.join(server.folder, f"worker{number}.log"), {"PEER_URL": server.url})

    def count(self):
        if not self.process.runs():
            raise AssertionError(self.process.output()[-3000:])
        numbers = [line for line in self.process.output().splitlines() if line.isdigit()]
        return int(numbers[-1]) if numbers else None

    def end(self):
        self.process.terminate(60)
        return json.loads(self.process.output().splitlines()[-1])


def middle_rate(workers):
    """Jobs a second over the middle eight tenths of what all workers did."""
    steps = []
    for samples in (worker["samples"] for worker in workers):
        steps += [(at, count - before) for (at, count), (_, before) in zip(samples[1:], samples)]
    total, so_far, first = sum(step for _, step in steps), 0, None
    for at, step in sorted(steps):
        so_far += step
        if first is None and so_far >= total / 10:
            first = (at, so_far)
        elif first is not None and so_far >= total * 9 / 10:
            return (so_far - first[1]) * 1e9 / (at - first[0])
    raise AssertionError("nothing was done")


def drain_peer(setting, jobs):
    count = max(20, int(jobs * setting.share))
    with setting.server() as server:
        node(server, setting.peer, "fill", count)
        server.rest()
        workers = [Worker(server, setting, number) for number in range(setting.processes)]
        began = time.monotonic()
        wait_until("the jobs are done", lambda: sum(worker.count() or 0 for worker in workers) >= count
                   or time.monotonic() - began > LONGEST, 2 * LONGEST, 0.1)
        cut_short = sum(worker.count() or 0 for worker in workers) < count
        ended = [worker.end() for worker in workers]
        left = int(node(server, setting.peer, "left"))
        twice = left + sum(one["count"] for one in ended) - count
        if twice < 0 or (twice > 0 and not cut_short):  # what it had in hand then may be done, and there yet
            raise AssertionError(f"{title(setting)}: of {count} jobs {left} are left, {[one['count'] for one in ended]} done")
        return middle_rate(ended)


def drain_bench(jobs, *words):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([BINARY / "tests/bench/store/drain_bench", "--worker-only", "--points", "0", "--rounds", "1", "--rows",
                        str(jobs), "--json", file.name, *words], check=True, stdout=subprocess.DEVNULL)
        figures = json.load(open(file.name))
    return {series["name"]: series["values"][0] for series in figures["series"]}, figures["facts"]


def drain_millrace(jobs):
    """The rates of both settings, and what they ran on."""
    fast, facts = drain_bench(jobs, "--runs", "--unkept")
    default, _ = drain_bench(jobs)
    return {OURS[0]: fast["worker, noop, no row kept"], OURS[1]: default["worker, noop"]}, facts


def drain(options):
    figures = Figures("peers", "The same no-op jobs, one after another on one machine", "jobs/s")
    settings = of_peers(options.peer)
    for round_number in range(options.rounds):
        turns = [None, *settings]
        if round_number % 2:
            turns.reverse()  # so that a drift of the machine favours nobody
        for setting in turns:
            if setting is None:
                rates, facts = drain_millrace(options.jobs)
            else:
                rates = {title(setting): drain_peer(setting, options.jobs)}
            for name, rate in rates.items():
                figures.add(name, rate)
                print(f"{name}: {rate:,.0f} jobs/s", flush=True)
    figures.facts["Millrace on"] = facts["server"]
    figures.facts["one durable commit"] = facts["one durable commit"]
    for peer, server in dict.fromkeys((setting.peer, setting.server) for setting in settings):
        figures.facts[f"{peer} {version(peer)} on {server.__name__}"] = server.about
        names = [title(setting) for setting in settings if (setting.peer, setting.server) == (peer, server)]
        best = max(names, key=lambda name: statistics.median(figures.series[name]))
        for ours in OURS:
            figures.compare(f"{ours} / {best}", ours, best)
    return figures


def latency_peer(setting, tasks):
    """(milliseconds from sent to started, of the add's own round trip)"""
    with setting.server() as server:
        node(server, setting.peer, "left")  # makes its tables
        worker = Worker(server, setting, 0)
        wait_until("the worker is there", lambda: worker.count() is not None, 30, 0.05)
        node(server, setting.peer, "produce", 20, 0, 20)  # what is done for the first time takes longer
        trips = json.loads(node(server, setting.peer, "produce", tasks, *latency.REST_MS))["trips"]
        wait_until("all have started", lambda: worker.count() >= tasks + 20, 60)
        waits = worker.end()["waits"][20:]
    return [wait / 1e6 for wait in waits], [trip / 1e6 for trip in trips]


def latencies(options):
    figures = Figures("peers_latency", "From a job's insert to its start, one at a time on an idle worker", "ms")
    pooled = collections.defaultdict(list)
    ways = {"poll": ()} | ({"doorbell": ("--doorbell",)} if latency.has_doorbell() else {})
    sides = [setting for setting in of_peers(options.peer)
             if setting.processes == 1 and (setting.peer, setting.name) != ("pg-boss", "default")]

    def note(name, waits, trips):
        pooled[name] += waits
        figures.add(f"{name}, p50", statistics.median(waits))
        figures.add(f"{name}, p99", percentile(waits, 0.99))
        figures.facts[f"{name}: the insert's own round trip"] = f"p50 {statistics.median(trips):.2f} ms"
        print(f"{name}: p50 {statistics.median(waits):.2f} ms, p99 {percentile(waits, 0.99):.2f} ms", flush=True)

    with latency.Server() as server:
        for _ in range(options.rounds):
            for way, arguments in ways.items():
                starts = latency.measure(server, arguments, options.tasks, beside=False)
                note(f"{MILLRACE}, {way}", starts.waited, starts.trips)
            for setting in sides:
                note(title(setting), *latency_peer(setting, options.tasks))
    for name, waits in pooled.items():
        figures.facts[f"{name}, all rounds"] = (f"p50 {statistics.median(waits):.2f} ms, p99 {percentile(waits, 0.99):.2f} ms, "
                                                f"p99.9 {percentile(waits, 0.999):.2f} ms of {len(waits)}")
    best = f"{MILLRACE}, {'doorbell' if 'doorbell' in ways else 'poll'}"
    if "graphile-worker" in {setting.peer for setting in sides}:
        figures.compare(f"{best} / graphile-worker, default: p99", f"{best}, p99", "graphile-worker, default, p99")
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300_000, help="of a drain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=300, help="single inserts of a round")
    parser.add_argument("--short", action="store_true", help="shows that it works, not how fast anything is")
    parser.add_argument("--only", choices=("drain", "latency"))
    parser.add_argument("--peer", action="append", choices=sorted({setting.peer for setting in SETTINGS}),
                        help="it alone, or those that are named; more rounds in less time")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.short:
        options.jobs, options.rounds, options.tasks = 20_000, 1, 30
    install()
    for name, measure in (("drain", drain), ("latency", latencies)):
        if options.only in (None, name):
            figures = measure(options)
            print("\n" + figures.table() + "\n", flush=True)
            if options.json:
                figures.write(str(pathlib.Path(options.json).with_name(figures.name + ".json")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
