#!/usr/bin/python3
"""Draws the figures of a benchmark as bars with the range of their rounds: plot.py FILE.json … writes FILE.svg beside
each whose figures have one unit. Needs nothing but Python."""
import html
import json
import pathlib
import statistics
import sys

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 880, 280, 150, 22, 14, 64
INK, SOFT, FILL, MARK = "#1f2933", "#6b7785", "#4c86a8", "#c8553d"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def text(x, y, words, anchor="start", size=13, color=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}" '
            f'font-weight="{weight}">{html.escape(words)}</text>')


def draw(figures):
    series = figures["series"]
    ratios = figures.get("ratios", [])
    facts = [f"{what}: {value}" for what, value in figures.get("facts", {}).items()]
    bars_end = TOP + len(series) * (BAR + GAP)
    height = bars_end + 18 * (len(ratios) + len(facts)) + 30
    largest = max(max(one["values"]) for one in series)
    scale = (WIDTH - LEFT - RIGHT) / largest
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           f'font-family="sans-serif" role="img">', f'<title>{html.escape(figures["title"])}</title>',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>', text(16, 30, figures["title"], size=17, weight="bold"),
           text(16, 50, f'{figures["unit"]}; the median, and the range of all rounds', size=12, color=SOFT)]
    for place, one in enumerate(series):
        y = TOP + place * (BAR + GAP)
        middle, low, high = statistics.median(one["values"]), min(one["values"]), max(one["values"])
        ours = one["name"].lower().startswith(("millrace", "worker"))
        out += [text(LEFT - 10, y + 16, one["name"], anchor="end"),
                f'<rect x="{LEFT}" y="{y}" width="{max(1.0, middle * scale):.1f}" height="{BAR}" rx="2" '
                f'fill="{MARK if ours else FILL}"/>',
                f'<line x1="{LEFT + low * scale:.1f}" y1="{y + BAR / 2}" x2="{LEFT + high * scale:.1f}" y2="{y + BAR / 2}" '
                f'stroke="{INK}" stroke-width="1.5"/>',
                text(LEFT + high * scale + 8, y + 16, number(middle), weight="bold")]
    y = bars_end + 16
    for ratio in ratios:
        out.append(text(16, y, f'{ratio["name"]}: {ratio["median"]:.2f} ({ratio["low"]:.2f} to {ratio["high"]:.2f}, '
                               f'{100 * ratio["sure"]:.0f} % sure)', size=12, weight="bold"))
        y += 18
    for fact in facts:
        out.append(text(16, y, fact if len(fact) < 140 else fact[:139] + "…", size=11, color=SOFT))
        y += 18
    return "\n".join([*out, "</svg>"]) + "\n"


def main(files):
    if not files:
        sys.exit(__doc__)
    for name in files:
        path = pathlib.Path(name)
        figures = json.loads(path.read_text())
        if not figures["unit"]:  # of several: no scale fits them all
            continue
        path.with_suffix(".svg").write_text(draw(figures))
        print(f"{path.with_suffix('.svg')}")


if __name__ == "__main__":
    main(sys.argv[1:])
