"""What benchmarks in Python tell their figures by; the file is the one that figures.cc writes, which plot.py draws."""
import datetime
import json
import math
import os
import platform
import statistics

SURE_ENOUGH = 0.9


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median_interval(values):
    """(low, high, how probable it is): between which values the median lies, whatever the distribution."""
    ordered, count = sorted(values), len(values)

    def tail(below):
        return sum(math.comb(count, i) for i in range(below)) * 0.5 ** count

    cut = 1
    while 2 * (cut + 1) <= count and 1 - 2 * tail(cut + 1) >= SURE_ENOUGH:
        cut += 1
    return ordered[cut - 1], ordered[count - cut], max(0.0, 1 - 2 * tail(cut))


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024 ** 3
    return f"{os.cpu_count()} cores of {model}, {memory} GiB, {platform.system()} {platform.release()}"


def short(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.0f}" if value >= 100 else f"{value:.2f}"


class Figures:
    """Series have a value for each round; a ratio is taken round by round."""

    def __init__(self, name, title, unit):
        self.name, self.title, self.unit = name, title, unit
        self.facts = {"machine": machine()}
        self.series = {}
        self.ratios = {}

    def add(self, series, value):
        self.series.setdefault(series, []).append(value)

    def compare(self, what, series, other):
        self.ratios[what] = [a / b for a, b in zip(self.series[series], self.series[other])]

    def table(self):
        lines = [(what, value) for what, value in self.facts.items()]
        for rows, unit in ((self.series, " " + self.unit), (self.ratios, "")):
            for name, values in rows.items():
                if len(values) == 1:
                    lines.append((name, f"{short(values[0])}{unit}  (one round)"))
                    continue
                low, high, sure = median_interval(values)
                lines.append((name, f"{short(statistics.median(values))}{unit}  ({short(low)} to {short(high)}, "
                                    f"{100 * sure:.0f} % sure; {len(values)} rounds)"))
        width = max(len(what) for what, _ in lines)
        return "\n".join([self.title, *(f"{what:{width}}  {value}" for what, value in lines)])

    def write(self, path):
        if not path:
            return
        ratios = []
        for name, values in self.ratios.items():
            low, high, sure = median_interval(values)
            ratios.append({"name": name, "values": values, "median": statistics.median(values), "low": low, "high": high,
                           "sure": sure})
        with open(path, "w") as file:
            json.dump({"name": self.name, "title": self.title, "unit": self.unit,
                       "at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "facts": self.facts,
                       "series": [{"name": name, "values": values} for name, values in self.series.items()],
                       "ratios": ratios}, file, indent=2)
            file.write("\n")
