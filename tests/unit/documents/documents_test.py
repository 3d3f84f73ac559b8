"""Every path that a document names exists: a file that moves takes its mentions along. And every table is whole."""
import os
import pathlib
import re
import tempfile
import unittest

TOPS = "framework|coordinator|handlers|tests|scripts|conf"
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
DELIMITERS = re.compile(r"\|(?:\s*:?-+:?\s*\|)+\s*")
CLASS = re.compile(r'(?:\.Class\(|error_class = )"(\w+)"')
PATH = re.compile(rf"(?:\.\./)*(?:{TOPS})/[\w./-]*|(?:{TOPS})/")


def named(text):
    """The paths in a document: link targets, and code that begins with a folder of the tree. Not in fenced blocks."""
    text = FENCE.sub("", text)
    return LINK.findall(text) + [code for code in CODE.findall(text) if PATH.fullmatch(code)]


def torn(text):
    """The first lines of tables that are none, for want of a delimiter row below: what an empty line has cut off."""
    blocks = [block.splitlines() for block in re.findall(r"^(?:\|.*\n)+", FENCE.sub("", text), re.MULTILINE)]
    return [block[0] for block in blocks if len(block) < 2 or not DELIMITERS.fullmatch(block[1])]


def documents(root):
    return [file for top in ("", *TOPS.split("|")) for file in (root / top).glob("**/*.md" if top else "*.md")]


def missing(root):
    """`document: path` for each path that is neither below the document's folder nor below the root."""
    return sorted(f"{document.relative_to(root)}: {path}"
                  for document in documents(root) for path in named(document.read_text())
                  if not (root / path).exists() and not (document.parent / path).exists())


class TheDocuments(unittest.TestCase):
    root = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])

    def test_name_paths_that_exist(self):
        self.assertEqual([], missing(self.root))

    def test_have_whole_tables(self):
        self.assertEqual({}, {str(document.relative_to(self.root)): lines for document in documents(self.root)
                              if (lines := torn(document.read_text()))})

    def test_the_map_is_read(self):
        self.assertGreater(len(named((self.root / "CONTRIBUTING.md").read_text())), 60)


class TheClassesOfErrors(unittest.TestCase):
    """Operators name them under retry.classes and breaker.classes, and can find them nowhere else."""
    root = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"]) / "handlers"

    def test_of_the_shipped_handlers_are_told(self):
        used = {name for file in self.root.glob("*/*.cc") for name in CLASS.findall(file.read_text())}
        self.assertGreater(len(used), 8)
        told = (self.root / "README.md").read_text()
        self.assertEqual([], sorted(name for name in used if f"`{name}" not in told))


class TheCheck(unittest.TestCase):
    def test_finds_a_table_that_is_cut_in_two(self):
        self.assertEqual([], torn("| a | b |\n|---|:-:|\n| 1 | 2 |\n```\n| drawn |\n```\n"))
        self.assertEqual(["| 2 |"], torn("| a |\n|---|\n| 1 |\n\n| 2 |\n| 3 |\n"))

    def test_finds_what_is_gone_and_lets_the_rest_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "framework/base").mkdir(parents=True)
            (root / "framework/base/clock.h").touch()
            (root / "framework/README.md").write_text(
                "`framework/base/clock.h` [here](base/clock.h) `framework/base/` `framework/task`\n"
                "[gone](base/gone.h#part) [web](https://example.org/x) `tests pass` `base/gone.h`\n"
                "```\nframework/base/fenced.h `framework/fenced`\n```\n")
            (root / "README.md").write_text("`../framework/base/none.cc` `framework/base/clock.h` `framework/<name>`")
            self.assertEqual(["README.md: ../framework/base/none.cc", "framework/README.md: base/gone.h",
                              "framework/README.md: framework/task"], missing(root))


if __name__ == "__main__":
    unittest.main()
