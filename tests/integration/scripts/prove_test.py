"""scripts/prove: its groups, what it refuses, and its report, which gathers groups and says which were not run."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
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
        # A sanitizer's build has a test before and behind all, without a label.
        labels = {test["name"]: of["value"] for test in told["tests"] for of in test["properties"] if of["name"] == "LABELS"}
        self.assertGreater(len(labels), 20)
        for name, found in labels.items():
            of = [label[len("group_"):] for label in found if label.startswith("group_")]
            self.assertEqual(1, len(of), f"{name}: {found}")
            self.assertIn(of[0], groups, name)


class ARun(unittest.TestCase):
    """The script in a repository of its own, its hour a second long. Its ctest leaves a child that needs a moment to
    stop."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        script = (SOURCE / "scripts" / "prove").read_text()
        self.assertEqual(script.count("\nlongest=3600 "), 1)
        self.write("scripts/prove", script.replace("\nlongest=3600 ", "\nlongest=1 "))
        self.write("scripts/install-deps", "#!/bin/sh\n")
        self.write("bin/ninja", "#!/bin/sh\n")
        self.write("bin/ctest", "#!/bin/bash\n(trap 'sleep 1; touch stopped; exit' TERM; while :; do sleep 0.1; done) &\n"
                                "echo $! >child\nsleep 60\n")
        (self.root / "tests/support/chaos").mkdir(parents=True)
        shutil.copy(SOURCE / "tests/support/chaos/report.py", self.root / "tests/support/chaos")
        (self.root / ".gitignore").write_text("/build*/\n/child\n/stopped\n/full\n")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.commit()
        (self.root / "build/test").mkdir(parents=True)
        (self.root / "build/test/build.ninja").write_text("")

    def commit(self):
        for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
            subprocess.run(["git", *words], cwd=self.root, check=True)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def start(self, *words):
        return subprocess.Popen([self.root / "scripts/prove", *words], cwd=self.root, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT,
                                env={**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})

    def wait_for(self, name):
        deadline = time.monotonic() + 20
        while not (self.root / name).exists():
            self.assertLess(time.monotonic(), deadline, name)
            time.sleep(0.02)

    def test_that_is_cut_off_does_not_hold_and_leaves_nothing_running(self):
        done = self.start("--only", "workers")
        told = done.communicate(timeout=60)[0]
        self.assertEqual(done.returncode, 1, told)
        self.assertRegex(told, r"\| workers \| cut off \|.*FAIL")
        self.assertTrue((self.root / "stopped").exists(), "the next group would have begun beside it")

    def test_that_is_interrupted_leaves_nothing_running(self):
        done = self.start("--only", "workers")
        self.wait_for("child")
        done.terminate()
        told = done.communicate(timeout=60)[0]
        self.assertEqual(done.returncode, 130, told)
        self.assertTrue((self.root / "stopped").exists())

    def test_asks_tests_that_have_a_full_form_for_it(self):
        self.write("bin/ctest", "#!/bin/sh\necho \"$MILLRACE_FULL\" >full\n")
        self.commit()
        self.start("--only", "workers").communicate(timeout=60)
        self.assertEqual((self.root / "full").read_text(), "1\n")

    def test_of_a_clone_is_refused_where_the_clone_would_lack_something(self):
        self.write("bin/ctest", "#!/bin/sh\n")
        self.commit()
        (self.root / "new").write_text("a file that nobody has added")
        for words in ((), ("--only", "workers,quickstart")):
            done = self.start(*words)
            told = done.communicate(timeout=60)[0]
            self.assertEqual(done.returncode, 2, told)
            self.assertIn("changes of this tree", told)
        self.start("--only", "workers").communicate(timeout=60)
        state = (self.root / "build/prove/commit").read_text()
        self.assertIn("with changes", state)
        (self.root / "new").write_text("another text")
        self.start("--only", "workers").communicate(timeout=60)
        self.assertNotEqual((self.root / "build/prove/commit").read_text(), state)


class TheReport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "commit").write_text("abc\n")

    def ran(self, group, passes=True, status="run", seconds="60", tests=True):
        folder = self.folder / group
        folder.mkdir()
        check = {"scenario": "s", "asked": "more | less", "measured": "1", "pass": passes}
        (folder / "checks.jsonl").write_text(json.dumps(check) + "\n")
        if tests:
            (folder / "tests.xml").write_text(TESTS.format(status))
        if seconds:
            (folder / "seconds").write_text(seconds)

    def report(self, groups=("one", "two")):
        lines, holds = report(self.folder, groups)
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
        for fault in ({"passes": False}, {"status": "fail"}, {"seconds": ""}, {"seconds": "3601"},
                      {"seconds": "3600", "tests": False}):
            with self.subTest(fault):
                self.setUp()
                self.ran("one")
                self.ran("two", **fault)
                text, holds = self.report()
                self.assertFalse(holds)
                self.assertIn("FAIL", text)

    def test_asks_no_tests_of_the_quickstart_alone(self):
        self.ran("quickstart", tests=False)
        self.assertTrue(self.report(["quickstart"])[1])

    def test_does_not_hold_where_nothing_was_measured(self):
        self.assertFalse(self.report()[1])
        (self.folder / "one").mkdir()
        (self.folder / "one" / "seconds").write_text("1")
        self.assertFalse(self.report()[1])


if __name__ == "__main__":
    unittest.main()
