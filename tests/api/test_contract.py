"""schemathesis against the served application: whatever is sent, the answer is one that the description allows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from astraflow.api.app import ROUTES
from astraflow.api.openapi import document
from astraflow.core.security.policy import Role
from tests.api.rig import Rig, definition, serving
from tests.api.scripted import token_of

schema = schemathesis.openapi.from_dict(document(ROUTES))
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


class Server:
    """A served application in a thread of its own, with a run, a workflow and a worker in it."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self.url = ""

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        # It lives as long as the server does, so it begins with it, not in some test.
        self._loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
        await asyncio.to_thread(int)
        self._ended = asyncio.Event()
        async with serving() as rig, rig.worker():
            await _fill(rig)
            self.url = f"http://127.0.0.1:{rig.port}"
            self._started.set()
            await self._ended.wait()

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(20)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(20)


async def _fill(rig: Rig) -> None:
    await rig.post("/api/v1/workflows", json=definition())
    await rig.submit()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    running.start()
    yield running
    running.stop()


# An open stream does not end by itself: the streams have tests of their own.
@schema.exclude(path="/api/v1/events").parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_description_allows(case: Any, server: Server) -> None:
    headers = {"authorization": f"Bearer {token_of(Role.ADMIN)}"}
    answer = case.call(base_url=server.url, headers=headers)
    case.validate_response(answer, checks=CHECKS)
