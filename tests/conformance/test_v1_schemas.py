"""The schemas of protocol 1 and the adapter accept and refuse the same frames.

The adapter has few models of its own: most payloads are judged by those of protocol 2 behind it. So the whole of it is
asked: adapter, codec and gateway.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.protocol import business, codec, control
from astraflow.core.protocol.v1 import frames
from tests.conformance.test_wire_schemas import ERROR, ODD_VALUES, ROOT, SHARED, places
from tests.unit.core.protocol.test_v1 import OldPair, dispatch_of, frame, opened

ENVELOPE: Final = "envelope"
FROM_SCHEDULER: Final = {
    frames.DISPATCH: business.DISPATCH,
    frames.DRAIN: control.DRAIN,
    frames.PKG_INSTALL: business.PKG_INSTALL,
    frames.PKG_UNINSTALL: business.PKG_UNINSTALL,
    frames.NEXT_RESPONSE: business.NEXT_RESPONSE,
}
FROM_WORKER: Final = sorted(frames.V1_TYPES - set(FROM_SCHEDULER))
NAMES: Final = [ENVELOPE, *sorted(frames.V1_TYPES)]
FOLDER: Final = ROOT / "v1"
SCHEMAS: Final = {name: json.loads((FOLDER / f"{name}.schema.json").read_text()) for name in NAMES}
VALIDATORS: Final = {
    name: jsonschema_rs.Draft202012Validator(schema, registry=SHARED)
    for name, schema in SCHEMAS.items()
}


def examples(kind: str, name: str) -> list[tuple[str, Any]]:
    path: Path = ROOT / "examples" / f"v1.{name}.json"
    return list(json.loads(path.read_text())[kind].items())


def all_examples(kind: str, names: list[str]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{stem}")
        for name in names
        for stem, value in examples(kind, name)
    ]


def adapter_accepts(name: str, value: Any) -> bool:
    if name == ENVELOPE:
        try:
            frames.decode_v1(msgspec.json.encode(value))
        except codec.BadFrame:
            return False
        return True
    if name == frames.HANDSHAKE:
        pair = OldPair()
        got = pair.say(frame(name, value))
        return not any(one["payload"]["code"] == "E.PROTOCOL.BAD_PAYLOAD" for one in _errors(got))
    pair = opened()
    pair.dispatch()
    before = pair.gateway.counters.get("refused", 0)
    got = pair.say(frame(name, value, corr="r.0", seq=1))
    return not _errors(got) and pair.gateway.counters.get("refused", 0) == before


def _errors(got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in got if one["type"] == "error"]


def test_every_frame_type_has_a_schema_and_every_schema_a_frame_type() -> None:
    on_disk = {path.name.removesuffix(".schema.json") for path in FOLDER.glob("*.schema.json")}
    assert on_disk == set(NAMES)
    assert ERROR["$id"]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_schema_and_has_examples(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:astraflow:schema:v1.{name}"
    assert len(examples("valid", name)) >= 2
    assert len(examples("invalid", name)) >= 3


@pytest.mark.parametrize(("name", "value"), all_examples("valid", NAMES))
def test_a_valid_example_is_valid(name: str, value: Any) -> None:
    VALIDATORS[name].validate(value)
    assert name in FROM_SCHEDULER or adapter_accepts(name, value)


@pytest.mark.parametrize(("name", "value"), all_examples("invalid", NAMES))
def test_an_invalid_example_is_refused_by_both(name: str, value: Any) -> None:
    assert not VALIDATORS[name].is_valid(value)
    assert name in FROM_SCHEDULER or not adapter_accepts(name, value)


@pytest.mark.parametrize("name", [ENVELOPE, *FROM_WORKER])
@settings(max_examples=60)
@given(data=st.data())
def test_both_judge_a_changed_example_alike(name: str, data: st.DataObject) -> None:
    value = json.loads(json.dumps(data.draw(st.sampled_from(examples("valid", name)))[1]))
    place = data.draw(st.sampled_from(places(value)))
    odd = data.draw(st.sampled_from(ODD_VALUES))
    if place:
        parent = value
        for step in place[:-1]:
            parent = parent[step]
        parent[place[-1]] = odd
    else:
        value = odd
    assert adapter_accepts(name, value) == VALIDATORS[name].is_valid(value), value


@pytest.mark.parametrize("name", sorted(FROM_SCHEDULER))
def test_what_the_adapter_says_fits_its_schema(name: str) -> None:
    """Every example of protocol 2, as a worker of protocol 1 gets it."""
    v2 = FROM_SCHEDULER[name]
    found = json.loads((ROOT / "examples" / f"{v2}.json").read_text())["valid"]
    pair = opened()
    for value in found.values():
        payload = codec.decode(json.dumps(frame(v2, value, "01J8ZQ5T9GQ4X7V2N3M1K0HABC")).encode())
        (got,) = pair.command(v2, payload.payload)
        assert got["type"] == name
        VALIDATORS[name].validate(got["payload"])
        VALIDATORS[ENVELOPE].validate(got)


def test_every_answer_of_the_adapter_fits_its_schema() -> None:
    pair = opened()
    pair.command(business.DISPATCH, dispatch_of(), "r.0")
    pair.say(frame("what", {}, "a"), frame("heartbeat", {}, "b"), frame("ack", {}, "c"))
    pair.say(frame("result", {"status": "SUCCEEDED"}, "d", corr="r.0", seq=9))
    assert {one["type"] for one in pair.got} == {"ack", "error", "cmd.dispatch"}
    for got in pair.got:
        VALIDATORS[ENVELOPE].validate(got)
        VALIDATORS[got["type"]].validate(got["payload"])
