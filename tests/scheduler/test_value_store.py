"""The list of a map is read from its copy; what the engine could not go over is told and not handed on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import NoteList, NoteValue
from astraflow.core.engine.effects import ReadList, StoreValue
from astraflow.core.ids import RunId
from astraflow.scheduler import value_store
from astraflow.scheduler.copies import Copies, Copy
from astraflow.scheduler.current import Current
from astraflow.scheduler.value_store import ValueStore
from astraflow.store.memory import MemoryStore
from tests.scheduler.packing import Place, chunks

RUN = RunId("run1")


class Told:
    """In the place of the engine: keeps what it is told."""

    def __init__(self, error: errors.AstraflowError | None = None) -> None:
        self.commands: asyncio.Queue[Any] = asyncio.Queue()
        self._error = error

    def execute(self, command: Any) -> None:
        self.commands.put_nowait(command)
        if self._error is not None:
            raise self._error

    async def next(self) -> Any:
        async with asyncio.timeout(30):
            return await self.commands.get()


class Away:
    """Copies whose blob store does not answer for some requests."""

    def __init__(self, copies: Copies, misses: int) -> None:
        self._copies = copies
        self._misses = misses

    def __getattr__(self, name: str) -> Any:
        if name in ("size", "keep") and self._misses:
            self._misses -= 1
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "the bucket is away")
        return getattr(self._copies, name)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_store, "FIRST_DELAY_S", 0.0)


async def read(folder: Path, value: bytes | None, misses: int = 0, sha256: str = "") -> NoteList:
    """What the engine is told of a list with these bytes."""
    copies = Place(MemoryStore(), folder).copies
    copy = None
    if value is not None:
        made = await copies.keep(chunks(value), max(1, len(value)))
        copy = Copy(made.key, sha256 or made.sha256).text()
    told = Told()
    values = ValueStore(cast("Copies", Away(copies, misses)), cast("Current", told))
    values.read(ReadList("default", RUN, 3, "r1", copy))
    command = await told.next()
    assert isinstance(command, NoteList)
    assert (command.run_id, command.task, command.resource_id) == (RUN, 3, "r1")
    return command


@pytest.mark.parametrize(
    "value",
    [
        b"[]",
        b"[1, 2.5, null]",
        b' [\n{"a": "\\u00fc"}\n] ',
        b'{"a": 1}',
        b'"text"',
        b"[" * 40 + b"]" * 40,
    ],
)
async def test_json_is_handed_on_as_it_is(tmp_path: Path, value: bytes) -> None:
    command = await read(tmp_path, value)
    assert (command.items, command.failure) == (value, None)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "truncated"),
        (b"[1, 2", "truncated"),
        (b"[1] [2]", "trailing"),
        (b"[NaN]", "malformed"),
        (b"[1.2.3]", "malformed"),
        (b"[1e400]", "number"),
        (b"[123456789012345678901234567890]", "integer"),
        (b'["\xff"]', "UTF-8"),
        (b'["\\ud800"]', "truncated"),
        (b'["\\u0000"]', "U+0000"),
        (b"[" * 200 + b"]" * 200, "nested"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": 1', "truncated"),
        (b'{"a": 1e400}', "number"),
    ],
)
async def test_what_no_reader_could_hold_is_refused(
    tmp_path: Path, value: bytes, says: str
) -> None:
    failure = (await read(tmp_path, value)).failure
    assert failure is not None
    assert failure.code == "E.TASK.INPUT_INVALID"
    assert says.lower() in failure.message.lower(), failure.message


async def test_a_list_that_is_not_there_or_has_other_bytes_is_lost(tmp_path: Path) -> None:
    for command in (
        await read(tmp_path, None),
        await read(tmp_path, b"[1]", sha256="0" * 64),
    ):
        assert command.failure is not None
        assert command.failure.code == "E.RESOURCE.LOST"
    told = Told()
    values = ValueStore(Place(MemoryStore(), tmp_path).copies, cast("Current", told))
    values.read(ReadList("default", RUN, 3, "r1", "artifacts/gone?sha256=00"))
    assert (await told.next()).failure.code == "E.RESOURCE.LOST"


async def test_a_list_that_is_too_long_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_store, "MAX_LIST_BYTES", 10)
    command = await read(tmp_path, json.dumps(list(range(4))).encode())
    assert command.failure is not None
    assert command.failure.code == "E.TASK.TOO_MANY"
    assert "12 bytes" in command.failure.message


async def test_many_lists_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    copies = Place(MemoryStore(), tmp_path).copies
    made = (await copies.keep(chunks(b"[1]"), 3)).text()
    under_way, most, told = 0, 0, Told()

    class Counting:
        async def size(self, copy: Copy) -> int:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            size = await copies.size(copy)
            under_way -= 1
            return size

        def __getattr__(self, name: str) -> Any:
            return getattr(copies, name)

    values = ValueStore(cast("Copies", Counting()), cast("Current", told))
    for task in range(20):
        values.read(ReadList("default", RUN, task, "r1", made))
    answers = [await told.next() for _ in range(20)]
    assert {one.task for one in answers if one.items == b"[1]"} == set(range(20))
    assert most == value_store.READS_AT_ONCE


async def test_a_store_that_is_away_is_asked_again(tmp_path: Path) -> None:
    assert (await read(tmp_path, b"[1]", misses=value_store.TRIES - 1)).items == b"[1]"
    failure = (await read(tmp_path, b"[1]", misses=value_store.TRIES)).failure
    assert failure is not None
    assert (failure.code, failure.category) == ("E.STORE.UNAVAILABLE", "INFRASTRUCTURE")


@pytest.mark.parametrize("misses", [0, value_store.TRIES - 1, value_store.TRIES])
async def test_what_a_map_collected_is_stored_before_the_engine_is_told(
    tmp_path: Path, misses: int
) -> None:
    copies = Place(MemoryStore(), tmp_path).copies
    told = Told(errors.NotFound(errors.RUN_NOT_FOUND, "the run has ended"))
    values = ValueStore(cast("Copies", Away(copies, misses)), cast("Current", told))
    values.store(StoreValue("default", RUN, 3, b"[1,2]"))
    command = await told.next()
    assert isinstance(command, NoteValue)
    if misses == value_store.TRIES:
        assert (command.blob, command.problem) == (None, "the bucket is away")
    else:
        assert command.blob is not None
        copy = Copy.parse(command.blob)
        assert await copies.size(copy) == command.size_bytes == 5


async def test_without_a_blob_store_nothing_is_stored_or_read() -> None:
    told = Told()
    values = ValueStore(None, cast("Current", told))
    values.store(StoreValue("default", RUN, 3, b"[1,2]"))
    assert (await told.next()).blob is None
    values.read(ReadList("default", RUN, 3, "r1", "artifacts/a?sha256=00"))
    assert (await told.next()).failure.code == "E.RESOURCE.LOST"
