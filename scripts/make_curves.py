"""Draw the curves of `python -m benchmarks load` into docs/curves, or check that they are those of the kept results.

python scripts/make_curves.py            draw them
python scripts/make_curves.py --check    exit 1 if they differ from benchmarks/results/load.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "benchmarks" / "results" / "load.json"
FILE: Final = ROOT / "docs" / "curves" / "load.svg"

WIDTH: Final = 360
HEIGHT: Final = 210
LEFT: Final = 52
RIGHT: Final = 14
TOP: Final = 46
LOWER: Final = 30
COLUMNS: Final = 2
STYLE: Final = """\
svg { color: #1f2328; --back: #fff; --soft: #59636e; --line: #d1d9e0; --one: #0969da; --other: #bc4c00; }
@media (prefers-color-scheme: dark) {
  svg { color: #f0f6fc; --back: #0d1117; --soft: #9aa4b0; --line: #3d444d; --one: #4493f8; --other: #f0883e; }
}
text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.title { font-size: 13px; font-weight: 600; fill: currentColor; }
.back { fill: var(--back); }
.grid { stroke: var(--line); }
.one, .other { fill: none; stroke-width: 2; }
.one { stroke: var(--one); }
.other { stroke: var(--other); }
circle.one, text.one { fill: var(--one); stroke: none; }
circle.other, text.other { fill: var(--other); stroke: none; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }"""


class Panel(NamedTuple):
    """One picture: what is on its axes, and which figures are its lines."""

    title: str
    axis: str
    """What a figure's name begins with, behind its number."""
    lines: Mapping[str, str]
    """What a figure's name says behind the axis, by what the line is called."""


PANELS: Final = (
    Panel("Workers that do nothing: % of a core", "workers", {"": "idle"}),
    Panel(
        "Fan-out over all: µs of processor time a node",
        "workers",
        {"": "processor time of a node of it"},
    ),
    Panel(
        "Readers of a tenant: ms until an event is seen",
        "readers",
        {
            "median": "an event is seen after, median",
            "99 of 100": "an event is seen after, 99 of 100",
        },
    ),
    Panel(
        "Waiting tasks: MiB of the scheduler", "waiting tasks", {"": "scheduler without workers"}
    ),
    Panel(
        "Waiting tasks: ms of a submission",
        "waiting tasks",
        {
            "median": "a submission when they are there, median",
            "99 of 100": "a submission when they are there, 99 of 100",
        },
    ),
    Panel(
        "While more come: ms of a submission",
        "waiting tasks",
        {
            "median": "a submission while they come, median",
            "99 of 100": "a submission while they come, 99 of 100",
        },
    ),
)


def points(
    figures: Iterable[Mapping[str, object]], axis: str, what: str
) -> list[tuple[int, float]]:
    found = []
    for figure in figures:
        place, colon, said = str(figure["name"]).partition(": ")
        number, _, unit = place.partition(" ")
        if colon and unit == axis and said == what:
            found.append((int(number.replace(",", "")), float(str(figure["value"]))))
    return sorted(found)


def ceiling(value: float) -> float:
    """The next round number: 1, 2 or 5 and zeros."""
    size = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.1
    return next(size * one for one in (1, 2, 5, 10) if size * one >= value)


def text(x: float, y: float, words: str, kinds: str = "") -> str:
    return f'<text class="{kinds}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def drawn(panel: Panel, figures: list[Mapping[str, object]], left: float, top: float) -> list[str]:
    lines = {name: points(figures, panel.axis, what) for name, what in panel.lines.items()}
    every = [point for line in lines.values() for point in line]
    if not every:
        raise SystemExit(f"make_curves: {RESULTS.name} has no figures of: {panel.title}")
    most_x, most_y = max(x for x, _ in every), ceiling(max(y for _, y in every))
    x0, x1 = left + LEFT, left + WIDTH - RIGHT
    y0, y1 = top + HEIGHT - LOWER, top + TOP

    def place(x: float, y: float) -> tuple[float, float]:
        return x0 + (x1 - x0) * x / most_x, y0 - (y0 - y1) * y / most_y

    found = [text(left + 8, top + 20, panel.title, "title")]
    for share in (0.0, 0.5, 1.0):
        _, y = place(0, most_y * share)
        found.append(f'<path class="grid" d="M{x0:.1f} {y:.1f} H{x1:.1f}"/>')
        found.append(text(x0 - 6, y + 4, f"{most_y * share:,g}", "end"))
    for x in sorted({x for x, _ in every}):
        found.append(text(place(x, 0)[0], y0 + 16, f"{x:,}", "end" if x == most_x else "middle"))
    for at, (kind, (name, line)) in enumerate(zip(("one", "other"), lines.items(), strict=False)):
        spots = [place(*point) for point in line]
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        found.append(f'<path class="{kind}" d="M{path}"/>')
        found += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in spots]
        found += [text(x1 - 80 * (len(lines) - 1 - at), top + 36, name, f"{kind} end")] * bool(name)
    return found


def picture() -> str:
    figures = json.loads(RESULTS.read_text("utf-8"))["figures"]
    rows = -(-len(PANELS) // COLUMNS)
    width, height = WIDTH * COLUMNS, HEIGHT * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>One scheduler under load</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
    ]
    for at, panel in enumerate(PANELS):
        row, column = divmod(at, COLUMNS)
        parts += drawn(panel, figures, column * WIDTH, row * HEIGHT)
    return "\n".join((*parts, "</svg>", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = picture()
    if parser.parse_args().check:
        if not FILE.exists() or FILE.read_text("utf-8") != wanted:
            print(f"{FILE.relative_to(ROOT)} is out of date: run `make docs`", file=sys.stderr)
            return 1
        return 0
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
