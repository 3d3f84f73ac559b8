"""scripts/prove: its groups, what it refuses, and its report, which gathers groups and says which were not run."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from chaos.report import report

SOURCE = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])
TESTS = ('<testsuite><testcase name="a_test" status="run" time="1.5"/>'
         '<testcase name="b_test" status="{}" time="2"/></testsuite>')


def prove(*words):
    return subprocess.run([SOURCE / "scripts" / "prove", *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)


class TheScript(unittest.TestCase):
    def test_refuses_what_it_does_not_know(self):
        for words in (["--only"], ["--only", "cluster,nothing"], ["--only", ","], ["--fast"]):
            done = prove(*words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("--list", done.stdout)

    def test_every_test_that_proves_is_in_one_of_its_groups(self):
        groups = {line.split()[0] for line in prove("--list").stdout.splitlines()}
        told = json.loads(subprocess.run(
            ["ctest", "--test-dir", os.environ["MILLRACE_BINARY_DIR"], "-L", "^prove$", "--show-only=json-v1"],
            text=True, stdout=subprocess.PIPE, check=True).stdout)
        labels = {test["name"]: next(p["value"] for p in test["properties"] if p["name"] == "LABELS")
                  for test in told["tests"]}
        self.assertGreater(len(labels), 20)
        for name, found in labels.items():
            of = [label[len("group_"):] for label in found if label.startswith("group_")]
            self.assertEqual(1, len(of), f"{name}: {found}")
            self.assertIn(of[0], groups, name)


class TheReport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "commit").write_text("abc\n")

    def ran(self, group, passes=True, status="run", seconds="60"):
        folder = self.folder / group
        folder.mkdir()
        check = {"scenario": "s", "asked": "more | less", "measured": "1", "pass": passes}
        (folder / "checks.jsonl").write_text(json.dumps(check) + "\n")
        (folder / "tests.xml").write_text(TESTS.format(status))
        if seconds:
            (folder / "seconds").write_text(seconds)

    def report(self):
        lines, holds = report(self.folder, ["one", "two"])
        return "\n".join(lines), holds

    def test_gathers_groups_and_says_which_were_not_run(self):
        self.ran("one")
        text, holds = self.report()
        self.assertTrue(holds)
        self.assertIn("1 of 2 groups", text)
        self.assertRegex(text, re.escape("| two |") + ".*not run")
        self.ran("two")
        text, holds = self.report()
        self.assertTrue(holds)
        self.assertIn("2 of 2 groups", text)

    def test_does_not_hold_where_anything_failed(self):
        for fault in ({"passes": False}, {"status": "fail"}, {"seconds": ""}, {"seconds": "3601"}):
            with self.subTest(fault):
                self.setUp()
                self.ran("one")
                self.ran("two", **fault)
                text, holds = self.report()
                self.assertFalse(holds)
                self.assertIn("FAIL", text)

    def test_does_not_hold_where_nothing_was_measured(self):
        self.assertFalse(self.report()[1])
        (self.folder / "one").mkdir()
        (self.folder / "one" / "seconds").write_text("1")
        self.assertFalse(self.report()[1])


if __name__ == "__main__":
    unittest.main()
