"""One word, one thing: a class name, a word of the glossary and a retired word, each shown to be found."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from tests.tidy.rules import ROOT, Source, tracked, words_of

GLOSSARY = ROOT / "docs" / "glossary.md"

SHARED_CLASS_NAMES = {
    "Cancelled": "the SDK's public exception for a node's code, and the state of a task that it leads to",
}
"""Class names that two classes may have, with the reason."""

RETIRED = frozenset(
    [
        "wish",
        "wishes",
        "story",
        "stories",
        "lobby",
        "hub",
        "pulse",
        "depot",
        "crew",
        "ledger",
        "shelf",
        "shelves",
        "custody",
        "keeper",
        "telling",
        "endings",
        "moments",
        "moment",
        "alarm",
        "stir",
        "settle",
        "holding",
        "holdings",
        "turned_away",
        "left_overs",
        "leftovers",
        "take_up",
    ]
)
"""Words that once named parts of the product. The field's words have replaced them."""

REST_NAMES = frozenset({"story"})
"""The timeline of a node is called so in the API, and the command line follows the API."""
REST_FILES = frozenset(
    {
        "src/astraflow/api/run_routes.py",
        "src/astraflow/cli/follow.py",
        "src/astraflow/cli/runs.py",
        "src/astraflow/core/contract/runs.py",
    }
)


def test_a_class_name_is_used_once() -> None:
    assert shared_class_names(product()) == []


def test_an_exception_from_the_class_names_is_still_needed() -> None:
    used = Counter(name for source in product() for name in class_names(source))
    assert [name for name in SHARED_CLASS_NAMES if used[name] < 2] == []


def test_a_class_name_that_is_used_twice_is_found() -> None:
    sources = [
        Source("src/astraflow/core/runs/a.py", "class Lease: ...\n"),
        Source("sdk/src/astraflow_sdk/b.py", "def f():\n    class Lease: ...\n"),
        Source("src/astraflow/core/runs/c.py", "class Cancelled: ...\n"),
        Source("sdk/src/astraflow_sdk/d.py", "class Cancelled: ...\n"),
    ]
    assert shared_class_names(sources) == [
        "Lease: sdk/src/astraflow_sdk/b.py, src/astraflow/core/runs/a.py"
    ]


def test_a_word_of_the_glossary_is_defined_once() -> None:
    text = GLOSSARY.read_text()
    assert len(defined_words(text)) > 50, "the words are found"
    assert defined_twice(text) == []


def test_a_word_that_is_defined_twice_is_found() -> None:
    text = "| **lease** | a right; **fence**: an end |\n| **Lease** | another thing |\n"
    assert defined_twice(text) == ["lease"]


def test_retired_words_do_not_come_back() -> None:
    assert [found for source in product() for found in retired(source)] == []


def test_a_retired_word_is_found() -> None:
    offenders = [
        ("src/astraflow/scheduler/depot.py", ""),
        ("src/astraflow/scheduler/wishes/rows.py", ""),
        ("src/astraflow/core/runs/a.py", "class WorkerHub: ...\n"),
        ("src/astraflow/core/runs/a.py", "def take_up_runs(): ...\n"),
        ("src/astraflow/core/runs/a.py", "async def f(crew): ...\n"),
        ("src/astraflow/core/runs/a.py", "self._ledger = 1\n"),
        ("src/astraflow/core/runs/a.py", "ALARM_S = 1\n"),
        ("src/astraflow/core/runs/a.py", "story = 1\n"),
        ("sdk/src/astraflow_sdk/a.py", "class A:\n    holdings: int\n"),
    ]
    assert [len(retired(Source(*one))) for one in offenders] == [1] * len(offenders)


def test_innocent_words_are_not_found() -> None:
    innocent = [
        ("src/astraflow/core/contract/runs.py", "class A:\n    story: list[str]\n"),
        ("src/astraflow/core/runs/a.py", "settled_intents = history = 1\n"),
        ("src/astraflow/core/runs/a.py", "def take(up): ...\nshutil.rmtree(GitHub)\n"),
    ]
    assert [retired(Source(*one)) for one in innocent] == [[]] * len(innocent)


def shared_class_names(sources: Iterable[Source]) -> list[str]:
    """The class names that several modules define, with those modules."""
    places = defaultdict(list)
    for source in sources:
        for name in class_names(source):
            if not name.startswith("_") and name not in SHARED_CLASS_NAMES:
                places[name].append(source.name)
    return [
        f"{name}: {', '.join(sorted(where))}"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def class_names(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            yield node.name


def defined_words(glossary: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\*\*([^*]+)\*\*", glossary)]


def defined_twice(glossary: str) -> list[str]:
    return [word for word, times in Counter(defined_words(glossary)).items() if times > 1]


def retired(source: Source) -> list[str]:
    """The names of a module and of what it defines that have a retired word in them."""
    path = source.name.removesuffix(".py").split("/")
    names = {one for one in path if _has_retired_word(one)}
    names |= {one for one in _defined_names(source.tree) if _has_retired_word(one)}
    if source.name in REST_FILES:
        names -= REST_NAMES
    return [f"{source.name}: a retired word: {name}" for name in sorted(names)]


def _has_retired_word(name: str) -> bool:
    words = words_of(name)
    pairs = {f"{one}_{two}" for one, two in pairwise(words)}
    return not RETIRED.isdisjoint(pairs.union(words))


def _defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@cache
def product() -> list[Source]:
    return [
        source
        for source in tracked()
        if source.is_python and source.name.startswith(("src/", "sdk/src/"))
    ]
