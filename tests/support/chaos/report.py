"""Writes the report of scripts/prove (Markdown) from the checks and the tests' results in a folder.

Usage: report.py FOLDER. Reads FOLDER/checks.jsonl and FOLDER/tests.xml; exits 1 if anything failed.
"""
import datetime
import json
import os
import pathlib
import platform
import sys
import xml.etree.ElementTree


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")[:400]


def verdict(holds):
    return "pass" if holds else "**FAIL**"


def table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"


def read_checks(folder):
    file = folder / "checks.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read_tests(folder):
    """(name, passed, seconds) of each test that ctest ran."""
    suite = xml.etree.ElementTree.parse(folder / "tests.xml").getroot()
    return [(test.get("name"), test.get("status") == "run", float(test.get("time", 0)))
            for test in suite.iter("testcase")]


def main():
    folder = pathlib.Path(sys.argv[1])
    checks, tests = read_checks(folder), read_tests(folder)
    failures = sum(not check["pass"] for check in checks) + sum(not passed for _, passed, _ in tests)
    print(f"# What was asked, what was measured\n\n{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, "
          f"{os.cpu_count()} cores, {platform.platform()}\n")
    print(f"{len(checks)} checks, {len(tests)} tests, {failures} failures.\n")
    print("\n".join(table(("scenario", "asked", "measured", "holds"), (
        (c["scenario"], c["asked"], c["measured"], verdict(c["pass"])) for c in checks))))
    print("\n## Tests\n")
    print("\n".join(table(("test", "seconds", "result"), (
        (name, f"{seconds:.1f}", verdict(passed)) for name, passed, seconds in sorted(tests)))))
    sys.exit(1 if failures or not tests else 0)


if __name__ == "__main__":
    main()
