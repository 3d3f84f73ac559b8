"""Writes the report of scripts/prove (Markdown) from what its groups have left in a folder.

Usage: report.py FOLDER GROUP... The folder has `commit`, and for each group that was run a folder of its name with
tests.xml (the tests' results, which quickstart has not), checks.jsonl (what was asked and measured, where its tests say
so) and seconds, which one that was cut off has not. Exits 1 if anything failed in a group that was run, or it left no
results.
"""
import datetime
import json
import os
import pathlib
import platform
import sys
import xml.etree.ElementTree

LONGEST = 3600  # seconds
WITHOUT_TESTS = ("quickstart",)


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")[:400]


def verdict(holds):
    return "pass" if holds else "**FAIL**"


def table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"


class Group:
    """What one group has left; `ran` is false where there is nothing of it."""

    def __init__(self, folder, name):
        self.name = name
        folder = folder / name
        self.ran = folder.is_dir()
        checks, tests, seconds = folder / "checks.jsonl", folder / "tests.xml", folder / "seconds"
        self.checks = [json.loads(line) for line in checks.read_text().splitlines()] if checks.exists() else []
        # (name, passed, seconds)
        self.tests = [(test.get("name"), test.get("status") == "run", float(test.get("time", 0)))
                      for test in xml.etree.ElementTree.parse(tests).getroot().iter("testcase")] if tests.exists() else []
        self.seconds = int(seconds.read_text()) if seconds.exists() else None  # None: cut off

    def failures(self):
        return sum(not check["pass"] for check in self.checks) + sum(not passed for _, passed, _ in self.tests)

    def holds(self):
        results = self.checks if self.name in WITHOUT_TESTS else self.tests
        return self.seconds is not None and self.seconds <= LONGEST and bool(results) and not self.failures()

    def row(self):
        if not self.ran:
            return self.name, "", "", "", "", "**not run**"
        took = "cut off" if self.seconds is None else f"{self.seconds / 60:.0f} min"
        return self.name, took, len(self.checks), len(self.tests), self.failures(), verdict(self.holds())


def report(folder, names):
    """(the text's lines, whether all that was run holds)."""
    groups = [Group(folder, name) for name in names]
    ran = [group for group in groups if group.ran]
    lines = [f"# What was asked, what was measured\n\n{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, "
             f"{os.cpu_count()} cores, {platform.platform()}, commit {(folder / 'commit').read_text().strip()}\n",
             f"{len(ran)} of {len(groups)} groups were run.\n",
             *table(("group", "took", "checks", "tests", "failures", "holds"), (group.row() for group in groups))]
    for group in ran:
        lines.append(f"\n## {group.name}\n")
        if group.checks:
            lines += table(("scenario", "asked", "measured", "holds"), (
                (c["scenario"], c["asked"], c["measured"], verdict(c["pass"])) for c in group.checks))
            lines.append("")
        if group.tests:
            lines += table(("test", "seconds", "result"), (
                (name, f"{seconds:.1f}", verdict(passed)) for name, passed, seconds in sorted(group.tests)))
    return lines, bool(ran) and all(group.holds() for group in ran)


def main():
    lines, holds = report(pathlib.Path(sys.argv[1]), sys.argv[2:])
    print("\n".join(lines))
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
