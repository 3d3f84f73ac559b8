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


def value(series, name, default=None, **labels):
    """A series that is not told is an error unless there is a default."""
    found = series.get((name, frozenset(labels.items())), default)
    assert found is not None, f"{name} {labels} is not told"
    return found


def of_type(series, name):
    return sum(number for (one, _), number in series.items() if one == name)
