"""One id for a request: in its response, its problem document, its log lines and its audit rows."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from astraflow.observe.logs import JsonFormatter, Redaction
from tests.api.rig import Rig, definition, serving
from tests.api.test_packages import publish
from tests.scheduler.packing import pack

HEADER = "x-request-id"
UPGRADE = (
    b"GET /ws/worker HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
)


async def _id_of(rig: Rig, *given: str) -> str:
    headers = [(HEADER, one) for one in given]
    answer = await rig.client.get("/healthz", headers=headers)
    (made,) = answer.headers.get_list(HEADER)
    return str(made)


async def test_a_request_keeps_the_id_that_it_came_with() -> None:
    async with serving() as rig:
        for given in ("a", "01JCQ6Z0M3V8R6T2XK9D4HB7WN", "x" * 128, "a.b_c:d=e+f/g@h-i"):
            assert await _id_of(rig, given) == given


NO_WORDS = {
    "longer": "x" * 129,
    "empty": "",
    "with a space": "a b",
    "with a quote": 'a"b',
    "with a bracket": "a{b}",
    "an encoded line end": "a%0d%0ab",
}


async def test_an_id_that_is_no_plain_word_is_replaced() -> None:
    async with serving() as rig:
        for what, given in NO_WORDS.items():
            assert await _id_of(rig, given) not in ("", given), what


async def test_two_ids_are_none() -> None:
    async with serving() as rig:
        assert await _id_of(rig, "one", "two") not in ("one", "two", "one, two")


async def test_ids_that_are_made_are_never_the_same() -> None:
    async with serving() as rig:
        assert len({await _id_of(rig) for _ in range(100)}) == 100


async def test_every_kind_of_response_has_an_id(tmp_path: Path) -> None:
    async with serving(folder=tmp_path) as rig:
        run_id = await rig.submit()
        await publish(rig, pack())
        cancelled = await rig.post(f"/api/v1/runs/{run_id}/cancel")
        assert cancelled.status_code == 200
        stream = f"/api/v1/events?runId={run_id}"
        last = (await rig.get(stream)).text.count("\nid: ")
        statuses = set()
        for method, path, headers in (
            ("GET", "/healthz", {}),
            ("GET", "/", {}),
            ("GET", "/api/docs", {}),
            ("GET", "/metrics", {}),
            ("GET", "/api/v1/packages/demo/1.0.0/archive", {}),
            ("GET", "/api/v1/packages/demo/1.0.0/archive", {"range": "bytes=0-1"}),
            ("GET", stream, {}),
            ("GET", f"{stream}&lastEventId={last}", {}),
            ("GET", "/api/v1/runs/nope", {}),
            ("GET", "/nothing", {}),
            ("PATCH", "/api/v1/runs", {}),
            ("GET", "/healthz", {"host": "evil.test"}),
            ("GET", "/api/v1/runs", {"authorization": "Bearer wrong"}),
            ("POST", "/api/v1/runs", {}),
        ):
            given = {HEADER: "mine", **headers}
            answer = await rig.client.request(method, path, headers=given)
            statuses.add(answer.status_code)
            assert answer.headers.get_list(HEADER) == ["mine"], (method, path)
            if answer.status_code >= 400:
                wanted = None if answer.status_code == 401 else "urn:astraflow:request:mine"
                assert answer.json().get("instance") == wanted, path
        assert statuses >= {200, 204, 206, 400, 401, 404, 405}


async def test_what_is_no_request_gets_an_id_too() -> None:
    async with serving() as rig:
        head, _, body = (await rig.raw(b"not http at all\r\n\r\n")).partition(b"\r\n\r\n")
        (line,) = [one for one in head.split(b"\r\n") if one.startswith(b"x-request-id: ")]
        instance = json.loads(body)["instance"]
        assert instance == f"urn:astraflow:request:{line.partition(b': ')[2].decode()}"


@pytest.mark.parametrize(("version", "status"), [(b"13", b"400"), (b"7", b"426")])
async def test_a_refused_upgrade_names_its_request(version: bytes, status: bytes) -> None:
    async with serving() as rig:
        more = b"x-request-id: mine\r\nsec-websocket-version: " + version + b"\r\n\r\n"
        answer = await rig.raw(UPGRADE + more)
        assert answer.split(b" ")[1] == status
        assert b"X-Request-Id: mine\r\n" in answer


async def test_the_audit_has_the_request_and_what_it_was_about() -> None:
    async with serving() as rig:
        run_id = await rig.submit()
        await rig.post(f"/api/v1/runs/{run_id}/cancel", headers={HEADER: "mine"})
        forbidden = await rig.as_(
            "viewer", "POST", "/api/v1/runs", json={"workflow": definition()},
            headers={HEADER: "theirs"},
        )  # fmt: skip
        assert forbidden.status_code == 403
        rows = (await rig.get("/api/v1/audit")).json()["items"]
        assert [(one["action"], one["corr"], one["detail"]) for one in rows] == [
            ("POST /api/v1/runs", "theirs", {}),
            ("cancel", "mine", {"subject": run_id}),
        ]


async def test_the_log_lines_of_a_request_have_its_id(caplog: pytest.LogCaptureFixture) -> None:
    lines: list[dict[str, str]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonFormatter(Redaction()).format(record)))

    handler = Kept()
    logging.getLogger("astraflow").addHandler(handler)
    try:
        async with serving() as rig:

            def fail(*_: object) -> None:
                raise RuntimeError("a bug")

            rig.scheduler.workers.of_tenant = fail
            answer = await rig.get("/api/v1/workers", headers={HEADER: "mine"})
            assert (answer.status_code, answer.json()["requestId"]) == (500, "mine")
            logging.getLogger("astraflow.test").warning("outside")
    finally:
        logging.getLogger("astraflow").removeHandler(handler)
    (failed,) = [one for one in lines if one["message"].startswith("request failed")]
    assert (failed["request"], failed["code"]) == ("mine", "E.INTERNAL")
    (outside,) = [one for one in lines if one["message"] == "outside"]
    assert "request" not in outside
