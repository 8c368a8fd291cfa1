"""Stored tokens over HTTP and on live connections, on real sockets."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.security.policy import Role
from tests.api.rig import OTHER, WAIT_S, WORKFLOW, Rig, problem_of, serving
from tests.api.scripted import token_of
from tests.api.test_events import following
from tests.rawsocket import hello

TOKENS = "/api/v1/tokens"


async def create(rig: Rig, **body: Any) -> dict[str, Any]:
    answer = await rig.post(TOKENS, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


async def listed(rig: Rig, **headers: str) -> dict[str, dict[str, Any]]:
    answer = await rig.get(TOKENS, headers=headers)
    return {one["tokenId"]: one for one in answer.json()["items"]}


async def test_a_token_is_made_used_listed_and_revoked() -> None:
    async with serving() as rig:
        made = await create(rig, role="viewer", label="a job", ttlSeconds=60, subject="job")
        assert made["token"].startswith("astra_")
        assert (made["tenant"], made["subject"], made["role"]) == ("default", "job", "viewer")
        me = await rig.get("/api/v1/me", headers=bearer(made["token"]))
        body = me.json()
        assert 0 < body.pop("expiresInSeconds") <= 60
        assert body == {
            "tenant": "default",
            "subject": "job",
            "role": "viewer",
            "expiresAt": made["expiresAt"],
        }
        shown = (await listed(rig))[made["tokenId"]]
        assert (shown["label"], shown["kind"], shown["revokedAt"]) == ("a job", "api", None)
        assert shown["createdBy"] == "admin of default"
        assert made["token"] not in str(shown)
        for _ in range(2):
            gone = await rig.client.delete(f"{TOKENS}/{made['tokenId']}")
            assert gone.status_code == 204
        answer = await rig.get("/api/v1/me", headers=bearer(made["token"]))
        problem_of(answer, 401, "E.AUTH.INVALID_TOKEN")
        assert (await listed(rig))[made["tokenId"]]["revokedAt"] is not None
        audited = (await rig.get("/api/v1/audit?action=token.")).json()["items"]
        actions = [
            one["action"] for one in audited if one["detail"].get("subject") == made["tokenId"]
        ]
        assert actions == ["token.revoke", "token.create"]


async def test_tokens_outlive_the_scheduler_and_so_does_their_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with serving(url, folder=tmp_path) as rig:
        good, gone = await create(rig), await create(rig)
        await rig.client.delete(f"{TOKENS}/{gone['tokenId']}")
    async with serving(url, folder=tmp_path) as rig:
        assert (await rig.get("/api/v1/me", headers=bearer(good["token"]))).status_code == 200
        assert (await rig.get("/api/v1/me", headers=bearer(gone["token"]))).status_code == 401
        assert b"astra_" not in (tmp_path / "store.db").read_bytes()


@pytest.mark.parametrize(
    ("asker", "body"),
    [
        (Role.VIEWER, {"role": "editor"}),
        (Role.OPERATOR, {"role": "editor"}),
        (Role.EDITOR, {"role": "operator"}),
        (Role.OPERATOR, {"role": "worker"}),
        (Role.VIEWER, {"role": "metrics"}),
        (Role.OPERATOR, {"subject": "somebody"}),
        (Role.OPERATOR, {"tenant": OTHER}),
    ],
)
async def test_nobody_makes_a_token_that_may_do_more(asker: Role, body: dict[str, Any]) -> None:
    async with serving() as rig:
        answer = await rig.as_(asker, "POST", TOKENS, json=body)
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")


async def test_an_admin_of_another_tenant_makes_none_for_the_site() -> None:
    async with serving() as rig:
        headers = bearer(token_of(Role.ADMIN, OTHER))
        answer = await rig.post(TOKENS, json={"tenant": "default"}, headers=headers)
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")
        own = await rig.post(TOKENS, json={"tenant": OTHER}, headers=headers)
        assert own.status_code == 201


async def test_only_the_tenant_of_the_site_has_tokens_for_metrics() -> None:
    async with serving() as rig:
        assert (await rig.post("/api/v1/tenants", json={"tenant": OTHER})).status_code == 201
        body = {"role": "metrics", "tenant": OTHER}
        for headers in (bearer(token_of(Role.ADMIN)), bearer(token_of(Role.ADMIN, OTHER))):
            answer = await rig.post(TOKENS, json=body, headers=headers)
            problem_of(answer, 403, "E.AUTH.FORBIDDEN")
        made = await create(rig, role="metrics")
        answer = await rig.post(f"{TOKENS}/renew", headers=bearer(made["token"]))
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")
        shown = (await listed(rig))[made["tokenId"]]
        assert (shown["role"], shown["subject"]) == ("metrics", "admin of default")


@pytest.mark.parametrize(
    "body",
    [
        {"ttlSeconds": 0},
        {"ttlSeconds": -1},
        {"ttlSeconds": 2**63},
        {"ttlSeconds": 1.5},
        {"role": "root"},
        {"subject": ""},
        {"subject": "a b"},
        {"subject": "a\n"},
        {"tenant": "default\n"},
        {"subject": "x" * 129},
        {"label": "x" * 201},
        {"tenant": "../default"},
        {"token": "mine"},
    ],
)
async def test_what_cannot_be_a_token_is_refused(body: dict[str, Any]) -> None:
    async with serving() as rig:
        problem_of(await rig.post(TOKENS, json=body), 400, "E.REQUEST.INVALID")


async def test_a_token_does_not_outlive_the_one_that_it_is_made_with() -> None:
    async with serving() as rig:
        short = await create(rig, role="operator", ttlSeconds=60)
        headers = bearer(short["token"])
        for body in ({"ttlSeconds": 61}, {"ttlSeconds": None}):
            answer = await rig.post(TOKENS, json=body, headers=headers)
            assert problem_of(answer, 400, "E.REQUEST.INVALID")["errors"][0]["pointer"] == (
                "/ttlSeconds"
            )
        usual = await rig.post(TOKENS, json={}, headers=headers)
        assert usual.json()["expiresAt"] <= short["expiresAt"]
        endless = await create(rig, ttlSeconds=None)
        assert endless["expiresAt"] is None


async def test_others_see_and_revoke_only_their_own() -> None:
    async with serving() as rig:
        of_admin = await create(rig)
        own = (await rig.as_(Role.VIEWER, "POST", TOKENS, json={})).json()
        headers = bearer(token_of(Role.VIEWER))
        assert list(await listed(rig, **headers)) == [own["tokenId"]]
        assert set(await listed(rig)) == {own["tokenId"], of_admin["tokenId"]}
        elsewhere = bearer(token_of(Role.ADMIN, OTHER))
        assert await listed(rig, **elsewhere) == {}
        for who, token_id in ((headers, of_admin["tokenId"]), (elsewhere, own["tokenId"])):
            answer = await rig.client.delete(f"{TOKENS}/{token_id}", headers=who)
            problem_of(answer, 404, "E.TOKEN.NOT_FOUND")
        assert (await rig.client.delete(f"{TOKENS}/{own['tokenId']}", headers=headers)).is_success


async def test_tokens_are_listed_in_pages() -> None:
    async with serving() as rig:
        made = [(await create(rig))["tokenId"] for _ in range(3)]
        first = (await rig.get(f"{TOKENS}?limit=2")).json()
        rest = (await rig.get(f"{TOKENS}?limit=2&cursor={first['nextCursor']}")).json()
        found = [one["tokenId"] for one in first["items"] + rest["items"]]
        assert found == made[::-1]
        assert rest["nextCursor"] is None


async def test_revoking_ends_the_session_of_a_worker() -> None:
    async with serving() as rig:
        made = await create(rig, role="worker")
        kept = await create(rig, role="worker")
        async with (
            rig.worker("revoked", token=made["token"]) as worker,
            rig.worker("other", token=kept["token"]) as other,
        ):
            await rig.client.delete(f"{TOKENS}/{made['tokenId']}")
            reset = await worker.next("control.reset")
            assert reset["code"] == "E.AUTH.INVALID_TOKEN"
            await rig.submit()
            await other.task()  # its session lives on
        status = await rig.until(
            "/api/v1/workers", lambda page: [one["status"] for one in page["items"]]
        )
        assert len(status["items"]) == 2


async def test_a_worker_whose_token_expires_is_told() -> None:
    async with serving() as rig:
        made = await create(rig, role="worker", ttlSeconds=1)
        async with rig.worker(token=made["token"]) as worker:
            reset = await worker.next("control.reset")
            assert reset["code"] == "E.AUTH.INVALID_TOKEN"


@pytest.mark.parametrize("ends", ["revoked", "expired"])
async def test_an_event_stream_ends_with_its_token(ends: str) -> None:
    async with serving() as rig:
        made = await create(rig, role="viewer", ttlSeconds=1 if ends == "expired" else 60)
        async with following(rig, "", **bearer(made["token"])) as stream, following(rig, "") as own:
            await stream.comment(1)
            if ends == "revoked":
                await rig.client.delete(f"{TOKENS}/{made['tokenId']}")
            async with asyncio.timeout(WAIT_S):
                last = await stream.next()
                assert last is not None
                assert last["event"] == "error"
                assert last["data"]["code"] == "E.AUTH.INVALID_TOKEN"
                assert await stream.next() is None
            await rig.submit()
            async with asyncio.timeout(WAIT_S):
                event = await own.next()
            assert event is not None and event["event"] == "run.status"


async def test_a_long_download_is_cut_off_with_its_token() -> None:
    """The client reads nothing, so that most of the response waits at the server."""
    async with serving() as rig:
        text, count = "x" * 1_000_000, 24
        nodes = [
            {"id": str(uuid.uuid4()), "type": "core.echo", "parameters": {"value": text}}
            for _ in range(count)
        ]
        body = {"id": WORKFLOW, "metadata": {"name": "large"}, "nodes": nodes, "edges": []}
        saved = await rig.post("/api/v1/workflows", json=body)
        assert saved.status_code == 201, saved.text[:300]
        made = await create(rig, role="viewer")
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        try:
            writer.write(
                f"GET /api/v1/workflows/{WORKFLOW} HTTP/1.1\r\nhost: localhost\r\n"
                f"authorization: Bearer {made['token']}\r\n\r\n".encode()
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            assert head.startswith(b"HTTP/1.1 200 ")
            await rig.client.delete(f"{TOKENS}/{made['tokenId']}")
            got = 0
            try:
                while piece := await asyncio.wait_for(reader.read(1 << 20), WAIT_S):
                    got += len(piece)
            except ConnectionResetError:
                pass
            assert got < count * len(text)
        finally:
            writer.close()


async def test_the_use_of_a_token_is_written_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astraflow.scheduler.credentials.WRITE_USES_EVERY_S", 0.0)
    async with serving() as rig:
        made = await create(rig)
        assert (await listed(rig))[made["tokenId"]]["lastUsedAt"] is None
        await rig.get("/api/v1/me", headers=bearer(made["token"]))
        await rig.until(TOKENS, lambda page: page["items"][0]["lastUsedAt"] is not None)


async def test_a_worker_renews_its_token_until_one_of_them_is_revoked() -> None:
    async with serving() as rig:
        first = await create(rig, role="worker", ttlSeconds=60, label="build", subject="builders")
        answer = await rig.post(f"{TOKENS}/renew", headers=bearer(first["token"]))
        assert answer.status_code == 201, answer.text
        second = answer.json()
        assert (second["subject"], second["role"]) == ("builders", "worker")
        shown = (await listed(rig))[second["tokenId"]]
        assert (shown["renewedFrom"], shown["label"]) == (first["tokenId"], "build")
        async with rig.worker(token=second["token"]) as worker:
            await rig.client.delete(f"{TOKENS}/{first['tokenId']}")
            assert (await worker.next("control.reset"))["code"] == "E.AUTH.INVALID_TOKEN"
        for made in (first, second):
            again = await rig.post(f"{TOKENS}/renew", headers=bearer(made["token"]))
            problem_of(again, 401, "E.AUTH.INVALID_TOKEN")


async def test_a_session_lives_on_with_the_token_that_was_presented_last() -> None:
    async with serving() as rig:
        short = await create(rig, role="worker", ttlSeconds=1, subject="builders")
        long = await create(rig, role="worker", ttlSeconds=60, subject="builders")
        async with rig.worker(token=short["token"]) as worker:
            worker.send("control.handshake", hello("w1", long["token"]))
            await rig.until(TOKENS, lambda page: await_expiry(page, short["tokenId"]))
            await rig.submit()
            await worker.task()
            await rig.client.delete(f"{TOKENS}/{long['tokenId']}")
            assert (await worker.next("control.reset"))["code"] == "E.AUTH.INVALID_TOKEN"


def await_expiry(page: dict[str, Any], token_id: str) -> bool:
    (until,) = [one["expiresAt"] for one in page["items"] if one["tokenId"] == token_id]
    return datetime.fromisoformat(until) < datetime.now(UTC) - timedelta(seconds=1)


async def test_what_does_not_expire_and_what_is_no_workers_is_not_renewed() -> None:
    async with serving() as rig:
        endless = await create(rig, role="worker", ttlSeconds=None)
        for text in (endless["token"], token_of(Role.WORKER)):
            answer = await rig.post(f"{TOKENS}/renew", headers=bearer(text))
            problem_of(answer, 409, "E.TOKEN.NOT_RENEWABLE")
        person = await create(rig, role="admin", ttlSeconds=60)
        answer = await rig.post(f"{TOKENS}/renew", headers=bearer(person["token"]))
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")


async def test_the_family_of_a_token_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astraflow.scheduler.tokens.MAX_FAMILY", 3)
    async with serving() as rig:
        first = await create(rig, role="worker", ttlSeconds=60)
        for _ in range(2):
            assert (await rig.post(f"{TOKENS}/renew", headers=bearer(first["token"]))).is_success
        answer = await rig.post(f"{TOKENS}/renew", headers=bearer(first["token"]))
        problem_of(answer, 409, "E.TOKEN.NOT_RENEWABLE")
