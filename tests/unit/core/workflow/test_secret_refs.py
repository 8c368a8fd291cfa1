from __future__ import annotations

import json

import pytest

from astraflow.core.workflow.secret_refs import (
    MAX_SECRET_REFS,
    NO_REFS,
    find_secret_refs,
    is_secret_name,
)


def ref(name: object) -> dict[str, object]:
    return {"secretRef": {"name": name}}


def test_references_are_found_wherever_they_stand() -> None:
    parameters = {"a": ref("one"), "b": [{"c/d": ref("two")}, ref("one")], "e": "secretRef"}
    found = find_secret_refs(json.dumps(parameters).encode())
    assert found.places == {"one": "/a", "two": "/b/0/c~1d"}
    assert found.names == ("one", "two")
    assert found.malformed is None


def test_an_expression_that_is_a_secret_and_nothing_else_is_a_reference() -> None:
    parameters = {
        "a": ["=secrets.one", "= secrets.two "],
        "b": "secrets.three",
        "c": "=secrets.a + 1",
    }
    assert find_secret_refs(json.dumps(parameters).encode()).places == {
        "one": "/a/0",
        "two": "/a/1",
    }


def test_an_escaped_key_is_the_same_key() -> None:
    found = find_secret_refs(b'{"a": {"\\u0073ecretRef": {"name": "one"}}}')
    assert found.names == ("one",)
    assert find_secret_refs(b'{"a": "plain"}') is NO_REFS


@pytest.mark.parametrize(
    "value",
    [
        {"secretRef": "one"},
        {"secretRef": {}},
        {"secretRef": {"name": "one", "more": 1}},
        {"secretRef": {"name": "one"}, "more": 1},
        ref(1),
        ref(""),
        ref("a/b"),
        ref("-a"),
        ref("x" * 129),
    ],
)
def test_what_looks_like_a_reference_must_be_one(value: object) -> None:
    found = find_secret_refs(json.dumps({"n": [value, value]}).encode())
    assert found.malformed is not None
    assert found.malformed[0] == "/n/0"


def test_a_node_has_a_bounded_number_of_them() -> None:
    many = {str(number): ref(f"s{number}") for number in range(MAX_SECRET_REFS)}
    assert find_secret_refs(json.dumps(many | {"x": ref("s0")}).encode()).malformed is None
    more = find_secret_refs(json.dumps(many | {"x": ref("other")}).encode())
    assert more.malformed is not None


def test_names() -> None:
    assert is_secret_name("OPENAI_KEY.v2-a") and not is_secret_name("a b")
