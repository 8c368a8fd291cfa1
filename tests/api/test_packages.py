"""Packages over HTTP: published, listed, withdrawn, chosen, fetched; and the catalog that follows them."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import urlsplit

import httpx
import pytest

from astraflow.core.security.policy import Role
from astraflow.packages import SigningKey
from tests.api.rig import NODE_A, OTHER, Rig, definition, problem_of, serving
from tests.api.scripted import token_of
from tests.scheduler.packing import pack, signed

PATH = "/api/v1/packages"
ZIP = {"content-type": "application/zip"}


async def publish(rig: Rig, archive: bytes, **headers: str) -> httpx.Response:
    return await rig.post(PATH, content=archive, headers={**ZIP, **headers})


def using(version: str | None = None) -> dict[str, object]:
    """A definition with a node of the package."""
    package = {"name": "demo", **({"version": version} if version else {})}
    node = {"id": NODE_A, "type": "demo.say", "package": package, "parameters": {}}
    return definition(nodes=[node])


async def version_of(rig: Rig, accepted: httpx.Response) -> str:
    """The version of the package that an accepted run uses."""
    run = await rig.scheduler.reader._find_run("default", accepted.json()["runId"])
    version: str = run.plan.nodes[0].package_version
    return version


async def test_a_package_is_published_once_and_never_changed() -> None:
    async with serving() as rig:
        archive = pack()
        made = await publish(rig, archive)
        assert made.status_code == 201, made.text
        assert made.json()["sha256"] == hashlib.sha256(archive).hexdigest()
        again = await publish(rig, archive)
        assert (again.status_code, again.json()) == (200, made.json())
        problem_of(await publish(rig, pack(description="x")), 409, "E.PKG.CONFLICT")
        problem_of(await publish(rig, b"not a package"), 422, "E.PKG.INVALID")
        audit = (await rig.get("/api/v1/audit?action=pkg.")).json()["items"]
        assert [(one["action"], one["detail"]["subject"]) for one in audit] == [
            ("pkg.publish", "demo 1.0.0")
        ]
        refused = (await rig.get("/api/v1/audit?outcome=refused")).json()["items"]
        assert [one["code"] for one in refused] == ["E.PKG.INVALID", "E.PKG.CONFLICT"]


async def test_an_upload_says_what_it_is_and_how_large() -> None:
    async with serving(max_package_bytes=1000000) as rig:
        archive = pack()
        answer = await rig.post(PATH, content=archive, headers={"content-type": "text/plain"})
        problem_of(answer, 415, "E.REQUEST.MEDIA_TYPE")
        answer = await publish(rig, archive, **{"content-encoding": "gzip"})
        problem_of(answer, 415, "E.REQUEST.MEDIA_TYPE")
        answer = await publish(rig, b"x" * 1_000_001)
        problem_of(answer, 413, "E.REQUEST.TOO_LARGE")


async def test_a_signature_travels_in_a_header_and_is_judged() -> None:
    async with serving() as rig:
        archive = pack()
        text = signed(archive, SigningKey.generate())
        answer = await publish(rig, archive, **{"astra-signature": "not base64!"})
        problem_of(answer, 422, "E.PKG.INVALID")
        wrong = base64.b64encode(signed(pack("9.0.0"), SigningKey.generate()).encode()).decode()
        answer = await publish(rig, archive, **{"astra-signature": wrong})
        problem_of(answer, 422, "E.PKG.INVALID")
        good = base64.b64encode(text.encode()).decode()
        answer = await publish(rig, archive, **{"astra-signature": good})
        assert answer.status_code == 201
        shown = (await rig.get(f"{PATH}/demo/1.0.0")).json()
        assert shown["signature"]["name"] == "demo"
        assert shown["manifest"]["nodes"] == [{"type": "demo.say"}]


async def test_packages_are_listed_and_shown_with_their_versions_and_workers() -> None:
    has = {"name": "demo", "version": "1.9.0", "status": "installed"}

    async with serving() as rig:
        for version in ("1.0.0", "1.10.0", "1.9.0"):
            await publish(rig, pack(version))
        await publish(rig, pack(name="zebra", nodes=[{"type": "other.say"}]))
        async with rig.worker(packages=(has,)):
            names: list[str] = []
            cursor = ""
            while True:
                page = (await rig.get(f"{PATH}?limit=1{cursor}")).json()
                names += [one["name"] for one in page["items"]]
                if page["nextCursor"] is None:
                    break
                cursor = f"&cursor={page['nextCursor']}"
            assert names == sorted(names)
            assert {"demo", "zebra"} < set(names)
            shown = (await rig.get(f"{PATH}/demo")).json()
        listed = (await rig.get(PATH)).json()["items"]
        (demo,) = [one for one in listed if one["name"] == "demo"]
        assert demo["versions"] == ["1.10.0", "1.9.0", "1.0.0"]
        assert shown["active"] == "1.10.0"
        assert {one["version"]: one["workers"] for one in shown["versions"]} == {
            "1.10.0": [],
            "1.9.0": ["w1"],
            "1.0.0": [],
        }
        problem_of(await rig.get(f"{PATH}/nothing"), 404, "E.PKG.NOT_FOUND")
        problem_of(await rig.get(f"{PATH}/demo/7.7.7"), 404, "E.PKG.NOT_FOUND")
        theirs = {"authorization": f"Bearer {token_of(Role.ADMIN, OTHER)}"}
        problem_of(await rig.get(f"{PATH}/demo", headers=theirs), 404, "E.PKG.NOT_FOUND")


async def test_a_yanked_version_is_refused_in_a_new_submission() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        await publish(rig, pack("2.0.0"))
        yanked = await rig.post(f"{PATH}/demo/2.0.0/yank", json={"reason": "it loses files"})
        assert yanked.json()["yankedReason"] == "it loses files"
        answer = await rig.post("/api/v1/runs", json={"workflow": using("2.0.0")})
        problem = problem_of(answer, 422, "E.WORKFLOW.INVALID")
        assert [one["code"] for one in problem["errors"]] == ["E.PKG.YANKED"]
        accepted = await rig.post("/api/v1/runs", json={"workflow": using()})
        assert await version_of(rig, accepted) == "1.0.0"
        assert (await rig.post(f"{PATH}/demo/2.0.0/unyank")).json()["yankedAt"] is None
        assert (
            await rig.post("/api/v1/workflows/validate", json=using("2.0.0"))
        ).status_code == 200
        problem_of(await rig.post(f"{PATH}/demo/7.7.7/yank"), 404, "E.PKG.NOT_FOUND")


async def test_a_package_that_nobody_knows_is_refused() -> None:
    async with serving() as rig:
        answer = await rig.post("/api/v1/runs", json={"workflow": using("1.0.0")})
        problem = problem_of(answer, 422, "E.WORKFLOW.INVALID")
        assert [one["code"] for one in problem["errors"]] == ["E.WORKFLOW.UNKNOWN_PACKAGE"]


async def test_the_active_version_is_chosen_and_taken_back() -> None:
    async with serving() as rig:
        for version in ("1.0.0", "2.0.0"):
            await publish(rig, pack(version))
        path = f"{PATH}/demo/active"
        for version, previous in (("2.0.0", None), ("1.0.0", "2.0.0")):
            answer = await rig.client.put(path, json={"version": version})
            assert answer.json() == {"name": "demo", "version": version, "previous": previous}
        accepted = await rig.post("/api/v1/runs", json={"workflow": using()})
        assert await version_of(rig, accepted) == "1.0.0"
        back = await rig.post(f"{PATH}/demo/rollback")
        assert back.json() == {"name": "demo", "version": "2.0.0", "previous": "1.0.0"}
        problem_of(await rig.client.put(path, json={"version": "7"}), 404, "E.PKG.NOT_FOUND")
        problem_of(await rig.client.put(path, json={}), 400, "E.REQUEST.INVALID")


async def test_a_rollout_begins_and_is_listed() -> None:
    async with serving() as rig:
        await publish(rig, pack())
        path = f"{PATH}/demo/rollout"
        begun = await rig.post(path, json={"version": "1.0.0", "waves": [50, 100]})
        assert begun.status_code == 202, begun.text
        assert (await rig.get(path)).json()["items"] == [begun.json()]
        wrong = await rig.post(path, json={"version": "1.0.0", "waves": [50]})
        problem_of(wrong, 400, "E.REQUEST.INVALID")
        problem_of(await rig.get(f"{PATH}/nothing/rollout"), 404, "E.PKG.NOT_FOUND")


async def test_an_archive_is_fetched_with_a_token_or_with_a_link() -> None:
    async with serving() as rig:
        archive = pack()
        await publish(rig, archive)
        path = f"{PATH}/demo/1.0.0/archive"
        answer = await rig.get(path)
        assert answer.content == archive
        assert answer.headers["etag"] == f'"{hashlib.sha256(archive).hexdigest()}"'
        url = rig.scheduler.packages.repository.archive_url("default", "demo", "1.0.0")
        link = urlsplit(url)
        del rig.client.headers["authorization"]
        linked = await rig.get(f"{link.path}?{link.query}", headers={"range": "bytes=2-5"})
        assert (linked.status_code, linked.content) == (206, archive[2:6])
        problem_of(await rig.get(path), 401, "E.AUTH.INVALID_TOKEN")
        problem_of(await rig.get(f"{path}?token=nonsense"), 401, "E.AUTH.INVALID_TOKEN")
        other = f"{PATH}/demo/2.0.0/archive?{link.query}"
        problem_of(await rig.get(other), 401, "E.AUTH.INVALID_TOKEN")


NODES = [
    {"type": "demo.say", "label": "Say it", "category": "text", "tags": ["speech"]},
    {"type": "demo.shout", "label": "Shout", "category": "text", "description": "as say, loud"},
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=say&package=demo", ["demo.say", "demo.shout"]),  # in its name before in its description
        ("q=speech&package=demo", ["demo.say"]),
        ("q=loud+shout", ["demo.shout"]),
        ("category=text&package=demo", ["demo.say", "demo.shout"]),
        ("package=demo&limit=1", ["demo.say"]),
        ("q=core.noop", ["core.noop"]),
        ("q=nothing+like+this", []),
    ],
)
async def test_node_types_of_packages_are_found_best_fit_first(
    query: str, expected: list[str]
) -> None:
    async with serving() as rig:
        await publish(rig, pack("0.9.0"))
        await publish(rig, pack(nodes=NODES))
        items = (await rig.get(f"/api/v1/catalog/nodes?{query}")).json()["items"]
        assert [one["type"] for one in items] == expected


async def test_one_node_type_is_shown_in_the_version_that_counts() -> None:
    async with serving() as rig:
        await publish(rig, pack("0.9.0"))
        await publish(rig, pack(nodes=NODES))
        path = "/api/v1/catalog/nodes/demo.say"
        shown = (await rig.get(path)).json()
        assert shown["package"] == {"name": "demo", "version": "1.0.0"}
        assert (shown["label"], shown["status"]) == ("Say it", "published")
        http = (await rig.get("/api/v1/catalog/nodes/core.http")).json()
        assert http["portTypes"] == {"inputs": {"url": ["string"]}, "outputs": {}}
        await rig.client.put(f"{PATH}/demo/active", json={"version": "0.9.0"})
        assert (await rig.get(path)).json()["package"]["version"] == "0.9.0"
        problem_of(await rig.get("/api/v1/catalog/nodes/no.such"), 404, "E.PKG.NOT_FOUND")


async def test_a_node_type_is_shown_as_an_editor_draws_it_in_any_version() -> None:
    words = {"help": "# How", "icon": "bolt", "color": "#4263eb"}
    drawn: list[dict[str, object]] = [{"type": "demo.say", **words}]
    async with serving() as rig:
        await publish(rig, pack("0.9.0"))
        await publish(rig, pack(nodes=drawn))
        shown = (await rig.get("/api/v1/catalog/nodes/demo.say")).json()
        assert (shown["help"], shown["icon"], shown["color"]) == ("# How", "bolt", "#4263eb")
        assert shown["errorPort"] is True
        assert "executable" not in shown
        older = (await rig.get("/api/v1/catalog/nodes/demo.say?version=0.9.0")).json()
        assert older["package"]["version"] == "0.9.0"
        missing = await rig.get("/api/v1/catalog/nodes/demo.say?version=7.0.0")
        problem_of(missing, 404, "E.PKG.NOT_FOUND")
        waits = (await rig.get("/api/v1/catalog/nodes/core.wait")).json()
        assert waits["executable"] is True
        assert "executable" not in (await rig.get("/api/v1/catalog/nodes/core.echo")).json()
        async with rig.worker():
            items = (await rig.get("/api/v1/catalog/nodes?q=core.echo")).json()["items"]
            assert items[0]["executable"] is True
