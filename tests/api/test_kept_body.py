"""Bodies that are kept to be sent again: how long they may be, and how many at once."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from astraflow.api import kept_body
from astraflow.api.kept_body import ClientLeft, KeptBody, LargeBodies

PIECE = bytes(1000)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_body, "KEPT_BYTES", 3000)
    monkeypatch.setattr(kept_body, "LARGE_BYTES", 9000)
    monkeypatch.setattr(kept_body, "MAX_LARGE", 2)


def body_of(pieces: int, *, is_cut: bool = False) -> KeptBody:
    left: list[dict[str, Any]] = [
        {"type": "http.request", "body": PIECE, "more_body": True}
    ] * pieces
    end: dict[str, Any] = {"type": "http.request"}
    messages = iter([*left, {"type": "http.disconnect"} if is_cut else end])

    async def receive() -> dict[str, Any]:
        return next(messages)

    return KeptBody(receive)


async def whole(body: KeptBody) -> bytes:
    """As an application reads it."""
    found = b""
    while True:
        message = await body.replay()
        piece: bytes = message.get("body", b"")
        found += piece
        if not message.get("more_body", False):
            return found


@pytest.mark.parametrize(("pieces", "is_kept"), [(0, True), (3, True), (4, False)])
async def test_a_body_is_kept_up_to_a_length(pieces: int, is_kept: bool) -> None:
    body = body_of(pieces)
    assert await body.fits() is is_kept
    assert await whole(body.again()) == PIECE * pieces


@pytest.mark.parametrize(("pieces", "is_kept"), [(3, True), (9, True), (10, False), (20, False)])
async def test_a_large_body_is_kept_while_there_is_room(pieces: int, is_kept: bool) -> None:
    body = body_of(pieces)
    async with LargeBodies().kept(body) as answer:
        assert answer is body.is_kept is is_kept
        for _ in range(2 if is_kept else 1):
            assert await whole(body.again()) == PIECE * pieces


async def test_no_more_large_bodies_are_kept_than_there_is_room_for() -> None:
    room = LargeBodies()
    async with AsyncExitStack() as stack:
        kept = [await stack.enter_async_context(room.kept(body_of(5))) for _ in range(3)]
        assert kept == [True, True, False]
        async with room.kept(body_of(2)) as is_kept:
            assert is_kept, "a small one needs no room"
    async with room.kept(body_of(5)) as is_kept:
        assert is_kept, "the room is free again"


async def test_a_client_that_leaves_gives_its_room_back() -> None:
    room = LargeBodies()
    for _ in range(3):
        with pytest.raises(ClientLeft):
            async with room.kept(body_of(5, is_cut=True)):
                raise AssertionError("it is not whole")
    async with room.kept(body_of(5)) as is_kept:
        assert is_kept
