"""A year of firings in twenty zones, compared with a second implementation: tests/support/cron_oracle.py.

Usage: year_test.py FIRINGS, the program that prints the product's answers.
"""
import datetime
import subprocess
import sys
import unittest

from cron_oracle import firings

# Half hours and quarters, two hours at once, a day left out, months without daylight saving in the middle of it, a change at
# midnight, a change of law.
YEARS = [
    ("Europe/Berlin", 2026), ("America/New_York", 2026), ("Australia/Lord_Howe", 2026), ("Asia/Kathmandu", 2026),
    ("Pacific/Apia", 2011), ("Antarctica/Troll", 2026), ("Africa/Casablanca", 2026), ("America/Sao_Paulo", 2018),
    ("Pacific/Chatham", 2026), ("America/St_Johns", 2026), ("Asia/Gaza", 2026), ("Europe/Dublin", 2026),
    ("Africa/Cairo", 2026), ("America/Havana", 2026), ("Asia/Beirut", 2026), ("Pacific/Kiritimati", 2026),
    ("America/Nuuk", 2023), ("Asia/Pyongyang", 2018), ("Europe/Volgograd", 2020), ("UTC", 2028),
]
EXPRESSIONS = [
    "*/15 * * * *", "30 2 * * *", "0 0 * * *", "15 * * * *", "0,30 0-3 * * *", "*/20 2 * * *", "0 */2 * * *",
    "59 23 * * 6", "0 9 1,15 * 1", "5 0 L * *", "45 1 * * SUN#1", "30 0 * 3,4,10,11 5L",
]


def begin_of(year):
    return int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())


class YearTest(unittest.TestCase):
    program = ""

    def test_a_year_in_twenty_zones(self):
        self.assertEqual(len({name for name, _ in YEARS}), 20)
        compared = 0
        for name, year in YEARS:
            begin, end = begin_of(year), begin_of(year + 1)
            expected = firings(name, EXPRESSIONS, begin, end)
            asked = "".join(f"{name}\t{begin}\t{end}\t{expression}\n" for expression in EXPRESSIONS)
            answer = subprocess.run([self.program], input=asked, capture_output=True, text=True, check=False)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            lines = answer.stdout.splitlines()
            self.assertEqual(len(lines), len(EXPRESSIONS))
            for expression, line, instants in zip(EXPRESSIONS, lines, expected):
                with self.subTest(zone=name, year=year, expression=expression):
                    said = [int(word) for word in line.split()]
                    self.assertTrue(instants)
                    odd = sorted(set(said) ^ set(instants))
                    self.assertEqual(odd, [], [datetime.datetime.fromtimestamp(one, datetime.timezone.utc).isoformat() for one in odd[:5]])
                    self.assertEqual(said, instants)
                    compared += len(instants)
        print(f"{compared} firings of {len(YEARS)} zones are the same")


if __name__ == "__main__":
    YearTest.program = sys.argv.pop(1)
    unittest.main()
