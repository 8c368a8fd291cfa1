"""The rules of the house that a machine can check, one function each.

A rule takes a `Source` and returns what is wrong with it, one sentence per offence. Words that a
rule looks for are written here in pieces, so that this file does not offend against itself.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from astraflow.core.errors import CATALOGUE

ROOT = Path(__file__).resolve().parent.parent.parent

MODULE_LINES = 600
FUNCTION_LINES = 70
NESTING = 4

BOUNDARIES: frozenset[str] = frozenset(
    {
        "src/astraflow/api/app.py",  # a request ends there: a bug becomes a 500 with an id, and a log line
        "src/astraflow/cli/exit_codes.py",  # the process ends there, and says so in JSON if that was asked for
        "src/astraflow/cli/workflow_scripts.py",  # a script of the user ends there: its error is told like any other
        "src/astraflow/core/engine/engine.py",  # says whose input it failed at, and is thrown away
        "src/astraflow/scheduler/lifecycle.py",  # the process ends there, and another must know by whose fault
        "src/astraflow/scheduler/writer.py",  # throws a session or an engine away that failed
        "src/astraflow/store/threads.py",  # what a thread raised goes to the one who waits for it
    }
)
"""Modules that may catch everything, because a process or a session ends there."""

CLOCK = "src/astraflow/clock.py"
LOOPS = (
    "tests/conftest.py",  # gives every test that is a coroutine function its loop
    "tests/processes/postgres.py",  # for fixtures, which are none
)

BANNED_MODULES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"}
MARKERS = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]
HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "registry." + "yarnpkg",
    "crates" + ".io",
]
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)|`((?:tests|src|docs|schemas|scripts)/[^`\s*<]+)`")
FOREIGN_PATHS = ["/wo" + "rk/", "sha" + "red/design", "sha" + "red/seeds"]
_CODE = re.compile(r"\bE\.[A-Z][A-Z_]*(?:\.[A-Z][A-Z_]*)*(?![A-Za-z_]*\.?[*…])")


@dataclass
class Source:
    """One file of the project. `name` is its path from the root, with slashes."""

    name: str
    text: str
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text) if self.name.endswith(".py") else ast.parse("")

    @property
    def is_product(self) -> bool:
        return self.name.startswith("src/") and self.name.endswith(".py")

    @property
    def is_python(self) -> bool:
        return self.name.endswith(".py")


Rule = Callable[[Source], list[str]]


def tracked() -> list[Source]:
    """Every text file that belongs to the project."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = []
    for name in sorted(filter(None, listed.split("\0"))):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            raw = path.read_bytes()
            if b"\0" not in raw:
                found.append(Source(name, raw.decode("utf-8", "replace")))
    return found


def module_too_long(source: Source) -> list[str]:
    lines = source.text.count("\n")
    if source.is_product and lines > MODULE_LINES:
        return [f"{lines} lines, {MODULE_LINES} allowed"]
    return []


def function_too_long(source: Source) -> list[str]:
    if not source.is_python:
        return []
    found = []
    for function in _functions(source.tree):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES:
            found.append(f"{function.name} has {lines} lines, {FUNCTION_LINES} allowed")
    return found


def nested_too_deep(source: Source) -> list[str]:
    if not source.is_product:
        return []
    return [
        f"{function.name} nests {depth} deep, {NESTING} allowed"
        for function in _functions(source.tree)
        if (depth := _depth(function.body)) > NESTING
    ]


def module_with_no_meaning(source: Source) -> list[str]:
    words = set(re.split(r"[_.]", source.name.rpartition("/")[2].lower()))
    return [f"names nothing: {word}" for word in sorted(words & BANNED_MODULES)]


def unfinished(source: Source) -> list[str]:
    return [
        f"unfinished: {marker}" for marker in MARKERS if re.search(rf"\b{marker}\b", source.text)
    ]


def prints(source: Source) -> list[str]:
    return [
        f"line {node.lineno} prints"
        for node in _calls(source)
        if source.is_product and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def reads_a_clock(source: Source) -> list[str]:
    if not source.is_product or source.name == CLOCK:
        return []
    return [
        f"line {node.lineno} reads a clock"
        for node in _calls(source)
        if isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr)
        in {
            ("time", "time"),
            ("time", "monotonic"),
            ("time", "perf_counter"),
            ("datetime", "now"),
            ("datetime", "utcnow"),
        }
    ]


def catches_everything(source: Source) -> list[str]:
    if not source.is_product or source.name in BOUNDARIES:
        return []
    return [
        f"line {node.lineno} catches everything"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
        )
    ]


def asserts_nothing(source: Source) -> list[str]:
    return [
        f"line {node.lineno} asserts a constant"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)
    ]


