"""scripts/house counts exactly what stands in a small tree, and its bounds only fall."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HOUSE = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"], "scripts/house")
BOUNDS = "scripts/house.bounds"


def function(name, lines):
    """A function of so many lines, 3 or more."""
    return f"int {name}(int a) {{\n" + "  a += 1;\n" * (lines - 2) + "}\n"


def padding(lines):
    return "// a line\n" * lines


# Two product files are short, b.h and shared.h; the longest has 120 lines, its longest function 80.
TREE = {
    "framework/base/a.h": padding(40) + "class Lone {\n  virtual int Get() = 0;\n};\n"
                          "class Doubled {\n  virtual int Get() const = 0;\n};\n",
    "framework/base/a.cc": '#include "framework/base/a.h"\n' + function("Long", 80) + padding(39),
    "framework/base/shared.h": "struct Plain {\n  int x{0};\n};\n",
    "framework/store/sqlite/b.h": '#include "framework/base/a.h"\n#include "framework/base/shared.h"\n'
                                  "class Real final : public Lone, public Doubled {};\n",
    "framework/testing/double.h": padding(40) + '#include "framework/base/shared.h"\nstruct Double : Doubled {};\n',
    "framework/include/millrace/api.h": padding(40)
                                         + "class Author {\n  virtual ~Author();\n  virtual int Run() = 0;\n};\n",
    "coordinator/app/c.cc": '#include "framework/store/sqlite/b.h"\n'
                            'const char* kText = R"sql({ ( " }{)sql";  // a { in a comment\n'
                            "namespace n {\nC::C(int x) : a_(x), b_{x} {\n  go([&] {\n    return '{';\n  });\n}\n}\n"
                            + function("Mid", 30),
    "handlers/noop/noop.cc": "#include <millrace/api.h>\n" + padding(44),
    "tests/unit/base/a_test.cc": '#include "framework/base/a.h"\n#include "framework/testing/double.h"\n'
                                 + function("InATest", 100),
    "conf/not_counted.cc": padding(9),
}
EXACT = {"product_lines": 342, "product_files": 8, "one_user_headers": 2, "lone_interfaces": 1, "short_files": 3,
         "longest_file": 120, "long_functions": 1, "longest_function": 80}


class TheHouse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in TREE.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def bound(self, **bounds):
        self.write(BOUNDS, "".join(f"{name} {count}\n" for name, count in {**EXACT, **bounds}.items()))

    def bounds(self):
        return {name: int(count) for name, count in map(str.split, (self.root / BOUNDS).read_text().splitlines())}

    def house(self, *options, code=0):
        done = subprocess.run([sys.executable, "-B", HOUSE, "--root", self.root, *options], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(code, done.returncode, done.stdout)
        return done.stdout

    def test_counts_each_thing_exactly(self):
        self.bound(**{name: 10**6 for name in EXACT})
        self.house("--ratchet")
        self.assertEqual(EXACT, self.bounds())

    def test_names_what_it_counts(self):
        self.assertEqual(["framework/base/a.h  ← framework/store/sqlite/b.h",
                          "framework/store/sqlite/b.h  ← coordinator/app/c.cc"],
                         self.house("--list", "one_user_headers").splitlines())
        self.assertEqual(["Lone  framework/base/a.h  ← Real"], self.house("--list", "lone_interfaces").splitlines())
        self.assertEqual(["80  framework/base/a.cc:2  Long", "30  coordinator/app/c.cc:10  Mid",
                          "5  coordinator/app/c.cc:4  C::C"],
                         [line.strip() for line in self.house("--list", "longest_function").splitlines()])
        self.assertEqual(["3  framework/base/shared.h", "3  framework/store/sqlite/b.h", "39  coordinator/app/c.cc"],
                         [line.strip() for line in self.house("--list", "short_files").splitlines()])

    def test_prints_rooms_with_lines_and_files(self):
        rooms = [line.split() for line in self.house().split("\n\n")[0].splitlines()[1:]]
        self.assertEqual([["coordinator/app", "39", "1"], ["framework/base", "169", "3"],
                          ["framework/include", "44", "1"], ["framework/store", "3", "1"],
                          ["framework/testing", "42", "1"], ["handlers", "45", "1"], ["tests", "102", "1"],
                          ["product", "342", "8"]], rooms)

    def test_passes_at_its_bounds(self):
        self.bound()
        self.assertEqual("", self.house("--check"))

    def test_refuses_a_rise_and_says_what_to_do(self):
        for name, count in EXACT.items():
            self.bound(**{name: count - 1})
            said = self.house("--check", code=1)
            self.assertEqual(2, len(said.splitlines()), said)
            self.assertIn(f"{count:,}, the bound is {count - 1:,}. Please ", said)
            self.assertIn("raise the bound in scripts/house.bounds by hand", said)

    def test_ratchet_lowers_and_never_raises(self):
        self.bound(short_files=9, longest_file=100)
        self.assertIn("--ratchet", self.house("--check", code=1) + self.house("--help"))
        self.assertEqual("short_files: 9 → 3\n", self.house("--ratchet"))
        self.assertEqual({**EXACT, "longest_file": 100}, self.bounds())

    def test_says_when_bounds_can_be_lowered(self):
        self.bound(short_files=9)
        self.assertIn("scripts/house --ratchet", self.house("--check"))

    def test_refuses_bounds_that_it_does_not_know_or_that_are_missing(self):
        self.write(BOUNDS, "product_limes 4\n")
        self.assertIn("scripts/house.bounds:1: ", self.house("--check", code=1))
        self.write(BOUNDS, "product_lines 4\n")
        self.assertIn("lacks product_files", self.house("--check", code=1))


if __name__ == "__main__":
    unittest.main()
