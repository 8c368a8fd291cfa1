"""Draw the graphs of the examples into docs/pictures, or check that the pictures are fresh.

    python scripts/make_pictures.py            draw them
    python scripts/make_pictures.py --check    exit 1 if one differs from what would be drawn

A picture is made from the definition alone: nodes stand where their positions say, and further right or further
down where they would overlap. Nodes without positions stand in the order of the edges. A container is a box around
its nodes, a middleware a frame around its host, a map a stack. Large examples are not drawn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = ROOT / "examples"
FOLDER: Final = ROOT / "docs" / "pictures"
MOST_NODES: Final = 40

LEAST_WIDTH: Final = 120
HEAD: Final = 46  # label and type
LINE: Final = 15  # each line below them
GAP_X: Final = 52
GAP_Y: Final = 22
PAD: Final = 22  # around the nodes of a container
FRAME: Final = 7  # of a middleware: sides and bottom
FRAME_TOP: Final = 19
STACK: Final = 5  # of a map
MARGIN: Final = 24

STYLE: Final = """\
svg { color: #1f2328; --back: #fff; --box: #f6f8fa; --soft: #59636e; --line: #818b98; --bad: #b42318; --undo: #8250df; }
@media (prefers-color-scheme: dark) {
  svg { color: #f0f6fc; --back: #0d1117; --box: #1c2128; --soft: #9aa4b0; --line: #7d8590; }
  svg { --bad: #ff8a80; --undo: #c297ff; }
}
text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.label { font-size: 13px; font-weight: 600; fill: currentColor; }
.back { fill: var(--back); }
.box { fill: var(--box); stroke: var(--line); }
.group { fill: var(--back); stroke: var(--line); }
.frame { fill: none; stroke: currentColor; }
.off { stroke-dasharray: 4 3; opacity: 0.6; }
.wire { fill: none; stroke: var(--line); stroke-width: 1.5; }
.error { stroke: var(--bad); stroke-dasharray: 6 4; }
.undo { stroke: var(--undo); stroke-dasharray: 2 4; }
.name { paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round; }
.condition { font-style: italic; }"""

Json = dict[str, Any]


def width_of(text: str, size: float = 11) -> float:
    """About how wide a text is: fonts differ, so rather too much."""
    return len(text) * size * 0.56


def short(text: str, most: int = 34) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass
class Box:
    """A node in the picture. x, y: its left upper corner, with everything that surrounds it."""

    node: Json
    notes: list[str]
    wrappers: list[Json]
    children: list[Box] = field(default_factory=list)
    x: float = 0
    y: float = 0
    inner_width: float = 0
    inner_height: float = 0
    outputs: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.node["id"])

    @property
    def label(self) -> str:
        return str(self.node.get("label") or self.node["type"])

    @property
    def is_map(self) -> bool:
        return "map" in self.node

    @property
    def side(self) -> float:
        return len(self.wrappers) * FRAME

    @property
    def top(self) -> float:
        return len(self.wrappers) * FRAME_TOP + (STACK if self.is_map else 0)

    @property
    def width(self) -> float:
        return self.inner_width + 2 * self.side + (STACK if self.is_map else 0)

    @property
    def height(self) -> float:
        return self.inner_height + self.top + self.side

    @property
    def left(self) -> float:
        return self.x + self.side

    @property
    def right(self) -> float:
        return self.left + self.inner_width

    @property
    def upper(self) -> float:
        return self.y + self.top

    @property
    def lower(self) -> float:
        return self.upper + self.inner_height

    def measure(self) -> None:
        """The size of the box itself, when its children stand where they stand."""
        texts = [width_of(self.label, 15.5), width_of(self.node["type"])]
        texts += [width_of(note) for note in self.notes]
        self.inner_width = max(LEAST_WIDTH, max(texts) + 24)
        self.inner_height = HEAD + LINE * len(self.notes)
        ports = max(len(self.outputs), len(self.inputs))
        self.inner_height = max(self.inner_height, ports * 18 + 6)
        if self.children:
            right = max(one.x + one.width for one in self.children)
            bottom = max(one.y + one.height for one in self.children)
            ends = max((width_of(one) for one in self.inputs), default=0)
            self.inner_width = max(self.inner_width, right + 2 * PAD + ends + 20)
            self.inner_height += bottom + PAD

    def move(self, x: float, y: float) -> None:
        """From a place inside of its container to one in the picture."""
        self.x, self.y = self.x + x, self.y + y
        below = (
            self.inner_height - max(one.y + one.height for one in self.children) - PAD
            if self.children
            else 0
        )
        for one in self.children:
            one.move(self.left + PAD, self.upper + below)

    def anchor(self, ports: Sequence[str], port: str) -> float:
        """The height at which the wires of a port end."""
        height = HEAD if not self.children else self.inner_height
        step = max(height, len(ports) * 18 + 6) / (len(ports) + 1)
        return self.upper + step * (ports.index(port) + 1)


@dataclass
class Wire:
    """A line from one box to another, with what is written at its start, its middle and its end."""

    kind: str
    start: tuple[float, float]
    end: tuple[float, float]
    names: tuple[str, str, str]
    is_down: bool = False

    def line(self) -> str:
        (x, y), (end_x, end_y) = self.start, self.end
        if self.is_down:
            bend, end_y = max(20, abs(end_y - y) / 2), end_y - 3
            points = (x, y + bend, end_x, end_y - bend, end_x, end_y)
        else:
            bend, end_x = max(24, abs(end_x - x) / 2), end_x - 3
            points = (x + bend, y, end_x - bend, end_y, end_x, end_y)
        curve = " ".join(f"{one:.1f}" for one in points)
        return f'<path class="wire {self.kind}" marker-end="url(#{self.kind})" d="M{x:.1f} {y:.1f} C{curve}"/>'

    def texts(self) -> Iterable[str]:
        (x, y), (end_x, end_y) = self.start, self.end
        first, middle, last = self.names
        if first:
            yield written(x + 6, y - 4, first, "name")
        if last:
            yield written(end_x - 9 - width_of(last), end_y - 4, last, "name")
        if middle and self.is_down:
            yield written((x + end_x) / 2 + 8, (y + end_y) / 2 + 4, middle, "name")
        elif middle:
            text = short(middle)
            left, height = (x + end_x - width_of(text)) / 2, (y + end_y) / 2
            yield written(left, height - 4, text, "name condition")


class Picture:
    """The picture of one definition."""

    def __init__(self, definition: Json, names: Mapping[str, str]) -> None:
        self.definition = definition
        nodes = {str(node["id"]): node for node in definition["nodes"]}
        wrapping = {one for node in nodes.values() for one in node.get("middlewares", ())}
        self.boxes = {
            key: Box(
                node, notes_of(node, names), [nodes[one] for one in node.get("middlewares", ())]
            )
            for key, node in nodes.items()
            if key not in wrapping
        }
        self.parents = {
            key: str(box.node["parent"]) for key, box in self.boxes.items() if "parent" in box.node
        }
        self.edges: list[Json] = definition.get("edges", [])
        for child, parent in self.parents.items():
            self.boxes[parent].children.append(self.boxes[child])
        self.top = [box for key, box in self.boxes.items() if key not in self.parents]
        self._place(self.top)
        for box in self.top:
            box.move(MARGIN, MARGIN)

    # -- where everything stands ---------------------------------------------------------------

    def _place(self, boxes: list[Box]) -> None:
        for box in boxes:
            if box.children:
                self._place(box.children)
        if any("position" not in box.node for box in boxes):
            self._place_by_edges(boxes)
        else:
            left = min(box.node["position"]["x"] for box in boxes)
            upper = min(box.node["position"]["y"] - box.top for box in boxes)
            for box in boxes:
                box.x = box.node["position"]["x"] - left
                box.y = box.node["position"]["y"] - box.top - upper
        for box in boxes:
            self._take_ports(box)
            box.measure()
        self._spread(boxes)

    def _place_by_edges(self, boxes: list[Box]) -> None:
        """Each node one column after the last one that leads to it."""
        ranks = {box.id: 0 for box in boxes}
        for _ in boxes:
            for edge in self.edges:
                source, target = edge["source"]["node"], edge["target"]["node"]
                if source in ranks and target in ranks:
                    ranks[target] = max(ranks[target], ranks[source] + 1)
        columns: dict[int, list[Box]] = {}
        for box in boxes:
            columns.setdefault(ranks[box.id], []).append(box)
        tallest = max(len(column) for column in columns.values())
        for rank, column in columns.items():
            for row, box in enumerate(column):
                box.x, box.y = rank * 200, (row + (tallest - len(column)) / 2) * 80

    def _take_ports(self, box: Box) -> None:
        def height(key: str) -> float:
            other = self.boxes.get(key)
            return float(other.node.get("position", {}).get("y", 0)) if other else 0.0

        def ports(mine: str, other: str, default: str) -> list[str]:
            found = [
                (height(edge[other]["node"]), place, edge[mine].get("port") or default)
                for place, edge in enumerate(self.edges)
                if edge[mine]["node"] == box.id
            ]
            names = [name for _, _, name in sorted(found)]
            return list(dict.fromkeys(names))

        box.outputs = ports("source", "target", "done")
        box.inputs = ports("target", "source", "trigger")

    def _spread(self, boxes: list[Box]) -> None:
        """Move columns to the right and the boxes of a column down, where they would overlap."""
        columns: dict[float, list[Box]] = {}
        for box in boxes:
            columns.setdefault(box.x, []).append(box)
        free = 0.0
        for authored in sorted(columns):
            column = sorted(columns[authored], key=lambda one: one.y)
            start = max(authored, free)
            lowest = 0.0
            for box in column:
                box.x, box.y = start, max(box.y, lowest)
                lowest = box.y + box.height + GAP_Y
            free = max(box.x + box.width + self._gap(box) for box in column)

    def _gap(self, box: Box) -> float:
        """What the names at the wires behind a box need."""
        widest: float = GAP_X
        for edge in self.edges:
            if edge["source"]["node"] == box.id:
                names = named(edge["source"], "done"), named(edge["target"], "trigger")
                texts = [*names, edge.get("when", "")]
                widest = max(widest, sum(width_of(one) for one in texts) + 12 * 3)
        return widest

    # -- drawing -------------------------------------------------------------------------------

    def draw(self) -> str:
        body = [line for box in self.top for line in self._drawn(box)]
        wires = [self._wire(edge) for edge in self.edges]
        wires += [wire for box in self.boxes.values() for wire in self._undoing(box)]
        body += [wire.line() for wire in wires]
        body += dict.fromkeys(text for wire in wires for text in wire.texts())
        width = max(box.x + box.width for box in self.top) + MARGIN
        bottom = max(box.y + box.height for box in self.top) + MARGIN
        for caption in captions_of(self.definition):
            body.append(written(MARGIN, bottom + 4, caption))
            width = max(width, width_of(caption) + 2 * MARGIN)
            bottom += LINE + 3
        if captions_of(self.definition):
            bottom += 8
        name = escape(self.definition["metadata"]["name"])
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{bottom:.0f}"'
                f' viewBox="0 0 {width:.0f} {bottom:.0f}" role="img">',
                f"<title>{name}</title>",
                f"<style>\n{STYLE}\n</style>",
                "<defs>",
                *(arrow(name, color) for name, color in ARROWS.items()),
                "</defs>",
                '<rect class="back" width="100%" height="100%"/>',
                *body,
                "</svg>",
                "",
            ]
        )

    def _drawn(self, box: Box) -> Iterable[str]:
        kind = "group" if box.children else "box"
        if box.node.get("disabled"):
            kind += " off"
        left, upper, width = box.left, box.upper, box.inner_width
        for depth, wrapper in enumerate(reversed(box.wrappers), start=1):
            side, top = depth * FRAME, depth * FRAME_TOP
            yield rect(
                "frame", left - side, upper - top, width + 2 * side, box.inner_height + top + side
            )
            said = f"{wrapper.get('label') or ''} · {wrapper['type']}"
            yield written(left - side + 8, upper - top + 14, short(said))
        for behind in (STACK, STACK / 2) if box.is_map else ():
            yield rect(kind, left + behind, upper - behind, width, box.inner_height)
        yield rect(kind, left, upper, width, box.inner_height)
        yield written(left + 12, upper + 20, box.label, "label")
        yield written(left + 12, upper + 36, box.node["type"])
        for row, note in enumerate(box.notes, start=1):
            yield written(left + 12, upper + 36 + row * LINE, note)
        for child in box.children:
            yield from self._drawn(child)

    def _wire(self, edge: Json) -> Wire:
        source, target = self.boxes[edge["source"]["node"]], self.boxes[edge["target"]["node"]]
        out, into = edge["source"].get("port") or "done", edge["target"].get("port") or "trigger"
        wire = Wire(
            "error" if out == "error" else "plain",
            (source.x + source.width, source.anchor(source.outputs, out)),
            (target.x, target.anchor(target.inputs, into)),
            (named(edge["source"], "done"), edge.get("when", ""), named(edge["target"], "trigger")),
        )
        if self._is_inside(source, target):  # what leaves a container
            wire.end = (target.right, target.anchor([into], into))
        elif self._is_inside(target, source):  # what comes in
            wire.start = (source.left, source.anchor(source.outputs, out))
        elif target.x < source.x + source.width and target.y > source.y:  # one below the other
            wire.is_down = True
            wire.start, wire.end = (
                (source.left + 24, source.lower),
                (target.left + 24, target.upper),
            )
        return wire

    def _is_inside(self, box: Box, container: Box) -> bool:
        here: str | None = self.parents.get(box.id)
        while here is not None and here != container.id:
            here = self.parents.get(here)
        return here is not None

    def _undoing(self, box: Box) -> Iterable[Wire]:
        branches: dict[str, list[str]] = {}
        for setting in ("onFailure", "onCancel"):
            if setting in box.node:
                branches.setdefault(box.node[setting], []).append(setting)
        for first, names in branches.items():
            target = self.boxes[first]
            start, end = (box.left + 24, box.lower), (target.left + 24, target.upper)
            yield Wire("undo", start, end, ("", ", ".join(names), ""), is_down=True)


ARROWS: Final = {"plain": "--line", "error": "--bad", "undo": "--undo"}


def arrow(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8"'
        f' markerUnits="userSpaceOnUse" orient="auto"><path style="fill: var({color})" d="M0 0 L8 4 L0 8 z"/></marker>'
    )


def rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'


def written(x: float, y: float, text: str, kind: str = "") -> str:
    named_class = f' class="{kind}"' if kind else ""
    return f'<text{named_class} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def named(end: Json, usual: str) -> str:
    """The name of a port, where it says something."""
    port = end.get("port") or usual
    return "" if port == usual else str(port)


def notes_of(node: Json, names: Mapping[str, str]) -> list[str]:
    """What a node says about itself beyond its type. `names`: of workflows by their ids."""
    notes = []
    if "call" in node:
        called = node["call"]["workflowId"]
        notes.append(f"calls {names.get(called, called)}")
    over = node.get("map")
    if over is not None:
        notes.append(f"for each of {short(over['over'].removeprefix('='), 30)}")
        if "concurrency" in over:
            notes.append(f"at most {over['concurrency']} at once")
        if "failurePolicy" in over:
            notes.append(f"failures: {over['failurePolicy']}")
    if "when" in node:
        notes.append(f"when {short(node['when'], 28)}")
    if node.get("join", "all") != "all":
        notes.append(f"join: {node['join']}")
    if "retry" in node:
        notes.append(f"up to {node['retry']['maxAttempts']} attempts")
    if "timeoutSeconds" in node:
        notes.append(f"at most {node['timeoutSeconds']:g} s")
    if "resources" in node:
        notes.append(asked(node["resources"]))
    if "seconds" in node.get("wait", {}):
        notes.append(f"{node['wait']['seconds']:g} s")
    if "signal" in node:
        notes.append(f"signal: {node['signal']['name']}")
    return notes


def asked(resources: Json) -> str:
    words = []
    if "cpu" in resources:
        words.append(f"{resources['cpu']:g} cpu")
    if "memoryBytes" in resources:
        words.append(f"{resources['memoryBytes'] // 2**20} MiB")
    if "gpu" in resources:
        words.append(f"{resources['gpu']} gpu")
    return ", ".join(words)


def captions_of(definition: Json) -> list[str]:
    lines = []
    for word in ("inputs", "outputs"):
        if definition.get(word):
            lines.append(f"{word}: {', '.join(definition[word])}")
    for trigger in definition.get("triggers", ()):
        said = [trigger["type"], trigger.get("expression", ""), trigger.get("timeZone", "")]
        said.append("(disabled)" if trigger.get("disabled") else "")
        lines.append("trigger: " + " ".join(one for one in said if one))
    return lines


def pictures() -> dict[str, str]:
    """The pictures by the names of their files."""
    read = {path.stem: json.loads(path.read_text("utf-8")) for path in EXAMPLES.glob("*.json")}
    names = {one["id"]: one["metadata"]["name"] for one in read.values()}
    return {
        f"{stem}.svg": Picture(definition, names).draw()
        for stem, definition in sorted(read.items())
        if len(definition["nodes"]) <= MOST_NODES
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = pictures()
    present = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.svg")}
    if parser.parse_args().check:
        stale = [
            name for name in sorted({*wanted, *present}) if wanted.get(name) != present.get(name)
        ]
        for name in stale:
            print(
                f"docs/pictures/{name} is not what its example says: run `make docs`",
                file=sys.stderr,
            )
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in present:
        if name not in wanted:
            (FOLDER / name).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
