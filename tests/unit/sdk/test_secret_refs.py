from __future__ import annotations

import pytest
from astraflow_sdk import Context
from astraflow_sdk.errors import ConfigurationError
from astraflow_sdk.secret_refs import with_secrets

from tests.unit.sdk.port import Ear


def context(**frame: object) -> Context:
    given = {"task_id": "t", "attempt": 1, "node_type": "p.x", "parameters": {}, **frame}
    return Context(given, Ear())


def test_references_become_values_and_nothing_else_changes() -> None:
    ref = {"secretRef": {"name": "one"}}
    other = {"secretRef": {"name": "two"}}
    odd = {"secretRef": {"name": "one"}, "more": 1}
    given = {"a": ref, "b": [1, ref, {"c": other}], "d": odd, "e": {"secretRef": "one"}}
    parameters = context(parameters=given, secrets={"one": "value"}).parameters
    assert parameters == {
        "a": "value",
        "b": [1, "value", {"c": other}],
        "d": {"secretRef": {"name": "one"}, "more": 1},
        "e": {"secretRef": "one"},
    }
    assert given["a"] == ref, "what came is as it came"
    assert context(parameters=given).parameters is given


def test_a_secret_is_asked_for_by_name() -> None:
    ctx = context(secrets={"one": "value"})
    assert ctx.secret("one") == "value"
    assert with_secrets(3, {"one": "value"}) == 3
    with pytest.raises(ConfigurationError, match="two"):
        ctx.secret("two")
