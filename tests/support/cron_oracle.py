"""When cron expressions fire: a second implementation, by Python's zoneinfo, minute by minute.

It shares nothing with the product but the zones' files and the rules of framework/schedule/timing.h: each minute is asked what
the clock shows and whether it shows that for the second time, and what it skipped since the minute before.
"""
import datetime
import zoneinfo

DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def numbers(field, least, most):
    """The numbers of a field; names, L and # are left to `day_fits`."""
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


def firings(name, texts, begin, end):
    """For each expression the instants from `begin` on and before `end`, both of whole minutes, at which it fires."""
    zone = zoneinfo.ZoneInfo(name)
    a_minute = datetime.timedelta(minutes=1)
    expressions = [Expression(text) for text in texts]
    fired = [[] for _ in expressions]
    both = list(zip(expressions, fired))
    by_minute = [[(one, instants) for one, instants in both if minute in one.minutes] for minute in range(60)]
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
    return fired
