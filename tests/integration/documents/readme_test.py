"""README.md is run from its first line to its last, in a copy of the tree, as a reader would.

A block of `sh` is run, and what the block of `text` right after it says must be among what it printed, line by line; a
block of `sql` is run by `scripts/cluster sql`; a block of `cpp` is a file of conf/samples, which a block of `sh` builds.
All in one shell, so that an `export` holds in the blocks that follow. There are no other blocks but drawings (`text`)."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "== block "
SQL = "scripts/cluster sql <<'END_OF_SQL'\n{}END_OF_SQL\n"


def blocks(text):
    """(language, text, right after the block before it) for each."""
    end, found = 0, []
    for fence in FENCE.finditer(text):
        found.append((fence[1], fence[2], not text[end:fence.start()].strip()))
        end = fence.end()
    return found


def script(found):
    """What is run: each block announced by its number."""
    parts = ["set -euo pipefail\n"]
    for number, (language, text, _) in enumerate(found):
        if language in ("sh", "sql"):
            parts.append(f"echo '{MARK}{number}'\n" + (text if language == "sh" else SQL.format(text)))
    return "".join(parts)


def printed(output):
    """What each block printed, by its number."""
    parts = re.split(rf"^{MARK}(\d+)\n", output, flags=re.MULTILINE)
    return dict(zip(map(int, parts[1::2]), parts[2::2]))


def missing(found, output):
    """The lines that a reader was promised and did not get."""
    got = printed(output)
    return [line for number, (language, text, follows) in enumerate(found)
            if language == "text" and follows and number - 1 in got
            for line in text.splitlines() if line.strip() not in got[number - 1]]


def copy_tree(source, target):
    names = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (source / name).is_file():  # not one that was removed and is not committed yet
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)


class TheReadme(unittest.TestCase):
    source = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"])

    def setUp(self):
        self.found = blocks((self.source / "README.md").read_text())

    def test_says_what_each_block_is(self):
        self.assertEqual(set(), {language for language, _, _ in self.found} - {"sh", "text", "sql", "cpp"})
        samples = {file.read_text() for file in (self.source / "conf/samples").rglob("*.cc")}
        self.assertEqual([], [text for language, text, _ in self.found if language == "cpp" and text not in samples])

    def test_does_what_it_says(self):
        build = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
        with tempfile.TemporaryDirectory(prefix="millrace-readme-") as folder:
            tree = pathlib.Path(folder) / "millrace"
            copy_tree(self.source, tree)
            # What the quickstart would build is here already; `scripts/prove` builds it from nothing.
            (tree / "build").mkdir()
            (tree / "build/quickstart").symlink_to(build)
            self.addCleanup(shutil.rmtree, build / "data", ignore_errors=True)
            shutil.rmtree(build / "data", ignore_errors=True)
            home = {"HOME": folder, "XDG_STATE_HOME": f"{folder}/state"}
            kept = {name: value for name, value in os.environ.items() if not name.startswith("MILLRACE_")}
            with open(f"{folder}/output", "w") as output:
                reader = subprocess.Popen(["bash", "-c", script(self.found)], cwd=tree, env={**kept, **home},
                                          stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
            try:
                code = reader.wait(280)
            except subprocess.TimeoutExpired:
                code = "it goes on for ever"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(reader.pid, signal.SIGKILL)  # what it has begun and not ended, too
                subprocess.run([tree / "scripts/cluster", "down"], check=False, stdout=subprocess.DEVNULL)
            said = pathlib.Path(f"{folder}/output").read_text()
        self.assertEqual(0, code, said[-4000:])
        self.assertEqual([], missing(self.found, said), said)


class TheCheck(unittest.TestCase):
    text = "a\n```sh\necho one\necho two\n```\n```text\ntwo\n```\nb\n```text\na drawing\n```\n```sql\nSELECT 1;\n```\n"

    def test_reads_blocks(self):
        self.assertEqual([("sh", "echo one\necho two\n", False), ("text", "two\n", True),
                          ("text", "a drawing\n", False), ("sql", "SELECT 1;\n", True)], blocks(self.text))
        self.assertEqual("set -euo pipefail\necho '== block 0'\necho one\necho two\n"
                         "echo '== block 3'\n" + SQL.format("SELECT 1;\n"), script(blocks(self.text)))

    def test_misses_what_was_not_printed(self):
        self.assertEqual([], missing(blocks(self.text), "== block 0\none\ntwo\n== block 3\n1\n"))
        self.assertEqual(["two"], missing(blocks(self.text), "== block 0\none\n== block 3\ntwo\n"))


if __name__ == "__main__":
    unittest.main()
