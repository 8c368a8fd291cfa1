from __future__ import annotations

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.workflow.overrides import override

RAW = (
    b'{"id": "w",  "nodes": [{"id": "a", "parameters": {"x": 1, "y": 2}}, {"id": "b"}], "mine": 1}'
)
PACKAGES = {"a": "core", "b": "acme.texts"}


def test_without_changes_the_definition_is_the_same_bytes() -> None:
    assert override(RAW, {}, {}, PACKAGES) == (RAW, frozenset())


def test_members_of_parameters_are_replaced_and_others_stay() -> None:
    raw, changed = override(RAW, {"a": {"x": None, "z": [1]}, "b": {"q": 1}}, {}, PACKAGES)
    document = msgspec.json.decode(raw)
    assert [node["parameters"] for node in document["nodes"]] == [
        {"x": None, "y": 2, "z": [1]},
        {"q": 1},
    ]
    assert document["mine"] == 1
    assert changed == {"a", "b"}


def test_nodes_of_a_package_get_its_version() -> None:
    raw, changed = override(RAW, {}, {"acme.texts": "1.2.3"}, PACKAGES)
    nodes = msgspec.json.decode(raw)["nodes"]
    assert nodes[1]["package"] == {"name": "acme.texts", "version": "1.2.3"}
    assert "package" not in nodes[0]
    assert changed == {"b"}


def test_what_is_not_in_the_definition_is_refused_with_its_place() -> None:
    with pytest.raises(errors.Refused) as caught:
        override(RAW, {"a/b": {}}, {}, PACKAGES)
    assert caught.value.pointer == "/parameters/a~1b"
    with pytest.raises(errors.Refused) as caught:
        override(RAW, {}, {"other": "1.0.0"}, PACKAGES)
    assert caught.value.pointer == "/packages/other"
