from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from astraflow.core.workflow.parameters import EMPTY, ParameterStore
from astraflow.core.workflow.plan import ResourceRefValue
from astraflow.core.workflow.problems import Problems
from tests.tables import each_row
from tests.unit.core.workflow.drafts import found, node, plan


def take(text: bytes) -> tuple[bytes, list[tuple[str, str]], ParameterStore]:
    problems = Problems()
    store = ParameterStore(problems)
    taken = store.take(Raw(text), 7)
    return taken, [(row.pointer, row.code) for row in problems.found()], store


def nest(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("text", [b"", b"null", b"{}"])
def test_no_parameters_are_an_empty_object(text: bytes) -> None:
    assert take(text)[:2] == (EMPTY, [])


def test_parameters_are_kept_as_they_were_written() -> None:
    text = b'{ "b" : 1.50,\n "a" : [1e2, "\\u00e9"] }'
    assert take(text)[:2] == (text, [])


def test_equal_parameters_are_one_object() -> None:
    made = plan([node(1, parameters={"a": 1}), node(2, parameters={"a": 1}), node(3)])
    assert made.nodes[0].parameters is made.nodes[1].parameters
    assert made.nodes[2].parameters == b"{}"


def test_a_graph_of_all_different_parameters_is_kept_too() -> None:
    made = plan([node(number, parameters={"n": number}) for number in range(1_500)])
    assert {row.parameters for row in made.nodes} == {b'{"n":%d}' % n for n in range(1_500)}


@each_row(
    ("text", "code"),
    [
        (b"[]", "E.WORKFLOW.INVALID"),
        (b'"text"', "E.WORKFLOW.INVALID"),
        (b'{"a": 1e999}', "E.WORKFLOW.INVALID"),
        (b'{"a": 18446744073709551616}', "E.WORKFLOW.INVALID"),
        (b'{"a": [-9223372036854775809]}', "E.WORKFLOW.INVALID"),
        (nest(50), "E.WORKFLOW.LIMIT"),
        (nest(5_000), "E.WORKFLOW.LIMIT"),
        (b'{"a": "' + b"x" * 1_048_576 + b'"}', "E.WORKFLOW.LIMIT"),
    ],
)
def test_what_no_frame_could_carry_is_refused(text: bytes, code: str) -> None:
    assert take(text)[:2] == (EMPTY, [("/nodes/7/parameters", code)])


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 18446744073709551615, "b": -9223372036854775808}',
        nest(48),
        b'{"a": [' + b"{}," * 100 + b"[]]}",
        b'{"digits": "12345678901234567890123"}',
    ],
)
def test_what_a_frame_carries_is_taken(text: bytes) -> None:
    assert take(text)[:2] == (text, [])


@each_row(
    ("document", "expected"),
    [
        ({"a": "=1"}, True),
        ({"a": [{"b": "=x"}]}, True),
        ({"=a": 1}, False),
        ({"a": 'say "=1"'}, False),
        ({"a": " =1"}, False),
        ({"a": "a=b"}, False),
    ],
)
def test_a_string_that_begins_with_an_equals_sign_is_an_expression(
    document: dict[str, Any], expected: bool
) -> None:
    raw = msgspec.json.encode(document)
    assert take(raw)[2].with_expression == ({raw} if expected else set())


def test_an_escaped_equals_sign_is_one_too() -> None:
    assert take(rb'{"a": "\u003D1"}')[2].with_expression


def test_references_in_parameters_are_found_once_a_text() -> None:
    text = b'{"video": {"resourceRef": {"resourceId": "r", "workerId": "w", "type": "file"}}}'
    store = take(text)[2]
    assert store.resource_refs == {text: (ResourceRefValue("r", "w", "file"),)}


def test_a_problem_of_parameters_is_a_problem_of_the_definition() -> None:
    assert found([node(1), node(2, parameters=[])]) == [("/nodes/1/parameters", "INVALID")]
