"""The manual and the completion that the program makes from its help: nothing is left out, and each is good."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

MILLRACE = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"]) / "millrace"


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def sections(text):
    """What stands below each title of a help text."""
    found, title = {}, ""
    for line in text.splitlines():
        if re.match(r"^\S.*:$", line):
            title = line[:-1]
        found.setdefault(title, []).append(line)
    return found


def commands_below(path):
    """Their names, as the help of `millrace PATH` lists them."""
    names = []
    for title, lines in sections(output(MILLRACE, *path, "--help")).items():
        if title in ("", "Options", "Positionals", "Example"):
            continue
        names += [match[1] for line in lines if (match := re.match(r"^  ([a-z]+)  +\S", line))]
    return names


def all_commands(path=()):
    yield path
    for name in commands_below(path):
        yield from all_commands((*path, name))


class Zsh:
    """A zsh at a terminal that finds the completion among its functions, as an installed one does."""

    def __init__(self, functions):
        process, self._terminal = pty.fork()
        if process == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(functions)})
        self._type(f"PS1='re''ady> '; fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D\n")
        self.read_until("ready> ")

    def close(self):
        os.close(self._terminal)  # a hang-up ends it

    def _type(self, text):
        os.write(self._terminal, text.encode())

    def read_until(self, wanted):
        seen, end = "", time.monotonic() + 20
        while wanted not in seen and time.monotonic() < end:
            if select.select([self._terminal], [], [], 1)[0]:
                seen += os.read(self._terminal, 65536).decode(errors="replace").replace("\a", "")
        return seen

    def complete(self, line, wanted):
        """What the line looks like behind a tab; read until `wanted` stands there, for 20 s at most."""
        self._type(line + "\t")
        seen = self.read_until(wanted)
        self._type("\x15")  # the line is taken back
        return seen


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="millrace-pages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([MILLRACE, "pages", cls.folder], check=True)
        cls.commands = list(all_commands())

    def complete(self, *words):
        script = (f"source {self.folder}/millrace.bash; COMP_WORDS=(millrace \"$@\"); COMP_CWORD=$#; _millrace; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return output("bash", "-c", script, "bash", *words).split()

    def test_every_command_has_a_page_with_all_its_options(self):
        self.assertGreater(len(self.commands), 35)
        names = {"-".join(("millrace", *path)) + ".1" for path in self.commands}
        self.assertEqual({page.name for page in self.folder.glob("*.1")}, names)
        for path in self.commands:
            page = (self.folder / ("-".join(("millrace", *path)) + ".1")).read_text().replace("\\-", "-")
            for option in re.findall(r"--[a-z][a-z-]+", output(MILLRACE, *path, "--help").split("\nExample", 1)[0]):
                self.assertIn(option, page, path)

    def test_every_command_that_takes_yes_takes_its_short_form(self):
        helps = {path: output(MILLRACE, *path, "--help") for path in self.commands}
        asking = [path for path, text in helps.items() if re.search(r"^ .*--yes\b", text.split("\nExample", 1)[0], re.MULTILINE)]
        self.assertIn(("config", "unset"), asking)
        for path in asking:
            self.assertRegex(helps[path], r"-y, *--yes", path)

    def test_the_pages_are_good_roff(self):
        pages = sorted(self.folder.glob("*.1"))
        for page in pages:
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-k", "-man", "-ww", "-Tutf8", page], check=True, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.stderr, "", page)
                self.assertIn("SYNOPSIS", re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout))
            if shutil.which("man"):
                done = subprocess.run(["man", "--warnings", "--local-file", page], check=True, text=True,
                                      env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.stderr, "", page)

    def test_bash_completes_commands_options_and_files(self):
        self.assertEqual(sorted(self.complete("")), sorted([*commands_below(()), "--help", "--version", "-h"]))
        self.assertEqual(self.complete("ta"), ["task"])
        self.assertEqual(self.complete("task", "sh"), ["show"])
        self.assertEqual(self.complete("task", "list", "--si"), ["--since"])
        self.assertEqual(self.complete("task", "list", "--state", ""), [])
        self.assertEqual(self.complete("submit", "--config", f"{self.folder}/_mill"), [f"{self.folder}/_millrace"])
        self.assertEqual(self.complete("run", "--plugins", f"{self.folder}/_mill"), [])
        self.assertEqual(self.complete("cluster", "plan", "--simulate", f"{self.folder}/_mill"),
                         [f"{self.folder}/_millrace"])
        # A command is no file: in a folder that has one of its name bash would put a slash behind it.
        self.assertEqual(output("bash", "-c", f"source {self.folder}/millrace.bash; complete -p millrace"),
                         "complete -F _millrace millrace\n")

    def test_zsh_completes_commands_options_and_files(self):
        zsh = Zsh(self.folder)
        self.addCleanup(zsh.close)
        for line, wanted in (("millrace clu", "millrace cluster "), ("millrace cluster und", "millrace cluster undrain "),
                             ("millrace task list --si", "millrace task list --since "),
                             (f"millrace cluster plan --simulate {self.folder}/millrace.b", "/millrace.bash "),
                             (f"millrace run --plugins {self.folder.parent}/{self.folder.name[:-1]}",
                              f"/{self.folder.name}/"),
                             ("millrace config ", "rollback  -- ")):
            self.assertIn(wanted, zsh.complete(line, wanted))

    def test_fish_completes_commands_options_and_files(self):
        def complete(line):
            lines = subprocess.run(["fish", "--no-config", "-c", f"source {self.folder}/millrace.fish; complete -C '{line}'"],
                                   check=True, text=True, stdout=subprocess.PIPE, cwd=self.folder,
                                   env={**os.environ, "HOME": str(self.folder)}).stdout.splitlines()
            return [line.split("\t")[0] for line in lines]
        self.assertEqual(complete("millrace ta"), ["task"])
        self.assertEqual(sorted(complete("millrace ")), sorted(commands_below(())))
        self.assertEqual(complete("millrace task sh"), ["show"])
        self.assertEqual(complete("millrace task list --si"), ["--since"])
        self.assertEqual(complete("millrace task list --state "), [])
        self.assertEqual(complete("millrace cluster plan --simulate millrace.b"), ["millrace.bash"])
        self.assertEqual(complete("millrace run --plugins millrace.b"), [])

    def test_the_shells_can_read_it(self):
        for shell, file in (("bash", "millrace.bash"), ("zsh", "_millrace"), ("fish", "millrace.fish")):
            subprocess.run([shell, "-n", self.folder / file], check=True)
            printed = output(MILLRACE, "completion", shell)
            self.assertEqual(printed.rstrip("\n"), (self.folder / file).read_text().rstrip("\n"))
        for path in self.commands:
            for file in ("millrace.bash", "_millrace", "millrace.fish"):
                self.assertIn(" ".join(("millrace", *path)), (self.folder / file).read_text())


if __name__ == "__main__":
    unittest.main()
