"""What does not fit into a result is stored, and read again before the next handler runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk import Context
from astraflow_sdk.handles import ResourceError, ResourceHandle
from astraflow_sdk.host.large_results import (
    MAX_VALUES,
    VALUE_TYPE,
    allows_large,
    has_values,
    read_values,
)
from astraflow_sdk.host.outcome import encode_value
from astraflow_sdk.resources import LocalRegistry

from tests.tables import each_row
from tests.unit.sdk.port import Ear

LIMIT = 4_000


class Keeper(Ear):
    """A host whose attempts can keep files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.registry = LocalRegistry(folder, run_id="r-1", worker_id="w-1")

    def registry_of(self, ctx: Context) -> Any:
        return self.registry


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path)


def context(keeper: Keeper, parameters: Any = None, **fields: Any) -> Context:
    frame = {
        "task_id": "t-1",
        "attempt": 2,
        "run_id": "r-1",
        "node_id": "n-1",
        "node_type": "a.b",
        "parameters": parameters or {},
        **fields,
    }
    return Context(frame, keeper)


def told(keeper: Keeper, value: object, stores_large: bool = True) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(
        encode_value(context(keeper), value, LIMIT, stores_large=stores_large)
    )
    return frame


def stored_in(keeper: Keeper, ref: dict[str, Any]) -> Any:
    handle = keeper.registry.kept[ref["resourceRef"]["resourceId"]].handle
    return json.loads(handle.read_bytes())


def test_only_what_is_too_large_is_stored(keeper: Keeper) -> None:
    frame = told(keeper, {"small": 1, "large": "x" * LIMIT, "other": "y" * 2_000})
    result = frame["result"]
    assert (result["small"], result["other"]) == (1, "y" * 2_000)
    ref = result["large"]["resourceRef"]
    assert (ref["type"], ref["workerId"], ref["sizeBytes"]) == (VALUE_TYPE, "w-1", LIMIT + 2)
    assert stored_in(keeper, result["large"]) == "x" * LIMIT
    [artifact] = frame["artifacts"]
    assert artifact["resource_id"] == ref["resourceId"]
    assert artifact["metadata"]["durable"] is True
    assert artifact["metadata"]["sha256"] == ref["sha256"]


@each_row(("size", "is_stored"), [(LIMIT - 1, False), (LIMIT, False), (LIMIT + 1, True)])
def test_the_limit_is_exact(size: int, is_stored: bool, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / str(size))
    frame = told(keeper, "x" * (size - len('{"result":""}')))
    assert isinstance(frame["result"]["result"], dict) == is_stored


def test_text_is_counted_in_bytes(keeper: Keeper) -> None:
    frame = told(keeper, {"text": "ä" * 2_500})
    assert stored_in(keeper, frame["result"]["text"]) == "ä" * 2_500


def test_a_package_that_does_not_allow_it_fails_as_before(keeper: Keeper) -> None:
    frame = told(keeper, {"large": "x" * LIMIT}, stores_large=False)
    assert (frame["status"], frame["error"]["code"]) == ("FAILED", "E.RESULT.TOO_LARGE")
    assert keeper.registry.kept == {}


@pytest.mark.parametrize(
    "value",
    [
        {str(number): "x" * 100 for number in range(1_000)},
        {str(number): "x" * 1_100 for number in range(MAX_VALUES * 4)},
    ],
    ids=["many small members", "more than can be referred to"],
)
def test_what_storing_would_not_make_fit_fails_as_before(keeper: Keeper, value: Any) -> None:
    assert told(keeper, value)["error"]["code"] == "E.RESULT.TOO_LARGE"
    assert keeper.registry.kept == {}


def test_without_a_place_to_keep_it_the_attempt_fails() -> None:
    frame = {"task_id": "t", "attempt": 1, "run_id": "r", "node_type": "a.b", "parameters": {}}
    text = encode_value(Context(frame, Ear()), {"large": "x" * LIMIT}, LIMIT, stores_large=True)
    assert json.loads(text)["error"]["code"] == "E.RESULT.TOO_LARGE"


@each_row(
    ("manifest", "types"),
    [
        ({}, set()),
        ({"nodes": [{"type": "a.b"}]}, set()),
        (
            {"largeResults": "reference", "nodes": [{"type": "a.b"}, {"type": "a.c"}]},
            {"a.b", "a.c"},
        ),
        (
            {
                "largeResults": "reference",
                "nodes": [{"type": "a.b", "largeResults": "fail"}, {"type": "a.c"}],
            },
            {"a.c"},
        ),
        ({"nodes": [{"type": "a.b", "largeResults": "reference"}, {"type": "a.c"}]}, {"a.b"}),
    ],
)
def test_the_package_says_what_is_allowed_and_the_node_type_knows_better(
    manifest: Any, types: set[str]
) -> None:
    assert allows_large(manifest) == types


def _leased(keeper: Keeper, path: Path) -> dict[str, Any]:
    handle = ResourceHandle("r-1", VALUE_TYPE, "w-1", "run", metadata={"path": str(path)})
    keeper.registry.leased["r-1"] = handle
    return {"resourceRef": {"resourceId": "r-1", "workerId": "w-1", "type": VALUE_TYPE}}


def test_a_handler_sees_the_value_wherever_it_stands(keeper: Keeper, tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text('{"many": [1, 2]}')
    ref = _leased(keeper, path)
    file = {"resourceRef": {"resourceId": "f", "workerId": "w-1", "type": "file"}}
    given = {"top": ref, "deep": [{"one": ref}], "file": file, "plain": 3}
    ctx = context(keeper, given, leased=[{"type": VALUE_TYPE}])
    assert has_values(ctx)
    read_values(ctx)
    value = {"many": [1, 2]}
    assert ctx.parameters == {"top": value, "deep": [{"one": value}], "file": file, "plain": 3}


def test_an_attempt_without_values_reads_nothing(keeper: Keeper) -> None:
    assert not has_values(context(keeper, {"a": 1}))
    assert not has_values(context(keeper, {"a": 1}, leased=[{"type": "file"}]))


@pytest.mark.parametrize("content", [None, "no json"])
def test_a_value_that_cannot_be_read_is_a_loss(
    keeper: Keeper, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "value.json"
    if content is not None:
        path.write_text(content)
    ctx = context(keeper, {"a": _leased(keeper, path)}, leased=[{"type": VALUE_TYPE}])
    with pytest.raises(ResourceError) as lost:
        read_values(ctx)
    assert lost.value.code == "E.RESOURCE.LOST"
