"""What is in `compiled-modules.txt` can be compiled and means the same then (docs/adr/0037-a-compiled-core.md).

The compiler refuses most of what it cannot do. These are the things that it does otherwise without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.tidy import rules
from tests.tidy.rules import ROOT, Source

LIST = "compiled-modules.txt"
MARK = "mypyc_attr(allow_interpreted_subclasses=True)"
DECORATORS = {MARK}
SPECIAL = {"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum", "Struct", "TypedDict"}
"""Bases whose metaclass makes the class: what they are told beside their fields is lost."""
ORDER = {"__lt__", "__le__", "__gt__", "__ge__"}

Classes = list[tuple[Source, ast.ClassDef]]


def listed() -> list[str]:
    return (ROOT / LIST).read_text().splitlines()


def path_of(module: str) -> str:
    return f"src/{module.replace('.', '/')}.py"


def classes_of(sources: Iterable[Source]) -> Classes:
    return [
        (source, node)
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    ]


def bases_of(made: ast.ClassDef) -> Iterator[str]:
    """The last names of its bases. A class name is used once, so that they are enough."""
    for base in made.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        yield ast.unparse(named).rpartition(".")[2]


def derived_from(names: set[str], classes: Classes) -> set[str]:
    """These classes, and all that have them as bases."""
    found = set(names)
    while more := {
        made.name
        for _, made in classes
        if made.name not in found and not found.isdisjoint(bases_of(made))
    }:
        found |= more
    return found


def mistreated(sources: Iterable[Source], compiled: set[str]) -> list[str]:
    """Classes of compiled modules that would not be what they are in Python."""
    classes = classes_of(sources)
    special = derived_from(SPECIAL, classes)
    wrong = []
    for source, made in classes:
        if source.name not in compiled:
            continue
        where = f"{source.name}: {made.name}"
        if made.keywords:
            wrong.append(f"{where} has options, which are dropped")
        if made.name in special:
            wrong.append(f"{where} is a struct, an enum or the like")
        if {ast.unparse(one) for one in made.decorator_list} - DECORATORS:
            wrong.append(f"{where} has a decorator")
        methods = {one.name for one in made.body if isinstance(one, ast.FunctionDef)}
        if methods & ORDER and "__hash__" not in methods:
            wrong.append(f"{where} has an order and no `__hash__`: nothing of it can be a key")
    return wrong


def disinherited(sources: Iterable[Source], compiled: set[str]) -> list[str]:
    """Subclasses that are not compiled, of classes that are: no object of them can be made.

    A class with a base that is not compiled, as an error of ours, stays a class of Python even in a compiled module.
    """
    classes = classes_of(sources)
    inside = {made.name for source, made in classes if source.name in compiled}
    native = {
        made.name
        for source, made in classes
        if source.name in compiled
        and set(bases_of(made)) <= inside | {"Generic"}
        and MARK not in {ast.unparse(one) for one in made.decorator_list}
    }
    return [
        f"{source.name}: {made.name} has a compiled base"
        for source, made in classes
        if source.name not in compiled and not native.isdisjoint(bases_of(made))
    ]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [one for one in rules.tracked() if one.is_python]


def test_the_list_is_sorted_and_names_modules() -> None:
    names = listed()
    assert names == sorted(set(names))
    assert [name for name in names if not (ROOT / path_of(name)).is_file()] == []
    assert all(name.startswith("astraflow.core.") for name in names)


def test_compiled_classes_are_what_they_are_in_python(sources: list[Source]) -> None:
    assert mistreated(sources, {path_of(name) for name in listed()}) == []


def test_no_class_that_is_not_compiled_has_a_compiled_base(sources: list[Source]) -> None:
    assert disinherited(sources, {path_of(name) for name in listed()}) == []


HERE, ELSEWHERE = "src/astraflow/a.py", "src/astraflow/b.py"


@pytest.mark.parametrize(
    "text",
    [
        "class Made(Struct): ...",
        "class Made(msgspec.Struct): ...",
        "class Made(Kept): ...",
        "class Made(Base, frozen=True): ...",
        "class Made(enum.Enum): ...",
        "@dataclass\nclass Made: ...",
        "class Made:\n    def __lt__(self, other): ...",
    ],
)
def test_a_class_that_would_be_another_is_found(text: str) -> None:
    kept = Source(ELSEWHERE, "class Kept(msgspec.Struct): ...")
    assert mistreated([kept, Source(HERE, text)], {HERE})
    assert mistreated([kept, Source(HERE, text)], set()) == []


@pytest.mark.parametrize(
    "text",
    [
        "class Made: ...",
        "class Made(Generic[F]): ...",
        "class Made(NamedTuple): ...",
        "class Made(errors.Unavailable): ...",
        f"@{MARK}\nclass Made: ...",
        "class Made:\n    def __lt__(self, other): ...\n    def __hash__(self): ...",
    ],
)
def test_a_plain_class_may_be_compiled(text: str) -> None:
    assert mistreated([Source(HERE, text)], {HERE}) == []


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("class Made: ...", True),
        ("class Made(Generic[F]): ...", True),
        ("class Base: ...\nclass Made(Base): ...", True),
        (f"@{MARK}\nclass Made: ...", False),
        ("class Made(Exception): ...", False),
        ("class Made(NamedTuple): ...", False),
    ],
)
def test_a_subclass_that_is_not_compiled_is_found(text: str, is_wrong: bool) -> None:
    both = [Source(HERE, text), Source(ELSEWHERE, "class Other(a.Made): ...")]
    assert bool(disinherited(both, {HERE})) is is_wrong
    assert disinherited(both, {HERE, ELSEWHERE}) == []
