"""What a worker tells at /metrics, by name and labels."""
import re
import urllib.request

SERIES = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')


def scrape(port):
    """Every series with its value, and the text."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    series = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = SERIES.match(line).groups()
            series[(name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels or "")))] = float(value)
    return series, text


def value(series, name, **labels):
    return series.get((name, frozenset(labels.items())), 0)


def of_type(series, name):
    return sum(number for (one, _), number in series.items() if one == name)
