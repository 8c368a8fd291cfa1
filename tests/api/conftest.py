"""The loops on which the parts of a node run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import uvloop

# libuv opens a pipe with its first loop, once for the process: in a test that would count as a leak.
uvloop.new_event_loop().close()


@pytest.fixture(params=["asyncio", "uvloop"])
def each_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nodes run on uvloop, whose transports differ."""
    if request.param == "uvloop":
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    yield
    asyncio.set_event_loop_policy(None)
