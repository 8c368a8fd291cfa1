"""Expressions: a small part of Python's, over JSON values, evaluated in the scheduler.

Rule 1: the text is parsed by Python's own parser and compiled once. Whatever is not in `_COMPILERS` is refused: there
        are no attributes of Python objects, no methods, no assignments, no imports, no lambdas. A `.name` is a member
        of an object, nothing else.
Rule 2: an evaluation has a budget (`budget`). There are no loops but comprehensions, which are charged for each item.
Rule 3: values are JSON values and are never changed.
Rule 4: what an expression refers to can be told without evaluating it (`references`), so that validation can name what
        is missing before anything runs.

`true`, `false` and `null` are also understood. `default(a, b)` is `b` if `a` is missing or null.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from astraflow.core.expressions.budget import (
    MAX_SIZE,
    MAX_TEXT,
    STEP,
    Budget,
    ExpressionError,
    kind_of,
)
from astraflow.core.expressions.functions import FUNCTIONS, to_string
from astraflow.core.expressions.operations import (
    BINARY,
    COMPARISONS,
    MissingMember,
    checked,
    element,
    member,
    negative,
    positive,
)

Names = Mapping[str, Any]
Step = Callable[[Names, Budget], Any]
"""A compiled part: gives its value."""

_CONSTANTS: Final = {"true": True, "false": False, "null": None}
DEFAULT: Final = "default"
MAX_PARTS: Final = 1_000
MAX_DEPTH: Final = 60


class Reference(NamedTuple):
    """A name that an expression needs, and the members that it reads of it, as far as they are written out."""

    name: str
    path: tuple[str, ...]


class Expression:
    """A compiled expression."""

    __slots__ = ("_is_path", "_step", "references", "text")

    def __init__(
        self, text: str, step: Step, references: tuple[Reference, ...], is_path: bool
    ) -> None:
        self.text = text
        self._step = step
        self._is_path = (
            is_path  # it only reads a member: what it gives is no larger than what is there
        )
        self.references = references

    def evaluate(self, names: Names) -> Any:
        """The value. Raises: ExpressionError."""
        try:
            value = self._step(names, Budget())
            if not self._is_path:
                Budget(MAX_SIZE).charge_walk(value)
        except RecursionError:
            raise ExpressionError("a value is nested too deeply") from None
        return value


@lru_cache(maxsize=4_096)
def compile_expression(text: str) -> Expression:
    """Compile a text, without the `=` before it. Raises: ExpressionError."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"the expression has more than {MAX_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        at = f" at character {error.offset}" if error.offset else ""
        # Without an offset it is the end that is wrong: something is missing there.
        column = error.offset - 1 if error.offset else len(text)
        place = _position(text, error.lineno or 1, column)
        raise ExpressionError(f"syntax error{at}: {error.msg}", place) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("the expression cannot be read") from None
    compiler = _Compiler(text)
    step = compiler.compile(tree.body)
    is_path = isinstance(tree.body, ast.Attribute | ast.Subscript | ast.Name)
    return Expression(text, step, tuple(dict.fromkeys(compiler.references)), is_path)


def _position(text: str, line: int, column: int) -> int:
    """Where a place of the parsed text is in the one that was given, whose spaces around were not parsed."""
    lines = text.strip().splitlines(keepends=True)[: line - 1]
    before = len(text) - len(text.lstrip()) + sum(map(len, lines))
    return max(0, min(before + column, len(text)))


class _Compiler:
    """Compiles one expression."""

    def __init__(self, text: str) -> None:
        self.references: list[Reference] = []
        self._given = text
        self._text = text.strip()
        self._bound: list[str] = []  # the variables of the comprehensions around
        self._parts = 0
        self._depth = 0

    def compile(self, node: ast.expr) -> Step:
        compiler = _COMPILERS.get(type(node))
        if compiler is None:
            raise ExpressionError(
                f"not part of the language: {self._source(node)}", self._position(node)
            )
        self._enter()
        step: Step = compiler(self, node)
        self._depth -= 1
        return step

    def _enter(self) -> None:
        self._parts += 1
        self._depth += 1
        if self._parts > MAX_PARTS or self._depth > MAX_DEPTH:
            raise ExpressionError("the expression has too many parts")

    def _position(self, node: ast.expr) -> int:
        # Python counts the bytes of a line.
        line = self._text.splitlines()[node.lineno - 1].encode()[: node.col_offset]
        return _position(self._given, node.lineno, len(line.decode(errors="ignore")))

    def _source(self, node: ast.AST) -> str:
        text = ast.get_source_segment(self._text, node) or type(node).__name__
        return text if len(text) <= 60 else text[:60] + "…"

    def constant(self, node: ast.Constant) -> Step:
        value = node.value
        if not isinstance(value, str | int | float | None):  # a bool is an int
            raise ExpressionError(f"not part of the language: {self._source(node)}")
        checked(value)
        return lambda names, budget: value

    def name(self, node: ast.Name) -> Step:
        name = node.id
        if name in self._bound:
            return lambda names, budget: names[name]
        if name in _CONSTANTS:
            value = _CONSTANTS[name]
            return lambda names, budget: value
        self.references.append(Reference(name, ()))
        return self._root(name)

    def _root(self, name: str) -> Step:
        def read(names: Names, budget: Budget) -> Any:
            try:
                return names[name]
            except KeyError:
                raise ExpressionError(f"unknown name: {name}") from None

        return read

    def path(self, node: ast.Attribute | ast.Subscript) -> Step:
        """A chain of members: its root is a reference with a path."""
        path: list[str] = []
        inner: ast.expr = node
        while True:
            if isinstance(inner, ast.Attribute):
                path.append(inner.attr)
                inner = inner.value
            elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
                key = inner.slice.value
                path = [*path, key] if isinstance(key, str) else []
                inner = inner.value
            elif isinstance(inner, ast.Subscript):
                path = []
                inner = inner.value
            else:
                break
        is_root = isinstance(inner, ast.Name) and inner.id not in (*self._bound, *_CONSTANTS)
        before = len(self.references)
        step = self._link(node)
        if is_root and isinstance(inner, ast.Name):
            plain = self.references.index(Reference(inner.id, ()), before)
            self.references[plain] = Reference(inner.id, tuple(reversed(path)))
        return step

    def _link(self, node: ast.expr) -> Step:
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return self.compile(node)
        self._enter()
        of, text = self._link(node.value), self._source(node.value)
        self._depth -= 1
        if isinstance(node, ast.Attribute):
            name = node.attr
            return lambda names, budget: member(of(names, budget), name, text)
        if isinstance(node.slice, ast.Slice):
            return self._slice(of, text, node.slice)
        key = self.compile(node.slice)
        return lambda names, budget: element(of(names, budget), key(names, budget), text)

    def _slice(self, of: Step, text: str, limits: ast.Slice) -> Step:
        if limits.step is not None:
            raise ExpressionError("a slice has no step")
        ends = [None if end is None else self.compile(end) for end in (limits.lower, limits.upper)]

        def cut(names: Names, budget: Budget) -> Any:
            whole = of(names, budget)
            if not isinstance(whole, str | list):
                raise ExpressionError(f"{text} is {kind_of(whole)}, it has no items by number")
            first, last = (None if end is None else end(names, budget) for end in ends)
            if any(end is not None and type(end) is not int for end in (first, last)):
                raise ExpressionError("the limits of a slice are integers")
            part = whole[first:last]
            charge = budget.charge_text if isinstance(part, str) else budget.charge_items
            charge(len(part))
            return part

        return cut

    def binary(self, node: ast.BinOp) -> Step:
        operate = BINARY.get(type(node.op))
        if operate is None:
            raise ExpressionError(f"not part of the language: {self._source(node)}")
        left, right = self.compile(node.left), self.compile(node.right)

        def compute(names: Names, budget: Budget) -> Any:
            budget.charge(STEP)
            return operate(left(names, budget), right(names, budget), budget)

        return compute

    def unary(self, node: ast.UnaryOp) -> Step:
        of = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda names, budget: not of(names, budget)
        if isinstance(node.op, ast.Invert):
            raise ExpressionError(f"not part of the language: {self._source(node)}")
        sign = negative if isinstance(node.op, ast.USub) else positive
        return lambda names, budget: sign(of(names, budget))

    def boolean(self, node: ast.BoolOp) -> Step:
        parts = [self.compile(value) for value in node.values]
        ends_with = isinstance(node.op, ast.Or)

        def decide(names: Names, budget: Budget) -> Any:
            value = None
            for part in parts:
                budget.charge(STEP)
                value = part(names, budget)
                if bool(value) is ends_with:
                    break
            return value

        return decide

    def compare(self, node: ast.Compare) -> Step:
        first = self.compile(node.left)
        operators = [COMPARISONS[type(one)] for one in node.ops]
        others = [self.compile(one) for one in node.comparators]

        def decide(names: Names, budget: Budget) -> bool:
            left = first(names, budget)
            for operate, other in zip(operators, others, strict=True):
                budget.charge(STEP)
                right = other(names, budget)
                if not operate(left, right, budget):
                    return False
                left = right
            return True

        return decide

    def choice(self, node: ast.IfExp) -> Step:
        test, then = self.compile(node.test), self.compile(node.body)
        otherwise = self.compile(node.orelse)
        return lambda names, budget: (then if test(names, budget) else otherwise)(names, budget)

    def array(self, node: ast.List | ast.Tuple) -> Step:
        parts = [self.compile(one) for one in node.elts]

        def make(names: Names, budget: Budget) -> list[Any]:
            budget.charge_items(len(parts))
            return [part(names, budget) for part in parts]

        return make

    def object(self, node: ast.Dict) -> Step:
        pairs: list[tuple[Step, Step]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise ExpressionError("use merge(…) to put objects together")
            pairs.append((self.compile(key), self.compile(value)))

        def make(names: Names, budget: Budget) -> dict[str, Any]:
            budget.charge_items(len(pairs))
            return {_key(key(names, budget)): value(names, budget) for key, value in pairs}

        return make

    def call(self, node: ast.Call) -> Step:
        if not isinstance(node.func, ast.Name):
            hint = f"{node.func.attr}(…)" if isinstance(node.func, ast.Attribute) else "a name"
            raise ExpressionError(
                f"only functions can be called, not {self._source(node.func)}; use {hint}"
            )
        name = node.func.id
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise ExpressionError(f"{name} takes its arguments by position")
        arguments = [self.compile(one) for one in node.args]
        if name == DEFAULT:
            return self._default(arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            close = difflib.get_close_matches(name, [*FUNCTIONS, DEFAULT], 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ExpressionError(f"unknown function: {name}{hint}")
        if not function.least <= len(arguments) <= function.most:
            raise ExpressionError(f"{name} takes {_count(function.least, function.most)}")
        run = function.call

        def apply(names: Names, budget: Budget) -> Any:
            budget.charge(STEP)
            return run(budget, *(argument(names, budget) for argument in arguments))

        return apply

    @staticmethod
    def _default(arguments: list[Step]) -> Step:
        if len(arguments) != 2:
            raise ExpressionError("default takes 2 arguments")
        wanted, otherwise = arguments

        def choose(names: Names, budget: Budget) -> Any:
            try:
                value = wanted(names, budget)
            except MissingMember:
                value = None
            return otherwise(names, budget) if value is None else value

        return choose

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> Step:
        if len(node.generators) != 1:
            raise ExpressionError("a comprehension has one `for`")
        generator = node.generators[0]
        if not isinstance(generator.target, ast.Name) or generator.is_async:
            raise ExpressionError("the variable of a comprehension is one name")
        over = self.compile(generator.iter)
        variable = generator.target.id
        self._bound.append(variable)
        tests = [self.compile(one) for one in generator.ifs]
        if isinstance(node, ast.DictComp):
            key, value = self.compile(node.key), self.compile(node.value)
        else:
            key, value = None, self.compile(node.elt)
        self._bound.pop()

        def items(names: Names, budget: Budget) -> Any:
            values = over(names, budget)
            if isinstance(values, Mapping):
                values = list(values)
            if not isinstance(values, list):
                raise ExpressionError(f"cannot go through {kind_of(values)}")
            for item in values:
                budget.charge(STEP)
                inner = {**names, variable: item}
                if all(test(inner, budget) for test in tests):
                    yield inner

        if key is None:
            return lambda names, budget: [value(inner, budget) for inner in items(names, budget)]
        return lambda names, budget: {
            _key(key(inner, budget)): value(inner, budget) for inner in items(names, budget)
        }

    def template(self, node: ast.JoinedStr) -> Step:
        parts: list[Step] = []
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                if one.format_spec is not None or one.conversion != -1:
                    raise ExpressionError(
                        "a value in a string has no format; use round(…) or str(…)"
                    )
                parts.append(self.compile(one.value))
            else:
                parts.append(self.compile(one))

        def make(names: Names, budget: Budget) -> str:
            budget.charge(STEP)
            return "".join([to_string(part(names, budget), budget) for part in parts])

        return make


def _key(value: Any) -> str:
    if not isinstance(value, str):
        raise ExpressionError(f"the name of a member is a string, not {kind_of(value)}")
    return value


def _count(least: int, most: int) -> str:
    if least == most:
        return "1 argument" if least == 1 else f"{least} arguments"
    return f"{least} to {most} arguments"


_COMPILERS: Final[Mapping[type[ast.expr], Callable[[_Compiler, Any], Step]]] = {
    ast.Constant: _Compiler.constant,
    ast.Name: _Compiler.name,
    ast.Attribute: _Compiler.path,
    ast.Subscript: _Compiler.path,
    ast.BinOp: _Compiler.binary,
    ast.UnaryOp: _Compiler.unary,
    ast.BoolOp: _Compiler.boolean,
    ast.Compare: _Compiler.compare,
    ast.IfExp: _Compiler.choice,
    ast.List: _Compiler.array,
    ast.Tuple: _Compiler.array,
    ast.Dict: _Compiler.object,
    ast.Call: _Compiler.call,
    ast.ListComp: _Compiler.comprehension,
    ast.GeneratorExp: _Compiler.comprehension,
    ast.DictComp: _Compiler.comprehension,
    ast.JoinedStr: _Compiler.template,
}
