"""When cron expressions fire: a second implementation, by Python's zoneinfo, minute by minute.

It shares nothing with the product but the zones' files and the rules of framework/schedule/timing.h: of each minute of an hour
in which the clock changes it is asked what the clock shows and whether it shows that for the second time, and what it skipped
since the minute before; in any other hour the clock goes on by minutes.
"""
import datetime
import zoneinfo

A_MINUTE = datetime.timedelta(minutes=1)
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


class Clock:
    """What a zone's clock shows at an instant, as a time without a zone, and whether it shows that for the second time."""

    def __init__(self, name):
        self.zone = zoneinfo.ZoneInfo(name)

    def at(self, instant):
        shown = datetime.datetime.fromtimestamp(instant, self.zone)
        return shown.replace(tzinfo=None, fold=0), shown.fold == 1

    def goes_steadily(self, first, last):
        """Whether from `first` to `last` it shows each minute once and leaves none out: they are less than two changes apart."""
        shown, again = self.at(first)
        shown_last, again_last = self.at(last)
        return not again and not again_last and (shown_last - shown).total_seconds() == last - first


def firings(name, texts, begin, end):
    """For each expression the instants from `begin` on, a whole minute, and before `end`, whole hours later, at which it fires."""
    clock = Clock(name)
    expressions = [Expression(text) for text in texts]
    fired = [[] for _ in expressions]
    for hour in range(begin, end, 3600):
        steadily = clock.goes_steadily(hour - 60, hour + 3540)
        look_at = plain_hour if steadily else odd_hour
        for expression, instants in zip(expressions, fired):
            instants.extend(look_at(clock, expression, hour))
    return fired


def plain_hour(clock, expression, hour):
    shown, _ = clock.at(hour)
    if shown.hour not in expression.hours and (shown + 59 * A_MINUTE).hour not in expression.hours:
        return
    for later in sorted((minute - shown.minute) % 60 for minute in expression.minutes):
        if expression.fits(shown + later * A_MINUTE):
            yield hour + 60 * later


def odd_hour(clock, expression, hour):
    before, _ = clock.at(hour - 60)
    for instant in range(hour, hour + 3600, 60):
        shown, second_time = clock.at(instant)
        skipped = []
        at = before + A_MINUTE
        while at < shown:
            skipped.append(at)
            at += A_MINUTE
        before = shown
        fires = expression.fits(shown)
        if fires and second_time and expression.names_time:
            fires = False
        if not fires and skipped and expression.names_hours:
            fires = any(expression.fits(one) for one in skipped)
        if fires:
            yield instant
