"""The tree passes scripts/check: its format, its layers, the bounds of the house, its shell; and what is planted is found."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])


def check(root):
    return subprocess.run([root / "scripts/check", "--fast", "--all"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)


class Check(unittest.TestCase):
    def test_the_tree_passes(self):
        done = check(ROOT)
        self.assertEqual(0, done.returncode, done.stdout)

    def test_a_badly_formatted_file_and_a_bad_script_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path in ["scripts/check", "scripts/house", "scripts/house.bounds", "scripts/install-deps",
                         "tests/unit/layers/layers.py", ".clang-format"]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, root / path)
            (root / "framework/base").mkdir(parents=True)
            (root / "framework/base/a.cc").write_text("int  a ;\n")
            (root / "scripts/b").write_text("#!/usr/bin/env bash\ncd $1\n")
            subprocess.run(["git", "init", "-q", root], check=True)
            done = check(root)
        self.assertEqual(1, done.returncode, done.stdout)
        for line in ["FAILED  format", "FAILED  shell", "ok      bounds", "ok      layers"]:
            self.assertIn(line, done.stdout)


if __name__ == "__main__":
    unittest.main()
