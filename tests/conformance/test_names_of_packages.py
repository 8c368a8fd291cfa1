"""Who may claim the name of a package, a version or a node type: tried by a foreign worker and a publisher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_worker_socket import connected, served
from tests.conformance.test_session_peer import acked, client, enter, submit
from tests.packages.archives import DEFLATED, Item, items, manifest, write_zip
from tests.rawsocket import RawSocket, frame
from tests.scheduler.packing import pack

PACKAGES = "/api/v1/packages"
ZIP = {"content-type": "application/zip"}


def claiming(name: str, version: str, *types: str) -> dict[str, Any]:
    return manifest(name=name, version=version, nodes=[{"type": one} for one in types])


async def claim(socket: RawSocket, seq: int, document: dict[str, Any]) -> None:
    payload = {
        "name": document["name"],
        "version": document["version"],
        "manifest_sha256": "ab" * 32,
        "manifest": document,
    }
    socket.send(frame("w-1", "biz.pkg.catalog", payload, seq=seq, ack={"request": True}))
    await acked(socket, seq)


async def publish(http: httpx.AsyncClient, archive: bytes) -> httpx.Response:
    return await http.post(PACKAGES, content=archive, headers=ZIP)


@pytest.mark.parametrize(
    "document",
    [
        claiming("core", "9.9.9", "core.echo"),
        claiming("zoo", "1.0.0", "core.echo"),
        claiming("zoo", "1.0.0", "Core.Echo", "zoo.ape"),
    ],
)
async def test_a_worker_cannot_claim_the_core(tmp_path: Path, document: dict[str, Any]) -> None:
    async with served(tmp_path) as port, connected(port) as socket, client(port) as http:
        await enter(socket)
        before = (await http.get("/api/v1/catalog/nodes?limit=200")).json()["items"]
        await claim(socket, 0, document)
        await submit(http)
        dispatch = (await socket.next("biz.exec.dispatch"))["payload"]
        assert dispatch["package"] == {"name": "core", "version": "1.0.0"}
        assert (await http.get("/api/v1/catalog/nodes?limit=200")).json()["items"] == before


async def test_a_worker_cannot_outrank_the_repository(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket, client(port) as http:
        await enter(socket)
        # What the repository does not know is described by who has it ...
        await claim(socket, 0, claiming("demo", "7.0.0", "demo.say"))
        await claim(socket, 1, claiming("zoo", "1.0.0", "zoo.ape"))
        assert await versions(http, "demo.say") == {("demo", "7.0.0")}
        # ... until it is published: neither the name nor the type is a worker's from then on.
        assert (await publish(http, pack())).status_code == 201
        await claim(socket, 2, claiming("demo", "8.0.0", "demo.say"))
        await claim(socket, 3, claiming("ape", "1.0.0", "demo.say"))
        assert await versions(http, "demo.say") == {("demo", "1.0.0")}
        assert await versions(http, "zoo.ape") == {("zoo", "1.0.0")}
        # A version that was withdrawn does not free its name.
        answer = await http.post(f"{PACKAGES}/demo/1.0.0/yank", json={})
        assert answer.status_code == 200, answer.text
        assert await versions(http, "demo.say") == set()


async def versions(http: httpx.AsyncClient, node_type: str) -> set[tuple[str, str]]:
    nodes = (await http.get("/api/v1/catalog/nodes?limit=200")).json()["items"]
    return {
        (node["package"]["name"], node["package"]["version"])
        for node in nodes
        if node["type"] == node_type
    }


@pytest.mark.parametrize(
    ("document", "status", "pointer"),
    [
        (claiming("zoo", "1.0.0", "core.echo"), 422, "/nodes/0/type"),
        (claiming("zoo", "1.0.0", "core.not.yet"), 422, "/nodes/0/type"),
        (claiming("zoo", "1.0.0", "zoo.ape", "demo.say"), 409, "/nodes/1/type"),
        (claiming("demo", "1.0", "demo.say"), 409, "/version"),
        (claiming("demo", "v1.0.0.0", "demo.say"), 409, "/version"),
    ],
)
async def test_a_publisher_cannot_claim_what_others_have(
    tmp_path: Path, document: dict[str, Any], status: int, pointer: str
) -> None:
    archive = write_zip(tmp_path / "claim.cwx", items(document)).read_bytes()

    async with served(tmp_path) as port, client(port) as http:
        first = pack()
        assert (await publish(http, first)).status_code == 201
        refused = await publish(http, archive)
        assert refused.status_code == status, refused.text
        assert [one["pointer"] for one in refused.json()["errors"]] == [pointer]
        for spelling in ("1.0.0", "1.0", "v1"):
            kept = await http.get(f"{PACKAGES}/demo/{spelling}/archive")
            assert (kept.status_code, kept.content) == (200, first)
        listed = (await http.get(f"{PACKAGES}/demo")).json()
        assert [one["version"] for one in listed["versions"]] == ["1.0.0"]
        assert (await http.get("/api/v1/catalog/nodes?limit=200")).status_code == 200
        await submit(http)  # `core.echo` is not ambiguous


def _small_bomb() -> list[Item]:
    """Two thousand entries, each small enough to be packed as tightly as it can: 2 MB that unpack to 2 GB."""
    content = b"\0" * 1_000_000
    return [Item(f"part{number}", content, method=DEFLATED) for number in range(2_000)]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([Item("liar", b"abc", crc=1)], "checksum"),
        ([Item("liar", b"abc" * 1000, method=DEFLATED, size=10)], "as many bytes"),
        (_small_bomb(), "packed more than"),
    ],
)
async def test_an_archive_that_no_worker_would_unpack_is_not_published(
    tmp_path: Path, more: list[Item], says: str
) -> None:
    archive = write_zip(tmp_path / "liar.cwx", items(None, *more)).read_bytes()

    async with served(tmp_path) as port, client(port) as http:
        refused = await publish(http, archive)
        assert refused.status_code == 422, refused.text
        assert refused.json()["code"] == "E.PKG.INVALID"
        assert says in refused.json()["detail"]
        assert (await http.get(f"{PACKAGES}/demo")).status_code == 404
