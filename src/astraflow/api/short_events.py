"""The short way to the bytes of the events that nearly all events are.

A run is accepted, started, and ends; a node that is neither wrapped nor inside of another is leased, started, and has
succeeded. The events of these facts are written into templates, without the structs that describe them. `event_bytes`
of `events_of` gives the same bytes, and writes all others.
"""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.core.runs.facts import (
    AttemptStarted,
    Fact,
    RunAccepted,
    RunFinished,
    RunStarted,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.timestamps import iso

_HEAD: Final = (
    b'id: %d\nevent: {0}\ndata: {{"id":%d,"type":"{0}","occurredAt":"%b","scope":{{"nodeId":%b}},'
    b'"data":{{"nodeId":%b,'
)


def _template(kind: str, rest: str) -> bytes:
    head = _HEAD.decode().format(kind)
    return f"{head}{rest}}}}}\n\n".encode()


_LEASED: Final = _template("node.state", '"status":"dispatched","attempt":%d,"workerId":%b')
_STARTED: Final = _template("node.state", '"status":"running","attempt":%d')
_RESULT: Final = _template("node.result.snapshot", '"attempt":%d,"result":%b,"artifacts":[]')
_SUCCEEDED: Final = _template("node.state", '"status":"succeeded","attempt":%d')
_RUN: Final = (
    b'id: %d\nevent: run.status\ndata: {"id":%d,"type":"run.status","occurredAt":"%b","scope":{},'
    b'"data":{"status":"%b"}}\n\n'
)
_encode: Final = msgspec.json.Encoder().encode


def short_bytes(fact: Fact, first: int, places: TaskPlaces) -> bytes | None:
    """The events of a fact, numbered from `first`, on the wire; None: this is not one of the simple ones."""
    kind = type(fact)
    if kind is TaskLeased:
        assert isinstance(fact, TaskLeased)
        node = places.plain_id(fact.task)
        if node is None:
            return None
        at = iso(fact.at).encode()
        return _LEASED % (first, first, at, node, node, fact.attempt, _encode(fact.worker))
    if kind is AttemptStarted:
        assert isinstance(fact, AttemptStarted)
        node = places.plain_id(fact.task)
        if node is None:
            return None
        return _STARTED % (first, first, iso(fact.at).encode(), node, node, fact.attempt)
    if kind is TaskSucceeded:
        assert isinstance(fact, TaskSucceeded)
        node = places.plain_id(fact.task)
        if node is None or fact.artifacts:
            return None
        at, attempt, last = iso(fact.at).encode(), fact.attempt, first + 1
        result = _RESULT % (first, first, at, node, node, attempt, bytes(fact.result))
        return result + _SUCCEEDED % (last, last, at, node, node, attempt)
    status = _run_status(fact)
    return None if status is None else _RUN % (first, first, iso(fact.at).encode(), status)


def _run_status(fact: Fact) -> bytes | None:
    if isinstance(fact, RunFinished):
        return None if fact.error is not None else fact.status.encode()
    if isinstance(fact, RunAccepted):
        return b"queued"
    return b"running" if isinstance(fact, RunStarted) else None
