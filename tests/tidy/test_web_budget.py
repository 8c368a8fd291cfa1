"""How much a browser loads before it shows something."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

DIST = Path(__file__).parents[2] / "src" / "astraflow" / "web" / "dist"
MAX_JS_BYTES = 300 * 1024
MAX_CSS_BYTES = 60 * 1024

STATIC_IMPORT = re.compile(
    r"""(?:^|[;}\s])(?:import|export)\s*(?:[^"'();]*?from\s*)?["']\./([^"']+\.js)["']"""
)
"""Of a built module; `import(...)` is loaded later."""


def entry() -> Path:
    found = re.search(
        r'<script type="module"[^>]*src="/([^"]+)"', (DIST / "index.html").read_text()
    )
    assert found is not None, "the page has no script"
    return DIST / found[1]


def reached_from(start: Path) -> set[Path]:
    """A module, and all that it imports before it runs."""
    seen: set[Path] = set()
    open_ones = [start]
    while open_ones:
        module = open_ones.pop()
        if module in seen:
            continue
        seen.add(module)
        names = STATIC_IMPORT.findall(module.read_text())
        open_ones.extend(module.parent / name for name in names)
    return seen


def gzipped(files: set[Path]) -> int:
    return sum(len(gzip.compress(one.read_bytes(), 6)) for one in files)


def page_chunk(name: str) -> Path:
    (found,) = DIST.glob(f"assets/{name}-*.js")
    return found


def test_the_first_page_is_within_its_budget() -> None:
    """The frame and the list of workflows, which a login leads to."""
    modules = reached_from(entry()) | reached_from(page_chunk("WorkflowsPage"))
    assert len(modules) > 5, "the imports were not found"
    assert gzipped(modules) <= MAX_JS_BYTES


def test_the_styles_are_within_their_budget() -> None:
    page = (DIST / "index.html").read_text()
    styles = {DIST / one for one in re.findall(r'<link rel="stylesheet"[^>]*href="/([^"]+)"', page)}
    assert styles
    assert gzipped(styles) <= MAX_CSS_BYTES
