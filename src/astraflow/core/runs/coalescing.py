"""Pieces of output, joined: what somebody reads ten times a second needs no event for each token.

Pieces of one attempt and one channel become one event with their text in order. Pieces of different nodes may change
places with one another; nothing passes any other event of its run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from astraflow.core.contract.events import JoinedOutput, NodeOutput
from astraflow.core.contract.streams import StreamItem

GROUP_CHARS: Final = 128 * 1024
"""The text that is gathered of one run before it is given out."""
_Key = tuple[object, ...]


class _Gathered:
    """The pieces of one run that are being joined."""

    __slots__ = ("chars", "pieces")

    def __init__(self) -> None:
        self.pieces: dict[_Key, list[StreamItem]] = {}
        self.chars = 0

    def add(self, key: _Key, item: StreamItem) -> None:
        self.pieces.setdefault(key, []).append(item)
        self.chars += len(item.body.text)

    def take(self) -> list[StreamItem]:
        items = [_join(pieces) for pieces in self.pieces.values()]
        self.pieces, self.chars = {}, 0
        return items


def join_outputs(items: Iterable[StreamItem]) -> Iterator[list[StreamItem]]:
    """The items with their output joined, in groups. A group is sent whole: the numbers in it are not in order."""
    gathered: dict[str | None, _Gathered] = {}
    for item in items:
        body = item.body
        of_run = gathered.get(item.run_id)
        if isinstance(body, NodeOutput) and body.text is not None and body.metadata is None:
            if of_run is None:
                of_run = gathered[item.run_id] = _Gathered()
            of_run.add(_key(body), item)
            if of_run.chars >= GROUP_CHARS:
                yield of_run.take()
            continue
        if of_run is not None and of_run.pieces:
            yield of_run.take()
        yield [item]
    for of_run in gathered.values():
        if of_run.pieces:
            yield of_run.take()


def as_joined(body: NodeOutput) -> JoinedOutput:
    """A piece of output in the form of several."""
    if isinstance(body, JoinedOutput):
        return body
    return JoinedOutput(**msgspec.structs.asdict(body))


def _key(body: NodeOutput) -> _Key:
    return (
        body.node_id,
        body.scope_path,
        body.call_id,
        body.middleware_node_id,
        body.attempt,
        body.channel,
        body.mime_type,
    )


def _join(pieces: list[StreamItem]) -> StreamItem:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    fields = msgspec.structs.asdict(first.body)
    fields["text"] = "".join(one.body.text for one in pieces)
    body = JoinedOutput(**fields, pieces=len(pieces))
    return msgspec.structs.replace(first, id=pieces[-1].id, body=body)
