"""A year of firings in twenty zones, compared with a second implementation: Python's zoneinfo, minute by minute.

It shares nothing with the product but the zones' files and the rules of framework/schedule/timing.h: each minute of the year
is asked what the clock shows and whether it shows that for the second time, and what it skipped since the minute before.
Usage: year_test.py FIRINGS, the program that prints the product's answers.
"""
import datetime
import subprocess
import sys
import unittest
import zoneinfo

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
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def numbers(field, least, most):
    """The numbers of a field of EXPRESSIONS; names, L and # are left to `day_fits`."""
    found = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            found.update(range(least, most + 1, int(step or 1)))
        elif span.replace("-", "").isdigit():
            first, _, last = span.partition("-")
            found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


class Expression:
    def __init__(self, text):
        self.text = text
        self.fields = text.split(" ")
        minute, hour, _, month, _ = self.fields
        self.minutes, self.hours, self.months = numbers(minute, 0, 59), numbers(hour, 0, 23), numbers(month, 1, 12)
        self.days, self.weekdays = numbers(self.fields[2], 1, 31), numbers(self.fields[4], 0, 6)
        self.names_hours = not hour.startswith("*")
        self.names_time = self.names_hours and not minute.startswith("*")
        self.of_days = {}

    def day_fits(self, date):
        if date not in self.of_days:
            self.of_days[date] = self.find_day(date)
        return self.of_days[date]

    def find_day(self, date):
        if date.month not in self.months:
            return False
        weekday = date.isoweekday() % 7
        week_from_now = date + datetime.timedelta(7)
        by_day = date.day in self.days or (self.fields[2] == "L" and (date + datetime.timedelta(1)).day == 1)
        by_weekday = weekday in self.weekdays
        if self.fields[4].endswith("L"):
            by_weekday = weekday == int(self.fields[4][:-1]) and week_from_now.month != date.month
        if "#" in self.fields[4]:
            name, number = self.fields[4].split("#")
            by_weekday = DAYS[weekday] == name and (date.day - 1) // 7 + 1 == int(number)
        if self.fields[2][0] == "*" or self.fields[4][0] == "*":
            return by_day and by_weekday
        return by_day or by_weekday

    def fits(self, shown):
        return shown.minute in self.minutes and shown.hour in self.hours and self.day_fits(shown.date())


def firings_of_year(name, year):
    """For each expression the instants at which it fires, by looking at every minute of the year."""
    zone = zoneinfo.ZoneInfo(name)
    a_minute = datetime.timedelta(minutes=1)
    expressions = [Expression(text) for text in EXPRESSIONS]
    fired = [[] for _ in expressions]
    both = list(zip(expressions, fired))
    by_minute = [[(one, instants) for one, instants in both if minute in one.minutes] for minute in range(60)]
    begin = int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    end = int(datetime.datetime(year + 1, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    before = datetime.datetime.fromtimestamp(begin - 60, zone).replace(tzinfo=None, fold=0)
    for instant in range(begin, end, 60):
        shown = datetime.datetime.fromtimestamp(instant, zone)
        second_time = shown.fold == 1
        shown = shown.replace(tzinfo=None, fold=0)
        skipped = []
        at = before + a_minute
        while at < shown:
            skipped.append(at)
            at += a_minute
        before = shown
        for expression, instants in both if skipped else by_minute[shown.minute]:
            fires = expression.fits(shown)
            if fires and second_time and expression.names_time:
                fires = False
            if not fires and skipped and expression.names_hours:
                fires = any(expression.fits(one) for one in skipped)
            if fires:
                instants.append(instant)
    return begin, end, fired


class YearTest(unittest.TestCase):
    program = ""

    def test_a_year_in_twenty_zones(self):
        self.assertEqual(len({name for name, _ in YEARS}), 20)
        compared = 0
        for name, year in YEARS:
            begin, end, expected = firings_of_year(name, year)
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
