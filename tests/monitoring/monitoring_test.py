"""What scripts/monitoring makes is as its list says, promtool takes it, and every rule fires and clears."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])
LIST = json.loads((ROOT / "conf/monitoring/metrics.json").read_text())
BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
NAMES = {metric["name"]: metric for metric in LIST["metrics"]}


def run(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250,
                          check=False)


def copied(folder):
    """Of the tree, what the script reads and writes."""
    root = pathlib.Path(folder)
    for path in ["scripts/monitoring", "framework/metrics/catalog.cc", *map(str, (
            file.relative_to(ROOT) for place in ("conf/monitoring", "tests/monitoring") for file in (ROOT / place).iterdir()
            if file.is_file()))]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, root / path)
    return root


def filled(command):
    for word, value in {"{{ $labels.handler }}": "noop", "ID": "1", "PART": "handlers", "SLICE": "main/tasks/0"}.items():
        command = command.replace(word, value)
    return command


def metrics_in(expression):
    for name in re.findall(r"\bmillrace_[a-z0-9_]+", re.sub(r"handler:millrace_\w+", "", expression)):
        yield re.sub(r"_(bucket|count|sum)$", "", name) if name not in NAMES else name


class Monitoring(unittest.TestCase):
    def test_what_is_made_is_as_the_list_says(self):
        done = run(ROOT / "scripts/monitoring", "--check")
        self.assertEqual(0, done.returncode, done.stdout)

    def test_a_file_that_was_changed_by_hand_is_found_and_made_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            root = copied(folder)
            rules = root / "conf/monitoring/rules.yml"
            rules.write_text(rules.read_text().replace("MillraceNoLeader", "MillraceNobody"))
            done = run(root / "scripts/monitoring", "--check")
            self.assertEqual(1, done.returncode)
            self.assertIn("conf/monitoring/rules.yml is not what", done.stdout)
            self.assertEqual(0, run(root / "scripts/monitoring").returncode)
            self.assertEqual(0, run(root / "scripts/monitoring", "--check").returncode)

    def test_promtool_takes_the_rules(self):
        done = run("promtool", "check", "rules", "conf/monitoring/rules.yml")
        self.assertEqual(0, done.returncode, done.stdout)

    def test_every_rule_fires_and_clears(self):
        done = run("promtool", "test", "rules", "rules_test.yml", "rules_soon_test.yml", cwd=ROOT / "tests/monitoring")
        self.assertEqual(0, done.returncode, done.stdout)
        rules = set(re.findall(r"- alert: (\w+)", (ROOT / "conf/monitoring/rules.yml").read_text()))
        texts = "".join((ROOT / f"tests/monitoring/{name}.yml").read_text() for name in ("rules_test", "rules_soon_test"))
        for alert in rules:
            moments = re.findall(rf"alertname: {alert}\n        exp_alerts:(.*)", texts)
            self.assertEqual([" []", "", " []"], moments, alert)

    def test_a_rule_that_never_fires_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = copied(folder)
            rules = root / "conf/monitoring/rules.yml"
            rules.write_text(rules.read_text().replace("millrace_zookeeper_connected == 0", "millrace_zookeeper_connected == 7"))
            done = run("promtool", "test", "rules", "rules_soon_test.yml", cwd=root / "tests/monitoring")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("MillraceZooKeeperAway", done.stdout)

    def test_the_program_tells_what_the_list_names_and_nothing_else(self):
        named = set()
        for half in ("framework", "coordinator"):
            for file in (ROOT / half).rglob("*.cc"):
                if file.name != "catalog.cc":
                    named |= set(re.findall(r'"(millrace_[a-z_]+_(?:total|seconds|info)|millrace_(?:' + "|".join(
                        re.escape(name.removeprefix("millrace_")) for name in NAMES) + r'))"', file.read_text()))
        self.assertEqual(set(NAMES), named)

    def test_rules_and_panels_ask_for_what_there_is(self):
        asked = [objective["bad"] for objective in LIST["objectives"]] + [alert["expr"] for alert in LIST["alerts"]]
        asked += [query for row in LIST["dashboard"] for panel in row["panels"] for query, _ in panel["queries"]]
        for expression in asked:
            for name in metrics_in(expression):
                self.assertIn(name, NAMES, expression)
        shown = {name for row in LIST["dashboard"] for panel in row["panels"] for query, _ in panel["queries"]
                 for name in metrics_in(query)}
        recorded = {"millrace_tasks_settled_total"}  # by its recording rule
        self.assertEqual(set(NAMES), shown | recorded)

    def test_names_follow_the_conventions(self):
        for name, metric in NAMES.items():
            self.assertEqual(metric["type"] == "counter", name.endswith("_total"), name)
            self.assertTrue(metric["help"].endswith("."), name)
            self.assertEqual(metric["type"] == "histogram", "buckets" in metric, name)
            self.assertFalse(set(metric["labels"]) & {"task", "id", "key", "batch", "slice"}, name)

    def test_every_alert_tells_what_to_do_and_where_it_is_written(self):
        page = (ROOT / "conf/monitoring/README.md").read_text()
        for alert in [*LIST["objectives"], *LIST["alerts"]]:
            self.assertIn(f'<a id="{alert["anchor"]}"></a>', page, alert["name"])
            self.assertGreater(len(alert["action"]), 40, alert["name"])

    def test_every_command_of_an_action_is_one_that_the_program_takes(self):
        """Where no store and no cluster is named: then nothing else may be wrong with it."""
        actions = " ".join(alert["action"] for alert in [*LIST["objectives"], *LIST["alerts"]])
        self.assertNotRegex(re.sub("`[^`]*`", "", actions), r"\bmillrace [a-z]", "a command without its marks")
        commands = {filled(command) for command in re.findall("`(millrace [^`]*)`", actions)}
        self.assertGreater(len(commands), 15)
        with tempfile.TemporaryDirectory() as folder:
            for command in sorted(commands):
                done = subprocess.run([BINARY / "millrace", *command.split()[1:]], cwd=folder, env={"HOME": folder}, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                      check=False)
                if not re.search(r"no cluster is named|millrace\.db does not exist", done.stdout):
                    self.assertNotEqual(2, done.returncode, f"{command}: {done.stdout}")


if __name__ == "__main__":
    unittest.main()
