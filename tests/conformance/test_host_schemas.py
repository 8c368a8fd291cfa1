"""The frames of package hosts: schemas, the worker's models and what a real host says agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, get_args

import jsonschema_rs
import msgspec
import pytest

from astraflow.worker.hosts import frames
from tests.worker.hosts.stage import staged, value_of

ROOT: Final = Path(__file__).resolve().parents[2] / "schemas"
MODELS: Final[dict[str, type[msgspec.Struct]]] = {
    model.__struct_config__.tag: model
    for model in (*get_args(frames.ToHost), *get_args(frames.FromHost))
}
ERROR: Final = json.loads((ROOT / "error.schema.json").read_text())
SHARED: Final = jsonschema_rs.Registry([(ERROR["$id"], ERROR)])
SCHEMAS: Final = {
    name: json.loads((ROOT / "host" / f"{name}.schema.json").read_text()) for name in MODELS
}


def is_valid(name: str, value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(SCHEMAS[name], registry=SHARED).is_valid(value)


def is_readable(name: str, value: Any) -> bool:
    try:
        msgspec.json.decode(json.dumps(value), type=MODELS[name])
    except msgspec.ValidationError:
        return False
    return True


def examples(kind: str) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{what}")
        for name in MODELS
        for what, value in json.loads((ROOT / "examples" / f"host.{name}.json").read_text())[
            kind
        ].items()
    ]


def test_every_frame_has_a_schema_and_every_schema_a_frame() -> None:
    on_disk = {path.name.removesuffix(".schema.json") for path in (ROOT / "host").glob("*.json")}
    assert on_disk == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_has_exactly_the_fields_of_its_model(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(MODELS[name])}
    assert set(SCHEMAS[name]["properties"]) == {"type", *fields}
    required = {field for field, is_required in fields.items() if is_required}
    assert set(SCHEMAS[name]["required"]) == {"type", *required}


@pytest.mark.parametrize(("name", "value"), examples("valid"))
def test_a_valid_example_is_accepted_by_both(name: str, value: Any) -> None:
    assert is_valid(name, value)
    assert is_readable(name, value)


@pytest.mark.parametrize(("name", "value"), examples("invalid"))
def test_an_invalid_example_is_refused_by_both(name: str, value: Any) -> None:
    assert not is_valid(name, value)
    assert not is_readable(name, value)


async def test_what_a_real_host_says_fits_the_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[dict[str, Any]] = []
    decode = frames.decode

    def hear(raw: bytes) -> frames.FromHost:
        heard.append(json.loads(raw))
        return decode(raw)

    monkeypatch.setattr(frames, "decode", hear)

    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.stream", {"text": "a b"}, task="streams")
        made = await stage.outcome_of("core.file", {"text": "a"}, task="makes a file")
        await stage.outcome_of("core.read_file", value_of(made), task="reads it")
        await stage.outcome_of("core.fail", {}, task="fails")
        stage.start("nasty.middleware", task="calls", chain_index=0)
        await stage.until(lambda: stage.calls)
    assert {frame["type"] for frame in heard} == {
        "hello", "result", "feedback", "next", "register", "lease", "use",
    }  # fmt: skip
    assert all(is_valid(frame["type"], frame) for frame in heard)
