"""What a person sees: the program's output on a terminal of some width, with and without colours."""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

MILLRACE = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"]) / "millrace"


def show(folder, columns, *words, **variables):
    """What `millrace WORDS` writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "HOME": folder, **variables}
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    process = subprocess.Popen([MILLRACE, *words], cwd=folder, env=environment, stdin=theirs, stdout=theirs,
                               stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    process.wait(timeout=60)
    return seen.decode().replace("\r\n", "\n").replace("\r\x1b[2K", "")


def plain(text):
    return re.sub("\x1b\\[[0-9;]*m", "", text)


class TerminalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="millrace-terminal-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        environment = {**os.environ, "HOME": cls.folder}
        for words in (["submit", "--handler", "award_points", "--params", '{"x":1}', "--key", "k" * 12],
                      ["run", "--until-idle"], ["submit", "--handler", "noop", "--in", "1h"]):
            subprocess.run([MILLRACE, *words], cwd=cls.folder, env=environment, check=True, capture_output=True)

    def test_a_narrow_terminal_shows_what_matters_most(self):
        titles = {60: "task state handler about", 80: "task state handler due or ended about",
                  140: "task state handler key attempts due or ended about"}
        for columns, wanted in titles.items():
            text = plain(show(self.folder, columns, "task", "list"))
            lines = text.splitlines()
            self.assertEqual(" ".join(lines[0].split()), wanted, text)
            for line in lines:
                self.assertLessEqual(len(line), columns, text)
            self.assertRegex(text, r"main/tasks/1 +failed")

    def test_states_and_errors_have_colours_unless_they_are_not_wanted(self):
        self.assertIn("\x1b[31mfailed\x1b[0m", show(self.folder, 80, "task", "list"))
        self.assertIn("\x1b[31mfailed\x1b[0m", show(self.folder, 80, "task", "show", "1"))
        self.assertIn("\x1b[31mmillrace:\x1b[0m there is no task", show(self.folder, 80, "task", "show", "17"))
        for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            for words in (("task", "list"), ("task", "show", "1"), ("task", "show", "17")):
                self.assertNotIn("\x1b", show(self.folder, 80, *words, **off).replace("\x1b[2K", ""))
        piped = subprocess.run([MILLRACE, "task", "list"], cwd=self.folder, env={**os.environ, "TERM": "xterm"},
                               check=True, capture_output=True, text=True)
        self.assertNotIn("\x1b", piped.stdout)

    def test_colours_are_the_only_commands_that_reach_the_terminal(self):
        subprocess.run([MILLRACE, "submit", "--handler", "noop", "--key", "\x1b[31mred\x1b[2J"], cwd=self.folder,
                       env={**os.environ, "HOME": self.folder}, check=True, capture_output=True)
        text = show(self.folder, 140, "task", "list")
        self.assertIn(r"\x1b[31mred\x1b[2J", text)
        self.assertEqual(plain(text).count("\x1b"), 0)

    def test_json_is_indented_for_a_person_and_has_no_colours(self):
        text = show(self.folder, 80, "task", "list", "--json")
        self.assertTrue(text.startswith('{\n  "tasks": ['), text)
        self.assertNotIn("\x1b", text)


if __name__ == "__main__":
    unittest.main()