def leaves_tests_out(source: Source) -> list[str]:
    if not source.name.startswith("tests/"):
        return []
    return [
        f"line {node.lineno} leaves a test out"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"skip", "skipif", "xfail", "importorskip"}
        and ast.unparse(node).startswith("pytest.")
    ]


def names_a_registry(source: Source) -> list[str]:
    return [f"names a registry: {host}" for host in HOSTS if host in source.text]


def names_a_foreign_path(source: Source) -> list[str]:
    return [
        f"names a path that is not ours: {path}" for path in FOREIGN_PATHS if path in source.text
    ]


def leads_nowhere(source: Source) -> list[str]:
    """A page links, and names in backticks, only what exists."""
    if not source.name.endswith(".md"):
        return []
    found = []
    for link, path in _LINK.findall(source.text):
        start = ROOT / path if path else (ROOT / source.name).parent / link
        if "://" not in link and not start.exists():
            found.append(f"leads nowhere: {link or path}")
    return found


def lacks_future_annotations(source: Source) -> list[str]:
    if not source.is_python or all(_is_docstring(node) for node in source.tree.body):
        return []
    is_there = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in source.tree.body
    )
    return [] if is_there else ["lacks `from __future__ import annotations`"]


def lacks_exports(source: Source) -> list[str]:
    """A package says what it offers. In a module the underscore says it: a list would say it twice."""
    is_package = source.is_product and source.name.endswith("/__init__.py")
    offers = any(
        isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for node in source.tree.body
    )
    names = [
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return ["lacks `__all__`"] if is_package and offers and "__all__" not in names else []


def unknown_code(source: Source) -> list[str]:
    """A code in a string of ours or in a page must be a row of the catalogue."""
    if source.is_product:
        texts = [
            node.value
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    elif source.name.endswith(".md"):
        texts = [source.text]
    else:
        return []
    areas = {code.rpartition(".")[0] for code in CATALOGUE}
    found = {
        match[0]
        for text in texts
        for match in _CODE.finditer(text)
        if not (match[0] in areas and text[match.end() :].startswith("."))  # "E.AUTH.": a prefix
    }
    return [f"unknown code: {code}" for code in sorted(found - CATALOGUE.keys())]


def runs_a_loop(source: Source) -> list[str]:
    """A test that waits is a coroutine function, which `tests/conftest.py` runs; a program has a loop of its own."""
    is_program = "__name__" in {
        one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)
    }
    if not source.name.startswith("tests/") or source.name in LOOPS or is_program:
        return []
    calls = [ast.unparse(call.func) for call in _calls(source)]
    return [f"runs a coroutine with {name}" for name in calls if name == "asyncio.run"]


def starts_the_product(source: Source) -> list[str]:
    """Schedulers, workers and commands are started by `tests/processes`, which leaves none behind."""
    if not source.name.startswith("tests/") or source.name.startswith("tests/processes/"):
        return []
    lists = [node for node in ast.walk(source.tree) if isinstance(node, ast.List | ast.Tuple)]
    words = [[one.value for one in node.elts if isinstance(one, ast.Constant)] for node in lists]
    commands = [" ".join([*map(str, one), ""]) for one in words]
    return [f"starts a process: {one}" for one in commands if one.startswith("-m astraflow ")]


RULES: list[Rule] = [
    module_too_long,
    function_too_long,
    nested_too_deep,
    module_with_no_meaning,
    unfinished,
    prints,
    reads_a_clock,
    catches_everything,
    asserts_nothing,
    leaves_tests_out,
    names_a_registry,
    names_a_foreign_path,
    leads_nowhere,
    lacks_future_annotations,
    lacks_exports,
    unknown_code,
    runs_a_loop,
    starts_the_product,
]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _calls(source: Source) -> Iterator[ast.Call]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield node


def _depth(body: list[ast.stmt]) -> int:
    """How many compound statements stand inside one another; `elif` is not inside its `if`."""
    return max((_depth_of(statement) for statement in body), default=0)


def _depth_of(statement: ast.stmt) -> int:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return 0
    blocks = [value for _, value in ast.iter_fields(statement) if _is_block(value)]
    blocks += [handler.body for handler in getattr(statement, "handlers", [])]
    blocks += [case.body for case in getattr(statement, "cases", [])]
    if not blocks:
        return 0
    if isinstance(statement, ast.If) and _is_elif(statement.orelse):
        return max(1 + _depth(statement.body), _depth(statement.orelse))
    return 1 + max(_depth(block) for block in blocks)


def _is_block(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def words_of(name: str) -> list[str]:
    """The words of an identifier, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
