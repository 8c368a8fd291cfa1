"""Validation and submission agree: what has no problem can be planned and is carried out, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astraflow.core.workflow import InvalidDocument, decode_definition, plan_workflow, validate
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan
from tests.unit.core.workflow.drafts import CORE, uid

TYPES = [
    "core.echo",
    "core.http",
    "core.template",
    "core.log",
    "core.sleep",
    "core.python",
    "core.read_file",
    "core.nop",
]
PORTS = [
    None,
    "value",
    "text",
    "values",
    "url",
    "body",
    "inputs",
    "result",
    "message",
    "file",
    "sha256",
    "error",
    "done",
]
values: st.SearchStrategy[Any] = st.sampled_from(
    [
        5,
        -1,
        1.5,
        "a",
        "=1",
        None,
        True,
        [],
        {},
        {"a": "=x"},
        {"secretRef": {"name": "s"}},
        {"resourceRef": {"resourceId": "r"}},
    ]
)
names = st.sampled_from(
    ["value", "url", "template", "values", "seconds", "code", "inputs", "file", "level", "method"]
)
schemas = st.sampled_from(
    [
        {},
        {"type": "object"},
        {"type": "strin"},
        {"properties": {"value": {"type": "integer"}}, "required": ["value"]},
        {
            "properties": {"url": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"type": ["string", "null"]}},
        },
        {"$ref": "#"},
        {"additionalProperties": False, "properties": {"value": True}},
        {"anyOf": [{"required": ["value"]}, {"required": ["url"]}]},
    ]
)


@st.composite
def nodes(draw: Any, number: int) -> dict[str, Any]:
    made: dict[str, Any] = {"id": uid(number), "type": draw(st.sampled_from(TYPES))}
    made["parameters"] = draw(st.dictionaries(names, values, max_size=3))
    if draw(st.integers(0, 5)) == 0:
        made["schema"] = {"parameters": draw(schemas), "results": draw(schemas)}
    if draw(st.integers(0, 9)) == 0:
        made["when"] = "a"
    return made


@st.composite
def definitions(draw: Any) -> bytes:
    count = draw(st.integers(1, 4))
    ends = st.builds(
        lambda place, port: {"node": uid(place), "port": port},
        st.integers(1, count + 1),
        st.sampled_from(PORTS),
    )
    document = {
        "id": uid(0),
        "nodes": [draw(nodes(number)) for number in range(1, count + 1)],
        "edges": draw(
            st.lists(st.builds(lambda a, b: {"source": a, "target": b}, ends, ends), max_size=4)
        ),
        "inputs": draw(
            st.dictionaries(
                st.sampled_from(["a", "b c"]),
                st.builds(
                    lambda schema, default: {"schema": schema, "default": default}, schemas, values
                ),
                max_size=1,
            )
        ),
        "outputs": draw(
            st.dictionaries(st.just("o"), st.builds(lambda end: {"source": end}, ends), max_size=1)
        ),
    }
    return msgspec.json.encode(document)


@pytest.mark.timeout(900)  # it takes two minutes alone on a slow machine
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(definitions())
def test_what_is_valid_is_carried_out_and_nothing_else(raw: bytes) -> None:
    definition = decode_definition(raw)
    problems = validate(definition, CORE)
    try:
        plan = plan_workflow(definition, CORE)
    except InvalidDocument as refused:
        assert problems[: len(refused.problems)] == list(refused.problems) or len(problems) >= 100
        return
    assert problems == []
    plan.check()
    assert decode_plan(encode_plan(plan)) == plan
