"""The pictures of the examples: each shows all that its definition has, nothing on top of something else."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.processes.process import ROOT

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
GUIDES = [
    "inputs",
    "conditions",
    "compensation",
    "middleware",
    "containers",
    "maps",
    "waits",
    "expressions",
    "triggers",
    "versions",
    "rerun",
    "placement",
    "large-results",
    "python",
    "local",
]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_shows_its_definition(picture: Path) -> None:
    definition = json.loads((ROOT / "examples" / f"{picture.stem}.json").read_text("utf-8"))
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    texts = [one.text or "" for one in root.iter(f"{SVG}text")]
    wires = [one for one in root.iter(f"{SVG}path") if "wire" in one.get("class", "")]
    branches = {
        (node["id"], node[name])
        for node in definition["nodes"]
        for name in ("onFailure", "onCancel")
        if name in node
    }
    assert len(wires) == len(definition["edges"]) + len(branches)
    for node in definition["nodes"]:
        assert any(text.startswith(node["label"]) for text in texts), node["label"]
        assert any(text.endswith(node["type"]) for text in texts)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_no_two_nodes_of_a_picture_overlap(picture: Path) -> None:
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    boxes = {
        tuple(float(one.get(name, "0")) for name in ("x", "y", "width", "height"))
        for one in root.iter(f"{SVG}rect")
        if one.get("class", "").startswith("box")
    }
    # The sheets of a map lie behind one another.
    sizes = (float(root.get("width", "0")), float(root.get("height", "0")))
    for x, y, width, height in boxes:
        assert min(x, y) >= 0
        assert x + width <= sizes[0]
        assert y + height <= sizes[1]
    for one, other in combinations(sorted(boxes), 2):
        is_sheet = one[2:] == other[2:] and abs(one[0] - other[0]) <= 5
        is_apart = any(
            one[axis] + one[axis + 2] <= other[axis] or other[axis] + other[axis + 2] <= one[axis]
            for axis in (0, 1)
        )
        assert is_sheet or is_apart, (one, other)


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_shows_a_picture_that_is_there(guide: str) -> None:
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text("utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(\.\./pictures/([a-z-]+\.svg)\)", text)
    assert shown
    assert set(shown) <= {picture.name for picture in PICTURES}
