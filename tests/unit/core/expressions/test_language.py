"""The language of expressions: what it gives, what it refuses, and that nothing else can happen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.expressions import ExpressionError, Reference, compile_expression
from astraflow.core.expressions.functions import FUNCTIONS
from astraflow.core.expressions.language import DEFAULT

NAMES: dict[str, Any] = {
    "inputs": {
        "n": 3,
        "name": "Ada",
        "list": [3, 1, 2],
        "none": None,
        "deep": {"a b": [{"x": 1.5}]},
    },
    "nodes": {"Fetch": {"results": {"items": [{"id": n, "tags": ["t"] * n} for n in range(5)]}}},
    "run": {"id": "r-1"},
}

VALUES: list[tuple[str, Any]] = [
    ("1", 1),
    ("-1.5", -1.5),
    ("+2", 2),
    ("'a' \"b\"", "ab"),
    ("[1, 'a', null, true, false, None, True]", [1, "a", None, True, False, None, True]),
    ("(1, 2)", [1, 2]),
    ("{'a': inputs.n, 'b': {}}", {"a": 3, "b": {}}),
    ("inputs.n * 1.5", 4.5),
    ("7 // 2 + 7 % 4 - 2 ** 3 / 4", 4.0),
    ("(-2) ** 3", -8),
    ("2 ** -1", 0.5),
    ("2 ** 62", 2**62),
    ("inputs.name + '!'", "Ada!"),
    ("[1] + [2]", [1, 2]),
    ("f'{inputs.name} has {inputs.n} and {inputs.none} {inputs.list}'", "Ada has 3 and null [3,1,2]"),
    ("inputs.deep['a b'][0].x", 1.5),
    ("inputs['list'][-1]", 2),
    ("inputs.name[0]", "A"),
    ("inputs.list[1:]", [1, 2]),
    ("inputs.name[:2]", "Ad"),
    ("inputs.n > 2 and inputs.name == 'Ada'", True),
    ("inputs.none or 'x'", "x"),
    ("not inputs.none", True),
    ("1 < 2 < 3, 1 < 3 < 2, 3 >= 3, 2 <= 1, 'a' < 'b'", [True, False, True, False, True]),
    ("1 == 1.0, true == 1, 'a' != 'b', null is None, 1 is not null", [True, False, True, True, True]),
    ("[1, {'a': [2]}] == [1.0, {'a': [2]}], [1] == [1, 2]", [True, False]),
    ("{'a': 1} == {'b': 1}, {'a': 1} == 1, 'a' == null", [False, False, False]),
    ("2 in inputs.list, 9 not in inputs.list, 'da' in inputs.name", [True, True, True]),
    ("'n' in inputs, 1 in inputs", [True, False]),
    ("'big' if inputs.n > 2 else 'small'", "big"),
    ("'big' if inputs.n > 9 else 'small'", "small"),
    ("[x.id for x in nodes.Fetch.results.items if len(x.tags) > 2]", [3, 4]),
    ("sum(x.id for x in nodes.Fetch.results.items)", 10),
    ("{x: len(x) for x in ['a', 'bb']}", {"a": 1, "bb": 2}),
    ("[key for key in inputs.deep]", ["a b"]),
    ("[[y + x for y in [1]] for x in [10, 20]]", [[11], [21]]),
    ("default(inputs.missing, 7), default(inputs.none, 8), default(inputs.n, 1/0)", [7, 8, 3]),
    ("default(inputs.none.x, 1), default(inputs.list[9], 2)", [1, 2]),
    ("len('abc'), len([1]), len({})", [3, 1, 0]),
    ("str(1), str('a'), str([1]), str(null), str(true)", ["1", "a", "[1]", "null", "true"]),
    ("int('12'), int(2.9), int(-2.9), int(true)", [12, 2, -2, 1]),
    ("float('1e3'), float(2)", [1000.0, 2.0]),
    ("bool([]), bool('x')", [False, True]),
    ("round(2.5), round(2.567, 2), floor(-1.5), ceil(1.2), abs(-3)", [2, 2.57, -2, 2, 3]),
    ("min(inputs.list), max(2, 5), min('b', 'a'), sum([])", [1, 5, "a", 0]),
    ("any([0, 1]), all([0, 1]), any([])", [True, False, False]),
    ("sorted(inputs.list), reversed(inputs.list), unique([1, 1.0, 'a', 'a'])", [[1, 2, 3], [2, 1, 3], [1, "a"]]),
    ("sorted(nodes.Fetch.results.items, 'id')[0].id", 0),
    ("flatten([[1], 2, [3, [4]]])", [1, 2, 3, [4]]),
    ("range(3), range(1, 3), range(3, 0, -1)", [[0, 1, 2], [1, 2], [3, 2, 1]]),
    ("keys({'a': 1}), values({'a': 1}), merge({'a': 1}, {'a': 2, 'b': 3})", [["a"], [1], {"a": 2, "b": 3}]),
    ("get(inputs, 'deep.a b.0.x'), get(inputs, 'q.r', 5), get(inputs, ['list', 0]), get(1, 'a')", [1.5, 5, 3, None]),
    ("lower('A'), upper('a'), trim(' a '), lines('a\\nb')", ["a", "A", "a", ["a", "b"]]),
    ("split('a b'), split('a,b', ',')", [["a", "b"], ["a", "b"]]),
    ("join([1, 'b'], '-'), replace('aXa', 'X', 'b')", ["1-b", "aba"]),
    ("starts_with('ab', 'a'), ends_with('ab', 'a')", [True, False]),
    ("json({'a': [1]}), parse_json('{\"a\": [1]}')", ['{"a":[1]}', {"a": [1]}]),
    ("type(null), type(true), type(1)", ["null", "boolean", "number"]),
    ("type('a'), type([]), type({})", ["string", "array", "object"]),
    ("sha256('')[:8], base64('a'), from_base64('YQ==')", ["e3b0c442", "YQ==", "a"]),
    ("time(seconds('2024-01-01T00:00:00+01:00') + 3600)", "2024-01-01T00:00:00.000Z"),
    (" inputs.n ", 3),
]  # fmt: skip

REFUSED: list[tuple[str, str]] = [
    ("", "syntax error"),
    ("1 +", "syntax error"),
    ("import os", "syntax error"),
    ("x = 1", "syntax error"),
    ("(x := 1)", "not part of the language: x := 1"),
    ("lambda: 1", "not part of the language: lambda: 1"),
    ("{1, 2}", "not part of the language"),
    ("b'x'", "not part of the language: b'x'"),
    ("1j", "not part of the language: 1j"),
    ("...", "not part of the language"),
    ("1 << 2", "not part of the language: 1 << 2"),
    ("~1", "not part of the language: ~1"),
    ("[*inputs.list]", "not part of the language"),
    ("await x", "not part of the language: await x"),
    ("inputs.name.upper()", "only functions can be called, not inputs.name.upper; use upper(…)"),
    ("(1)(2)", "only functions can be called"),
    ("lenn('a')", "unknown function: lenn; did you mean len?"),
    ("eval('1')", "unknown function: eval"),
    ("len()", "len takes 1 argument"),
    ("round(1, 2, 3)", "round takes 1 to 2 arguments"),
    ("replace('a')", "replace takes 3 arguments"),
    ("sorted([1], key=1)", "sorted takes its arguments by position"),
    ("len(*[1])", "len takes its arguments by position"),
    ("default(1)", "default takes 2 arguments"),
    ("[a for a in [1] for b in [2]]", "a comprehension has one `for`"),
    ("[a for a, b in [[1, 2]]]", "the variable of a comprehension is one name"),
    ("{**inputs}", "use merge(…)"),
    ("inputs.list[::2]", "a slice has no step"),
    ("f'{1:>9}'", "a value in a string has no format"),
    ("f'{1!r}'", "a value in a string has no format"),
    ("9223372036854775808", "the number is too large"),
    ("1e999", "the number is too large"),
    ("a" + ".b" * 400, "the expression has too many parts"),
    ("+".join("1" * 600), "the expression has too many parts"),
    ("[" * 70 + "]" * 70, "the expression has too many parts"),
    ("1" * 5_000, "the expression has more than 4096 characters"),
    ("-" * 4_000 + "1", "the expression"),
    ("'\x00'", ""),
]

FAILED: list[tuple[str, str]] = [
    ("missing", "unknown name: missing"),
    ("inputs.nope", "inputs has no member 'nope' (it has: n, name, list, none, deep)"),
    ("run.id.x", "run.id is a string, it has no member 'x'"),
    ("inputs.none.x", "inputs.none is null, it has no member 'x'"),
    ("inputs.none[0]", "inputs.none is null, it has no items"),
    ("inputs.list[9]", "inputs.list has 3 items, no item 9"),
    ("inputs.list['a']", "inputs.list is an array, it has no member 'a'"),
    ("inputs.list[1.5]", "inputs.list has items by number, not by a number"),
    ("inputs[0]", "inputs is an object, it has no items by number"),
    ("inputs.n[1:]", "inputs.n is a number, it has no items by number"),
    ("inputs.list['a':]", "the limits of a slice are integers"),
    ("inputs.__class__", "inputs has no member '__class__'"),
    ("''.__class__", "'' is a string, it has no member '__class__'"),
    ("inputs.name + inputs.n", "cannot add a string and a number; use str(…)"),
    ("[1] + 1", "cannot add an array and a number"),
    ("'a' * 3", "cannot multiply a string and a number"),
    ("'%s' % 1", "cannot divide a string and a number"),
    ("true + 1", "cannot add a boolean and a number"),
    ("-'a'", "cannot negate a string"),
    ("+null", "null has no sign"),
    ("1 / 0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("2 ** 100", "the number is too large"),
    ("2.0 ** 10000", "the number is too large"),
    ("(-2) ** 0.5", "a negative number has no such power"),
    ("9223372036854775807 + 1", "the number is too large: integers have 63 bits"),
    ("1e308 * 10", "the number is too large"),
    ("1 < 'a'", "cannot compare a number < a string"),
    ("1 in 'a'", "cannot look for a number in a string"),
    ("1 in 2", "cannot look for something in a number"),
    ("{1: 2}", "the name of a member is a string, not a number"),
    ("[x for x in 1]", "cannot go through a number"),
    ("len(1)", "len takes an array, an object or a string, not a number"),
    ("upper(1)", "upper takes a string, not a number"),
    ("keys([])", "keys takes an object, not an array"),
    ("sum('a')", "sum takes an array, not a string"),
    ("sum(['a'])", "sum takes a number, not a string"),
    ("max([])", "max of nothing"),
    ("int('x')", "no integer: 'x'"),
    ("float('x')", "no number: 'x'"),
    ("float('inf')", "the number is too large"),
    ("int('9' * 1)", "cannot multiply"),
    ("round(1, 99)", "round takes at most 20 digits"),
    ("range(1.5)", "range takes integers"),
    ("range(1, 2, 0)", "range takes a step other than 0"),
    ("split('a', '')", "split takes a separator of at least one character"),
    ("parse_json('{')", "parse_json: "),
    ("parse_json('[' + join([x for x in range(9)], '[') )", "parse_json: "),
    ("from_base64('!')", "from_base64 takes base64 of UTF-8 text"),
    ("seconds('x')", "no RFC 3339 time: 'x'"),
    ("seconds('2024-01-01T00:00:00')", "the time needs a time zone"),
    ("time(1e300)", "the time is out of range"),
]

TOO_COSTLY = [
    "range(10 ** 8)",
    "range(-10 ** 15, 0)",
    "[[0 for b in range(1000)] for a in range(1000)]",
    "join([join(range(1000)) for a in range(1000)])",
    "[replace(join(range(1000)), '1', join(range(1000))) for a in range(100)]",
    "[inputs.big for a in range(3000)]",
    "[inputs.big == inputs.big for a in range(3000)]",
    "[-1 in inputs.big for a in range(3000)]",
    "[sorted(inputs.big) for a in range(3000)]",
    "[json(inputs.big) for a in range(3000)]",
    "unique(range(5000))",
    "[split(inputs.text) for a in range(3000)]",
    "[inputs.text in inputs.text for a in range(3000)]",
    "[inputs.text + inputs.text for a in range(3000)]",
    "[parse_json(json(inputs.big)) for a in range(3000)]",
    "flatten([inputs.big for a in range(3000)])",
    "{str(a): inputs.big for a in range(3000)}",
]


TOKENS = [
    *("inputs", ".", "n", "(", ")", "[", "]", "+", "*", "**", "9", "'a'", ",", " in "),
    *(" for x in ", "x", "len", "{", "}", ":", "not ", "default", "if ", " else "),
]


class TestValues:
    def test_each_has_its_value(self) -> None:
        for text, value in VALUES:
            assert compile_expression(text).evaluate(NAMES) == value, text

    def test_every_function_is_shown_in_a_case(self) -> None:
        cases = " ".join(text for text, _ in VALUES)
        assert [name for name in (*FUNCTIONS, DEFAULT) if f"{name}(" not in cases] == []

    def test_values_are_of_json(self) -> None:
        for text, value in VALUES:
            result = compile_expression(text).evaluate(NAMES)
            assert msgspec.json.decode(msgspec.json.encode(result)) == value, text

    def test_what_is_given_is_not_changed(self) -> None:
        before = msgspec.json.encode(NAMES)
        for text, _ in VALUES:
            compile_expression(text).evaluate(NAMES)
        assert msgspec.json.encode(NAMES) == before


class TestRefusals:
    def test_what_is_no_part_of_the_language_is_refused_at_once(self) -> None:
        for text, message in REFUSED:
            with pytest.raises(ExpressionError) as caught:
                compile_expression(text)
            assert message in caught.value.message, text

    def test_what_has_no_value_says_why(self) -> None:
        for text, message in FAILED:
            with pytest.raises(ExpressionError) as caught:
                compile_expression(text).evaluate(NAMES)
            assert message in caught.value.message, text

    def test_a_long_message_is_cut(self) -> None:
        with pytest.raises(ExpressionError) as caught:
            compile_expression("x").evaluate({f"n{n}": 1 for n in range(3)})
        assert len(caught.value.message) < 400
        with pytest.raises(ExpressionError) as caught:
            compile_expression("inputs.x").evaluate({"inputs": {"a" * 1_000: 1}})
        assert len(caught.value.message) <= 301


class TestCost:
    def test_what_costs_too_much_ends(self) -> None:
        names = {"inputs": {"big": list(range(2_000)), "text": "word " * 20_000}}
        for text in TOO_COSTLY:
            try:
                compile_expression(text).evaluate(names)
            except ExpressionError as error:
                assert "takes too long or makes too large a value" in error.message, text
            else:
                pytest.fail(f"it was evaluated: {text}")

    def test_a_large_value_is_passed_on_as_it_is(self) -> None:
        large = {"rows": [{"a": "x" * 100}] * 100_000}
        assert compile_expression("inputs.rows").evaluate({"inputs": large}) is large["rows"]

    def test_a_deep_value_is_refused_or_given(self) -> None:
        deep: list[Any] = []
        for _ in range(5_000):
            deep = [deep]
        with pytest.raises(ExpressionError, match="nested too deeply"):
            compile_expression("inputs.a == inputs.b").evaluate(
                {"inputs": {"a": deep, "b": [deep]}}
            )


class TestReferences:
    def test_names_and_their_members_are_told(self) -> None:
        text = "inputs.a + nodes['Fetch page'].results.b[0].c + nodes[inputs.k].x + f'{run.id}'"
        assert compile_expression(text).references == (
            Reference("inputs", ("a",)),
            Reference("nodes", ("Fetch page", "results", "b")),
            Reference("nodes", ()),
            Reference("inputs", ("k",)),
            Reference("run", ("id",)),
        )

    def test_variables_of_a_comprehension_are_not(self) -> None:
        found = compile_expression("[x.y + z for x in inputs.list if x.ok]").references
        assert set(found) == {Reference("inputs", ("list",)), Reference("z", ())}
        assert compile_expression("[true, null]").references == ()


class TestAnything:
    @given(st.text(max_size=60))
    def test_any_text_is_a_value_or_an_error(self, text: str) -> None:
        try:
            compile_expression(text).evaluate(NAMES)
        except ExpressionError as error:
            assert error.message

    @given(st.lists(st.sampled_from(TOKENS), max_size=14))
    def test_any_row_of_tokens_is_a_value_or_an_error(self, tokens: list[str]) -> None:
        try:
            value = compile_expression("".join(tokens)).evaluate(NAMES)
        except ExpressionError:
            return
        msgspec.json.encode(value)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("1 + )", 4),
        ("  1 + )", 6),
        ("1 +", 3),
        ("", 0),
        ("[1,\n 2 + )]", 9),
        (" 'ä' + (lambda: 1)", 8),
        ("[1,\n 'ä', {2}]", 10),
        ("nobody(1)", None),
    ],
)
def test_what_cannot_be_read_has_a_place(text: str, position: int | None) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_expression(text)
    assert refused.value.position == position
