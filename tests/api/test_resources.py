"""Resources over HTTP: listed, shown, prolonged, closed; artifacts downloaded; uploads of workers taken in."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from astraflow.clock import SystemClock
from astraflow.core.security.policy import Role
from tests.api.rig import OTHER, Rig, problem_of, serving
from tests.api.scripted import ScriptedWorker, token_of

RESOURCES, ARTIFACTS = "/api/v1/resources", "/api/v1/artifacts"
DEEP = "run-1/session A/frame-001"
BODY = DEEP.encode()
"""What a worker uploads: the id of the resource."""


@asynccontextmanager
async def holding(rig: Rig, *ids: str, **more: Any) -> AsyncIterator[ScriptedWorker]:
    """A worker `w1` that keeps these resources."""
    async with rig.worker() as worker:
        for resource_id in ids:
            worker.hold(resource_id, **more)
        await held(rig, len(ids))
        yield worker


async def held(rig: Rig, count: int, query: str = "") -> None:
    """Until so many resources are listed."""
    await rig.until(f"{RESOURCES}{query}", lambda page: len(page["items"]) == count)


def path_of(resource_id: str, of: str = ARTIFACTS) -> str:
    return f"{of}/{quote(resource_id)}"


async def test_resources_are_listed_in_pages_and_by_what_they_are() -> None:
    def at(second: int) -> str:
        return f"2026-01-15T10:00:{second:02}.000Z"

    async with (
        serving() as rig,
        rig.worker("w1") as first,
        rig.worker("w2") as second,
        rig.worker("x", OTHER) as theirs,
    ):
        for number in range(3):
            first.hold(f"r{number}", run_id="run-1", created_at=at(number))
        second.hold("t", type="tensor", created_at=at(9))
        theirs.hold("x")
        await held(rig, 4)
        seen: list[str] = []
        cursor = ""
        while True:
            page = (await rig.get(f"{RESOURCES}?limit=2{cursor}")).json()
            seen += [one["resourceId"] for one in page["items"]]
            if page["nextCursor"] is None:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == ["t", "r2", "r1", "r0"]
        for query, count in (("runId=run-1", 3), ("workerId=w2", 1), ("type=tensor", 1)):
            assert len((await rig.get(f"{RESOURCES}?{query}")).json()["items"]) == count
        assert (await rig.get(f"{RESOURCES}?state=evicted")).json()["items"] == []
        odd = await rig.get(f"{RESOURCES}?state=odd")
        assert problem_of(odd, 400, "E.REQUEST.INVALID")["parameter"] == "state"


async def test_a_resource_is_named_by_all_the_rest_of_the_path() -> None:
    async with serving() as rig, holding(rig, DEEP):
        shown = (await rig.get(path_of(DEEP, RESOURCES))).json()
        assert (shown["resourceId"], shown["hasCopy"]) == (DEEP, False)
        assert shown["metadata"]["mime"] == "image/png"
        theirs = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        answer = await rig.get(path_of(DEEP, RESOURCES), headers=theirs)
        problem_of(answer, 404, "E.RESOURCE.MISSING")


async def test_of_two_workers_with_one_id_one_must_be_named() -> None:
    async with serving() as rig:
        async with rig.worker("w1") as first, rig.worker("w2") as second:
            first.hold("r")
            second.hold("r")
            await held(rig, 2)
            problem_of(await rig.get(f"{RESOURCES}/r"), 409, "E.RESOURCE.CONFLICT")
            assert (await rig.get(f"{RESOURCES}/r?workerId=w2")).json()["workerId"] == "w2"
            gone = await rig.client.delete(f"{RESOURCES}/r?workerId=w1")
            assert gone.status_code == 204
            told = await first.next("biz.resource.cleanup")
            assert told["resource_id"] == "r"
        audit = (await rig.get("/api/v1/audit")).json()["items"]
        (row,) = [one for one in audit if one["action"] == "resource.close"]
        assert (row["who"], row["action"], row["detail"]["subject"]) == (
            "admin of default", "resource.close", "r",
        )  # fmt: skip


async def test_a_resource_is_prolonged() -> None:
    async with serving() as rig, holding(rig, "r"):
        longer = await rig.client.patch(f"{RESOURCES}/r", json={"ttlSeconds": 60})
        assert longer.json()["expiresAt"] is not None
        for body in ({"ttlSeconds": 0}, {}, {"ttlSeconds": 60, "more": 1}):
            answer = await rig.client.patch(f"{RESOURCES}/r", json=body)
            problem_of(answer, 400, "E.REQUEST.INVALID")


async def test_an_artifact_is_brought_here_once_and_shared_by_a_link() -> None:
    async with serving() as rig, holding(rig, DEEP) as worker:
        exported = worker.serve_exports()
        shared = (await rig.post(path_of(DEEP))).json()
        assert shared["sizeBytes"] == len(BODY)
        assert shared["sha256"] == hashlib.sha256(BODY).hexdigest()
        assert shared["mime"] == "image/png"
        await rig.post(path_of(DEEP))
        assert exported == [DEEP]
        link = urlsplit(shared["url"])
        del rig.client.headers["authorization"]
        answer = await rig.get(f"{link.path}?{link.query}")
        assert (answer.status_code, answer.content) == (200, BODY)
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == (
            "attachment; filename=\"shot _.png\"; filename*=UTF-8''shot%20%C3%A4.png"
        )
        problem_of(await rig.get(path_of(DEEP)), 401, "E.AUTH.INVALID_TOKEN")
        other = f"{ARTIFACTS}/other?{link.query}"
        problem_of(await rig.get(other), 401, "E.AUTH.INVALID_TOKEN")


async def test_with_a_token_an_artifact_is_brought_here_when_it_is_asked_for() -> None:
    async with serving() as rig, holding(rig, DEEP) as worker:
        exported = worker.serve_exports()
        assert (await rig.get(path_of(DEEP))).content == BODY
        head = await rig.client.head(path_of(DEEP))
        assert head.headers["content-length"] == str(len(BODY))
        assert exported == [DEEP]
        problem_of(await rig.get(path_of("nothing")), 404, "E.RESOURCE.MISSING")


RANGES = [
    ("bytes=0-3", 206, slice(0, 4)),
    ("bytes=4-", 206, slice(4, None)),
    ("bytes=-3", 206, slice(-3, None)),
    ("bytes=0-999999", 206, slice(None)),
    ("bytes=-999999", 206, slice(None)),
    ("bytes=0-1,3-4", 200, slice(None)),
    ("bytes=5-2", 200, slice(None)),
    ("bytes=-", 200, slice(None)),
    ("lines=1-2", 200, slice(None)),
]


@pytest.mark.parametrize(("asked", "status", "part"), RANGES)
async def test_a_part_of_an_artifact_can_be_read(asked: str, status: int, part: slice) -> None:
    async with serving() as rig, holding(rig, DEEP) as worker:
        worker.serve_exports()
        answer = await rig.get(path_of(DEEP), headers={"range": asked})
        assert (answer.status_code, answer.content) == (status, BODY[part])
        if status == 206:
            start, stop, _ = part.indices(len(BODY))
            assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(BODY)}"


async def test_behind_the_end_there_is_nothing_to_read() -> None:
    async with serving() as rig, holding(rig, DEEP) as worker:
        worker.serve_exports()
        for asked in (f"bytes={len(BODY)}-", "bytes=-0"):
            answer = await rig.get(path_of(DEEP), headers={"range": asked})
            problem_of(answer, 416, "E.REQUEST.RANGE")
            assert answer.headers["content-range"] == f"bytes */{len(BODY)}"


async def test_a_download_goes_on_only_in_the_same_content() -> None:
    async with serving() as rig, holding(rig, DEEP) as worker:
        worker.serve_exports()
        etag = (await rig.get(path_of(DEEP))).headers["etag"]
        same = {"range": "bytes=4-", "if-range": etag}
        other = {"range": "bytes=4-", "if-range": '"another"'}
        assert (await rig.get(path_of(DEEP), headers=same)).status_code == 206
        whole = await rig.get(path_of(DEEP), headers=other)
        assert (whole.status_code, whole.content) == (200, BODY)
        unchanged = await rig.get(path_of(DEEP), headers={"if-none-match": etag})
        assert (unchanged.status_code, unchanged.content) == (304, b"")


def upload_path(rig: Rig, resource_id: str = "r", worker_id: str = "w1") -> str:
    url: str = rig.scheduler.blobs.copies.upload_url(("default", worker_id, resource_id))
    return urlsplit(url).path


async def test_an_upload_is_taken_with_its_link_and_may_come_twice() -> None:
    async with serving() as rig, holding(rig, "r") as worker:
        exported = worker.serve_exports()
        path = upload_path(rig)
        admin = {"authorization": rig.client.headers.pop("authorization")}
        for body in (b"first", b"second"):
            answer = await rig.client.put(path, content=body)
            assert answer.status_code == 201, answer.text
            assert answer.json()["sha256"] == hashlib.sha256(body).hexdigest()
            assert (await rig.get(f"{ARTIFACTS}/r", headers=admin)).content == body
        assert exported == []
        removed = await rig.scheduler.blobs.tidy(SystemClock().wall_ms() + 10**12)
        assert removed == 1  # the first copy: nobody refers to it any more
        assert (await rig.get(f"{ARTIFACTS}/r", headers=admin)).content == b"second"


async def test_a_link_to_upload_is_the_only_key_and_opens_nothing_else() -> None:
    async with serving() as rig, holding(rig, "r"):
        path = upload_path(rig)
        problem_of(await rig.client.put(path, content=b"x"), 403, "E.AUTH.FORBIDDEN")
        admin = {"authorization": rig.client.headers.pop("authorization")}
        for wrong in (
            path[:-2] + "AA",
            "/api/v1/uploads/x",
            path.replace("uploads/", "uploads/A"),
        ):
            problem_of(await rig.client.put(wrong, content=b"x"), 401, "E.AUTH.INVALID_TOKEN")
        token = path.rpartition("/")[2]
        answer = await rig.get(f"{ARTIFACTS}/r?token={token}")
        problem_of(answer, 401, "E.AUTH.INVALID_TOKEN")
        answer = await rig.client.put(upload_path(rig, "gone"), content=b"x")
        problem_of(answer, 404, "E.RESOURCE.MISSING")
        assert (await rig.get(f"{RESOURCES}/r", headers=admin)).json()["hasCopy"] is False


async def test_an_upload_that_breaks_off_is_no_copy() -> None:
    async with serving() as rig, holding(rig, "r") as worker:
        worker.serve_exports()
        head = (
            f"PUT {upload_path(rig)} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", rig.port)) as line:
            line.sendall(head.encode() + b"x" * 500_000)
        answer = await rig.get(f"{RESOURCES}/r")
        assert answer.json()["hasCopy"] is False
        assert (await rig.get(f"{ARTIFACTS}/r")).content == b"r"


MANY = 200
PIECE = os.urandom(1024**2)
MAX_GROWTH_BYTES = 32 * 1024**2


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_large_files_pass_through_without_staying_in_memory() -> None:
    """The test is server and client in one process: what both of them hold is counted."""

    async with serving() as rig, holding(rig, "small", "large"):
        admin = {"authorization": rig.client.headers.pop("authorization")}

        async def pieces(count: int) -> AsyncIterator[bytes]:
            for _ in range(count):
                yield PIECE
                grown.append(resident_bytes())

        async def there_and_back(resource_id: str, count: int) -> None:
            sent = await rig.client.put(upload_path(rig, resource_id), content=pieces(count))
            digest = hashlib.sha256()
            async with rig.client.stream(
                "GET", f"{ARTIFACTS}/{resource_id}", headers=admin
            ) as answer:
                async for piece in answer.aiter_bytes():
                    digest.update(piece)
                    grown.append(resident_bytes())
            assert sent.json()["sha256"] == digest.hexdigest()

        grown: list[int] = []
        await there_and_back("small", 2)  # what is allocated once is there from here on
        before = resident_bytes()
        grown.clear()
        await there_and_back("large", MANY)
        assert max(grown) - before <= MAX_GROWTH_BYTES


async def test_a_slow_reader_that_leaves_ends_the_reading() -> None:
    async with serving() as rig, holding(rig, "r"):
        admin = rig.client.headers.pop("authorization")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(64):
                yield PIECE

        await rig.client.put(upload_path(rig), content=pieces())
        ended = asyncio.Event()
        copies = rig.scheduler.blobs.copies
        read = copies.read

        async def watched(*arguments: Any) -> AsyncIterator[bytes]:
            try:
                async for piece in read(*arguments):
                    yield piece
            finally:
                ended.set()

        copies.read = watched
        async with httpx.AsyncClient(trust_env=False, verify=False) as other:
            url = f"http://127.0.0.1:{rig.port}{ARTIFACTS}/r"
            async with other.stream("GET", url, headers={"authorization": admin}) as answer:
                await anext(answer.aiter_raw())
                assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 20)


async def test_a_resource_says_who_made_it_and_how_large_it_is() -> None:
    async with serving() as rig:
        package = {"name": "demo", "version": "1.0.0"}
        made = {"run_id": "run-1", "node_id": "n", "package": package, "scope": "run-1"}
        async with holding(rig, "r", size_bytes=7, **made):
            shown = (await rig.get(f"{RESOURCES}/r")).json()
        assert shown["sizeBytes"] == 7
        assert (shown["runId"], shown["nodeId"], shown["package"]) == ("run-1", "n", "demo 1.0.0")


async def test_a_link_for_workers_that_are_passed_on_is_of_the_address_that_they_know() -> None:
    async with serving() as rig:
        url = rig.scheduler.blobs.copies.upload_url(("default", "w1", "r"))
        assert url.startswith(f"http://127.0.0.1:{rig.port}/api/v1/uploads/")
    async with serving(worker_routing="relay") as rig:
        url = rig.scheduler.blobs.copies.upload_url(("default", "w1", "r"))
        assert url.startswith("/api/v1/uploads/")
    async with serving(worker_routing="relay", public_url="https://flow.example") as rig:
        url = rig.scheduler.blobs.copies.upload_url(("default", "w1", "r"))
        assert url.startswith("https://flow.example/api/v1/uploads/")
