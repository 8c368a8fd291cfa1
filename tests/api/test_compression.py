"""Large responses as gzip: for whoever accepts it, and never where bytes are counted or waited for."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from astraflow.api.compression import MIN_BYTES, accepts_gzip
from astraflow.api.responses import PIECE_BYTES, REQUEST_ID, Response
from tests.api.rig import NODE_A, WORKFLOW, Rig, definition, serving
from tests.api.test_packages import publish
from tests.scheduler.packing import pack
from tests.tables import each_row

LARGE = "/api/openapi.json"


def scope_of(*accepted: str, method: str = "GET", version: str = "1.1") -> dict[str, Any]:
    headers = [(b"accept-encoding", one.encode()) for one in accepted]
    return {"method": method, "http_version": version, "headers": headers, REQUEST_ID: b"r"}


@each_row(
    ("accepted", "is_wanted"),
    [
        (["gzip"], True),
        (["gzip, deflate, br"], True),
        (["GZIP"], True),
        (["x-gzip"], True),
        (["br", "gzip"], True),
        (["deflate;q=1.0, gzip;q=0.5"], True),
        (["gzip;q=0.001"], True),
        (["gzip ; q=1"], True),
        (["*"], True),
        (["*;q=0.3"], True),
        (["identity, gzip"], True),
        ([], False),
        ([""], False),
        (["identity"], False),
        (["br"], False),
        (["gzipped"], False),
        (["gzip;q=0"], False),
        (["gzip;q=0.000"], False),
        (["*, gzip;q=0"], False),
        (["*;q=0"], False),
        (["gzip;q=0.5, identity"], False),
        (["gzip;q=high"], False),
        (["gzip;q=-1"], False),
        ([";;,,;q="], False),
    ],
)
def test_a_client_gets_gzip_if_it_wants_it(accepted: list[str], is_wanted: bool) -> None:
    assert accepts_gzip(scope_of(*accepted)) is is_wanted


def test_what_needs_the_length_before_gets_no_gzip() -> None:
    assert not accepts_gzip(scope_of("gzip", method="HEAD"))
    assert not accepts_gzip(scope_of("gzip", version="1.0"))


async def _raw(
    rig: Rig, path: str, *headers: str, method: str = "GET", version: str = "1.1"
) -> Any:
    """The head, as a dictionary, and the body as it was sent."""
    token = rig.client.headers["authorization"]
    lines = [f"{method} {path} HTTP/{version}", "host: localhost", f"authorization: {token}"]
    lines += [*headers, "connection: close", "", ""]
    head, _, body = (await rig.raw("\r\n".join(lines).encode())).partition(b"\r\n\r\n")
    named = [line.partition(": ") for line in head.decode().lower().split("\r\n")[1:]]
    return {name: value for name, _, value in named}, body


async def test_a_large_response_is_compressed_and_says_that_it_varies() -> None:
    async with serving() as rig:
        plain_head, plain = await _raw(rig, LARGE)
        assert "content-encoding" not in plain_head
        assert (plain_head["vary"], int(plain_head["content-length"])) == (
            "accept-encoding", len(plain),
        )  # fmt: skip
        answer = await rig.get(LARGE, headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
        assert answer.content == plain
        assert answer.num_bytes_downloaded < len(plain) / 3


async def test_an_old_client_gets_the_bytes_with_their_length() -> None:
    async with serving() as rig:
        head, body = await _raw(rig, LARGE, "accept-encoding: gzip", version="1.0")
        assert "content-encoding" not in head
        assert int(head["content-length"]) == len(body) >= MIN_BYTES
        json.loads(body)


async def test_a_small_response_stays_as_it_is() -> None:
    async with serving() as rig:
        head, _ = await _raw(rig, "/api/v1/me", "accept-encoding: gzip")
        assert "content-encoding" not in head
        assert "vary" not in head


async def test_a_response_with_an_etag_is_the_bytes_that_the_etag_names() -> None:
    async with serving() as rig:
        node = {"id": NODE_A, "type": "core.echo", "parameters": {"value": "x" * MIN_BYTES}}
        large = definition(nodes=[node])
        saved = await rig.post("/api/v1/workflows", json=large)
        assert saved.status_code == 201, saved.text
        head, body = await _raw(rig, f"/api/v1/workflows/{WORKFLOW}", "accept-encoding: gzip")
        assert head["etag"] == '"1"'
        assert "content-encoding" not in head
        assert json.loads(body) == large


async def test_files_and_streams_are_never_compressed() -> None:
    async with serving() as rig:
        archive = pack()
        await publish(rig, archive)
        path = "/api/v1/packages/demo/1.0.0/archive"
        head, body = await _raw(rig, path, "accept-encoding: gzip")
        assert "content-encoding" not in head
        assert body == archive
        head, body = await _raw(rig, path, "accept-encoding: gzip", "range: bytes=2-5")
        assert "content-encoding" not in head
        assert (head["content-range"], body) == (f"bytes 2-5/{len(archive)}", archive[2:6])
        run_id = await rig.submit()
        await rig.post(f"/api/v1/runs/{run_id}/cancel")
        head, _ = await _raw(rig, f"/api/v1/events?runId={run_id}", "accept-encoding: gzip")
        assert head["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in head


@pytest.mark.parametrize("pieces", [1, 40])
async def test_the_loop_turns_while_a_response_is_compressed(pieces: int) -> None:
    turns = 0
    sent: list[dict[str, Any]] = []

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is awaited from the client")

    body = b"".join(b'{"n":%d}' % number for number in range(pieces * PIECE_BYTES // 8))
    body = body[: pieces * PIECE_BYTES]
    turning = asyncio.create_task(turn())
    await Response(body)(scope_of("gzip"), receive, send)
    turning.cancel()
    assert turns > pieces
    assert max(len(one.get("body", b"")) for one in sent) <= PIECE_BYTES
    assert [one.get("more_body") for one in sent][-1] is False
    assert gzip.decompress(b"".join(one.get("body", b"") for one in sent)) == body
