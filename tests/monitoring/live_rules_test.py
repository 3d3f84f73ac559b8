"""The alert rules on a Prometheus that scrapes real workers: their causes are made, and they fire and clear. The rules are
those that are shipped, but for how long each has to hold, how far it looks back and how often it is looked at. QuickTest has
all whose causes are made in seconds; SlowTest those whose causes last for a minute or more."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

from chaos.mariadb import MariaDb
from chaos.moves import read_assignments
from chaos.processes import Process, free_ports, wait_until
from chaos.zookeeper import Ensemble

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
RULES = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"]) / "conf/monitoring/rules.yml"
LONG_AGO = "2026-01-01T00:00:00Z"
SOON = 25  # s
ALL = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
SLOW = {"MillracePurgeLag"}  # a walk begins each minute at most
WINDOWS = {"5m": "6s", "30m": "8s", "1h": "10s", "6h": "12s", "10m": "10s", "20m": "20s"}
HANDLERS = {
    "nightly": {"uses": "noop"},
    "slow": {"uses": "sleep", "concurrency": 32, "timeout": "5m"},
    "hold": {"uses": "ignore_limit", "concurrency": 16},
    "partner": {"uses": "fail", "retry": {"delays": ["1s"]}, "breaker": {
        "minimum": 2, "window": "5s", "probe_every": "500ms", "classes": ["on_purpose"]}},
}


class LiveRules:
    """What both tests stand on. `thresholds`: of the rules, (as shipped, as here)."""

    thresholds = ()
    handlers = HANDLERS

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-rules-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prometheus_port, *ports = free_ports(4)
        cls.ports = dict(zip(("w1", "w2", "w3"), ports))
        cls.db = MariaDb(str(cls.folder / "db"))
        cls.addClassCleanup(cls.db.stop)
        cls.user = cls.db.add_user("worker")
        cls.ensemble = Ensemble(str(cls.folder / "zookeeper"))
        cls.addClassCleanup(cls.ensemble.stop)
        cls.millrace("schema", "apply")
        (cls.folder / "plugins").mkdir(mode=0o755)
        for plugin in [*BINARY.glob("plugins/*.so"), BINARY / "tests/plugins/chaos_handlers.so"]:
            shutil.copy(plugin, cls.folder / "plugins")
        (cls.folder / "engine.json").write_text(json.dumps({"engine": {"lease": "2s"}}))
        cls.millrace("config", "set", "handlers", json.dumps(cls.handlers), "--offline", "--yes")
        cls.start_worker("w1", "award_points,noop,nightly,slow,partner,hold")
        cls.start("prometheus", f"--config.file={cls.configuration()}", f"--storage.tsdb.path={cls.folder}/series",
                  f"--web.listen-address=127.0.0.1:{cls.prometheus_port}", "--log.level=warn")

    @classmethod
    def configuration(cls):
        """Every rule as it is shipped, but that it need not hold for minutes, nor looks back for as long."""
        rules = re.sub(r"(?m)^( +for:) .*$", r"\1 1s", RULES.read_text())
        rules = re.sub(r"(?m)^( +interval:) .*$", r"\1 1s", rules)
        rules = re.sub(r"\[(\w+)\]", lambda window: f"[{WINDOWS[window[1]]}]", rules)
        for shipped, here in (("offset 15m", "offset 10s"), *cls.thresholds):
            assert shipped in rules, shipped
            rules = rules.replace(shipped, here)
        (cls.folder / "rules.yml").write_text(rules)
        (cls.folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "millrace",
                                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in cls.ports.values()]}]}]}))
        return cls.folder / "prometheus.yml"

    @classmethod
    def environment(cls):
        return {**os.environ, "HOME": str(cls.folder), "MILLRACE_PASSWORD_FILE": cls.db.password_file,
                "MILLRACE_ZK": cls.ensemble.address, "MILLRACE_STORE": cls.db.url_of(None, cls.user)}

    @classmethod
    def millrace(cls, *words):
        done = subprocess.run([BINARY / "millrace", *map(str, words)], env=cls.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        assert done.returncode == 0, done.stdout

    @classmethod
    def start_worker(cls, name, handlers, *words):
        return cls.start(BINARY / "millrace", "worker", "--id", name, "--state-dir", cls.folder / f"state-{name}",
                         "--config", cls.folder / "engine.json", "--plugins", cls.folder / "plugins", "--handlers",
                         handlers, "--http", f"127.0.0.1:{cls.ports[name]}", "--session-timeout", "2s", *words)

    @classmethod
    def start(cls, program, *words):
        name = pathlib.Path(program).name
        process = Process(name, [program, *words], str(cls.folder / f"{name}.log"), cls.environment())
        cls.addClassCleanup(process.kill)
        return process

    def submit(self, handler, *words):
        self.millrace("submit", "--force", "--handler", handler, *words)

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def value(self, query):
        found = self.ask("query?query=" + urllib.request.quote(query))["result"]
        return float(found[0]["value"][1]) if found else None

    def fires(self, names, seconds=SOON, meanwhile=lambda: None):
        """Each of them has, if not all at once."""
        seen = set()

        def all_seen():
            meanwhile()
            seen.update(names & self.firing())
            return seen == names
        try:
            wait_until("all fire", all_seen, seconds, 0.2)
        except AssertionError:
            self.fail(f"not within {seconds} s: {', '.join(sorted(names - seen))} fire")
        self.fired |= names

    def clears(self, names, seconds=SOON):
        try:
            wait_until("all have cleared", lambda: not names & self.firing(), seconds, 0.2)
        except AssertionError:
            self.fail(f"not within {seconds} s: {', '.join(sorted(names & self.firing()))} clear")

    def setUp(self):
        """The worker works, and each rule can be computed."""
        self.fired = set()

        def is_up():
            with contextlib.suppress(OSError):
                return self.value("max(millrace_slices{state=\"owned\"})")
        # Each type is told once it has run.
        self.submit("award_points", "--params", "{}")
        self.submit("slow", "--params", "{}")
        wait_until("Prometheus has seen the worker work", lambda: is_up() and all(
            self.value(f"sum(millrace_tasks_settled_total{{outcome=\"{outcome}\"}})")
            for outcome in ("failed", "succeeded")), 30, 0.2)
        self.assertEqual([], [rule["lastError"] for group in self.ask("rules")["groups"] for rule in group["rules"]
                              if rule["health"] == "err"])
        self.assertEqual(set(), self.firing() - {"MillraceFailedPoolGrows"})

    @contextlib.contextmanager
    def schedule_that_cannot_fire(self):
        self.db.rows("CREATE TRIGGER no_nightly BEFORE INSERT ON tasks FOR EACH ROW IF NEW.handler = 'nightly' THEN "
                     "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not tonight'; END IF")
        self.millrace("config", "set", "schedules",
                      json.dumps({"nightly": {"every": "1s", "handler": "nightly"}}), "--yes")
        wait_until("the schedule has begun", lambda: self.db.value("SELECT COUNT(*) FROM millrace_schedules"), 10, 0.1)
        yield
        self.db.rows("DROP TRIGGER no_nightly")


class QuickTest(LiveRules, unittest.TestCase):
    thresholds = ((r'le=~\"60([.]0)?\"', r'le=~\"0.25\"'),)  # s: of a run that takes long

    def stop_in_its_task(self, worker):
        wait_until("it has slices", lambda: read_assignments(self.tree).get("w2", ((),))[0], 20, 0.1)
        self.release = self.folder / "release"

        def runs():
            claimed = self.db.value("SELECT COUNT(*) FROM tasks JOIN millrace_incarnations i ON i.number = claimed_by "
                                    "WHERE handler = 'hold' AND state = 2 AND worker = 'w2'")
            if not claimed:  # those slices may be the first of many that it gets
                self.submit("hold", "--params", json.dumps({"ms": 60_000, "until": str(self.release)}), "--count", 16)
            return claimed
        wait_until("it runs a task", runs, 20, 0.5)  # what was claimed so long ago has begun
        worker.pause()

    def test_causes_that_are_made_fire_their_rules_and_clear_them(self):
        self.tree = self.ensemble.client()
        self.addCleanup(self.tree.close)
        self.addCleanup(self.tree.stop)
        with self.schedule_that_cannot_fire():
            second = self.start_worker("w2", "hold", "--no-coordinate")
            crashing = [self.start_worker("w3", "crash", "--no-coordinate")]
            wait_until("they are told of", lambda: self.value("count(millrace_settles_refused_total)") == 3, 20, 0.1)
            self.stop_in_its_task(second)

            def start_again():
                if not crashing[-1].runs():
                    crashing.append(self.start_worker("w3", "crash", "--no-coordinate"))
            cause = self.folder / "cause"
            cause.touch()
            # Tasks that take long, whose partner fails, that kill, and that nobody starts; slices that nobody may have; a
            # schedule that nobody has fired for hours; a bad word; tasks that fail and have started late.
            self.submit("slow", "--params", '{"ms": 500}', "--count", 640)
            self.submit("partner", "--params", json.dumps({"while": str(cause)}), "--count", 4)
            self.submit("crash")
            self.submit("exotic", "--at", LONG_AGO)
            self.millrace("cluster", "limit", "w1", "--load-balance", "0-31")
            self.db.rows("UPDATE millrace_schedules SET anchor = anchor - INTERVAL 3 HOUR, "
                         "next_at = next_at - INTERVAL 3 HOUR")
            self.tree.set("/millrace/default/config/handlers", b"no JSON")
            self.submit("award_points", "--params", "{}", "--count", 2000, "--at", LONG_AGO)
            late = {"MillraceSettlesRefused", "MillraceShardAway", "MillraceZooKeeperAway", "MillraceNoLeader"}
            self.fires(ALL - SLOW - late, 2 * SOON, start_again)
            second.resume()
            # What a counter gained is seen only where it was read before.
            wait_until("the paused one is read again", lambda: self.value(
                f'count(millrace_settles_refused_total{{instance="127.0.0.1:{self.ports["w2"]}"}})'), SOON, 0.1)
            self.release.touch()
            self.fires({"MillraceSettlesRefused"})
        self.assertEqual(4, len(crashing))  # three crashes
        self.millrace("cluster", "limit", "w1", "--none")
        self.tree.set("/millrace/default/config/handlers", json.dumps(HANDLERS).encode())
        self.millrace("task", "cancel", "--handler", "exotic", "--all-matching", "--yes")
        self.millrace("task", "cancel", "--handler", "crash", "--state", "failed", "--all-matching", "--yes")
        cause.unlink()
        self.clears(ALL, 2 * SOON)

        self.db.process.pause()
        self.fires({"MillraceShardAway"})
        self.db.process.resume()
        self.clears({"MillraceShardAway"})
        self.ensemble.stop()
        self.fires({"MillraceZooKeeperAway", "MillraceNoLeader"})
        self.ensemble.start()
        self.clears({"MillraceZooKeeperAway", "MillraceNoLeader"})
        self.assertEqual(ALL - SLOW, self.fired)


class SlowTest(LiveRules, unittest.TestCase):
    thresholds = (("millrace_purge_lag_seconds) > 10800", "millrace_purge_lag_seconds) > 75"),)
    handlers = {**HANDLERS, "noop": {"keep": "0s"}}  # walks each minute

    def test_what_lasts_for_a_minute_fires_its_rule_and_clears_it(self):
        self.submit("noop", "--key", "kept for a while")
        self.submit("slow", "--params", '{"ms": 61000}', "--count", 32)
        wait_until("there is something to purge", lambda: self.db.value(
            "SELECT COUNT(*) FROM tasks_done WHERE handler = 'noop'"), 20, 0.1)
        holder = self.db.connect(autocommit=False)
        self.addCleanup(holder.close)
        with holder.cursor() as cursor:
            cursor.execute("SELECT * FROM tasks_done FOR UPDATE")
        names = {"MillracePurgeLag", "MillraceRunBudgetBurn", "MillraceScheduleLate"}
        with self.schedule_that_cannot_fire():
            self.fires(names, 150)
        holder.rollback()
        self.clears(names, 150)


if __name__ == "__main__":
    unittest.main()
