"""The alert rules on a Prometheus that scrapes a real worker: their causes are made, and they fire and clear. The rules are
those that are shipped, but for how long each has to hold, and how often they are looked at."""
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
from chaos.processes import Process, free_ports, wait_until
from chaos.zookeeper import Ensemble

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
RULES = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"]) / "conf/monitoring/rules.yml"
LONG_AGO = "2026-01-01T00:00:00Z"
SOON = 25  # s


class LiveRulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-rules-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.worker_port, cls.prometheus_port = free_ports(2)
        cls.db = MariaDb(str(cls.folder / "db"))
        cls.addClassCleanup(cls.db.stop)
        cls.user = cls.db.add_user("worker")
        cls.ensemble = Ensemble(str(cls.folder / "zookeeper"))
        cls.addClassCleanup(cls.ensemble.stop)
        cls.millrace("schema", "apply")
        cls.start(BINARY / "millrace", "worker", "--id", "w1", "--state-dir", cls.folder / "state", "--plugins",
                  BINARY / "plugins", "--handlers", "award_points,noop", "--http", f"127.0.0.1:{cls.worker_port}",
                  "--session-timeout", "2s")
        cls.start("prometheus", f"--config.file={cls.configuration()}", f"--storage.tsdb.path={cls.folder}/series",
                  f"--web.listen-address=127.0.0.1:{cls.prometheus_port}", "--log.level=warn")

    @classmethod
    def configuration(cls):
        """Every rule as it is shipped, but that it need not hold for minutes."""
        rules = re.sub(r"(?m)^( +for:) .*$", r"\1 1s", RULES.read_text())
        rules = re.sub(r"(?m)^( +interval:) .*$", r"\1 1s", rules)
        (cls.folder / "rules.yml").write_text(rules)
        (cls.folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "millrace",
                                "static_configs": [{"targets": [f"127.0.0.1:{cls.worker_port}"]}]}]}))
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
    def start(cls, program, *words):
        name = pathlib.Path(program).name
        process = Process(name, [program, *words], str(cls.folder / f"{name}.log"), cls.environment())
        cls.addClassCleanup(process.kill)
        return process

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def value(self, query):
        found = self.ask("query?query=" + urllib.request.quote(query))["result"]
        return float(found[0]["value"][1]) if found else None

    def fires(self, names):
        wait_until(f"{', '.join(sorted(names))} fire", lambda: names <= self.firing(), SOON, 0.2)

    def clears(self, names):
        wait_until(f"{', '.join(sorted(names))} have cleared", lambda: not names & self.firing(), SOON, 0.2)

    def test_causes_that_are_made_fire_their_rules_and_clear_them(self):
        def is_up():
            with contextlib.suppress(OSError):
                return self.value("max(millrace_slices{state=\"owned\"})")
        self.millrace("submit", "--handler", "award_points", "--params", "{}")  # each type is told once it has run
        wait_until("Prometheus has seen the worker work",
                   lambda: is_up() and self.value("sum(millrace_tasks_settled_total{outcome=\"failed\"})"), 30, 0.2)
        self.assertEqual([], [group["name"] for group in self.ask("rules")["groups"] for rule in group["rules"]
                              if rule["health"] == "err"])
        self.assertEqual(set(), self.firing() - {"MillraceFailedPoolGrows"})

        # Tasks that fail, that started late, and that nobody starts; slices that nobody may have; a bad word.
        self.millrace("submit", "--handler", "award_points", "--params", "{}", "--count", 2000, "--at", LONG_AGO)
        self.millrace("submit", "--handler", "exotic", "--at", LONG_AGO, "--force")
        self.millrace("cluster", "limit", "w1", "--load-balance", "0-31")
        tree = self.ensemble.client()
        self.addCleanup(tree.close)
        self.addCleanup(tree.stop)
        tree.set("/millrace/default/config/handlers", b"no JSON")
        self.fires({"MillraceFailedPoolGrows", "MillraceErrorBudgetBurn", "MillraceWaitBudgetBurn",
                    "MillraceOldestDueHigh", "MillraceNothingStarts", "MillraceSlicesUnowned", "MillraceConfigRefused"})
        self.millrace("cluster", "limit", "w1", "--none")
        tree.set("/millrace/default/config/handlers", b"{}")
        self.millrace("task", "cancel", "--handler", "exotic", "--all-matching", "--yes")
        self.clears({"MillraceOldestDueHigh", "MillraceNothingStarts", "MillraceSlicesUnowned", "MillraceConfigRefused"})

        self.db.process.pause()
        self.fires({"MillraceShardAway"})
        self.db.process.resume()
        self.clears({"MillraceShardAway"})
        self.ensemble.stop()
        self.fires({"MillraceZooKeeperAway", "MillraceNoLeader"})


if __name__ == "__main__":
    unittest.main()
