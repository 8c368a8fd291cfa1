"""Package `core` in a real host: what each node type returns, refuses and says."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from astraflow.core.ids import TaskId
from astraflow.core.workflow.core_manifest import core_manifest
from astraflow.worker.hosts import core_package
from tests.worker.hosts.stage import error_of, staged, value_of


def test_the_manifest_of_the_package_is_the_one_that_the_scheduler_knows() -> None:
    """`python packages/core/make_manifest.py` writes it anew."""
    shipped = json.loads((core_package().folder / "manifest.json").read_text())
    assert shipped == core_manifest().document()


@pytest.mark.parametrize(
    ("node_type", "parameters", "value"),
    [
        ("core.noop", {"anything": [1, {"a": None}]}, {"anything": [1, {"a": None}]}),
        ("core.echo", {"value": [1, "ü", 2**63]}, {"value": [1, "ü", 2**63]}),
        ("core.echo", {}, {"value": None}),
        ("core.sleep", {"seconds": 0.01}, {"seconds": 0.01}),
        ("core.log", {"message": "hi", "level": "warning"}, {}),
        ("core.stream", {"text": "a b"}, {"text": "a b"}),
        ("core.stream", {"text": "a b", "delayMs": 1}, {"text": "a b"}),
        (
            "core.template",
            {
                "template": "{{ a }}-{{b.c}}-{{d}}-{{ no",
                "values": {"a": "x", "b": {"c": 1}, "d": [1]},
            },
            {"text": "x-1-[1]-{{ no"},
        ),
        (
            "core.python",
            {"code": "def main(a, b=2): return a + b", "inputs": {"a": 1}},
            {"result": 3},
        ),
        ("core.python", {"code": "def main(): return {'x': 1}"}, {"x": 1}),
        (
            "core.python",
            {"code": "async def main(n): return [n]", "inputs": {"n": 1}},
            {"result": [1]},
        ),
        ("core.fail", {"times": 0}, {}),
    ],
)
async def test_a_node_returns_what_its_row_says(
    tmp_path: Path, node_type: str, parameters: object, value: object
) -> None:
    async with staged(tmp_path) as stage:
        assert value_of(await stage.outcome_of(node_type, parameters)) == value
        assert stage.durations == [node_type]


@pytest.mark.parametrize(
    ("node_type", "parameters", "code", "category"),
    [
        ("core.fail", {"message": "m"}, "E.RUNNER.FAILURE", "USER_CODE"),
        ("core.fail", {"category": "DATA_QUALITY"}, "E.RUNNER.FAILURE", "DATA_QUALITY"),
        ("core.fail", {"category": "INFRASTRUCTURE"}, "E.RUNNER.FAILURE", "INFRASTRUCTURE"),
        ("core.fail", {"category": "TIMEOUT"}, "E.TIMEOUT", "TIMEOUT"),
        ("core.fail", {"category": "WEATHER"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.sleep", {"seconds": -1}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.sleep", {"seconds": "long"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.log", {"level": "loud"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.template", {"template": "{{a}}"}, "E.RUNNER.FAILURE", "DATA_QUALITY"),
        ("core.template", {"template": 1}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.stream", {"text": 1}, "E.RUNNER.FAILURE", "DATA_QUALITY"),
        ("core.python", {"code": "def main(: pass"}, "E.RUNNER.FAILURE", "USER_CODE"),
        ("core.python", {"code": "x = 1"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.python", {"code": "def main(): return 1/0"}, "E.RUNNER.FAILURE", "USER_CODE"),
        ("core.python", {"code": 5}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.http", {"url": "file:///etc/passwd"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.http", {"url": "http://h", "method": "SPY"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.http", {"url": "http://127.0.0.1:1"}, "E.RUNNER.FAILURE", "INFRASTRUCTURE"),
        (
            "core.http",
            {"url": "http://h", "timeoutSeconds": 0},
            "E.RUNNER.FAILURE",
            "CONFIGURATION",
        ),
        ("core.file", {"name": "a"}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.file", {"sizeBytes": 2**40}, "E.RUNNER.FAILURE", "CONFIGURATION"),
        ("core.read_file", {}, "E.RESOURCE.INVALID", "CONFIGURATION"),
    ],
)
async def test_a_node_refuses_with_a_code_and_a_category(
    tmp_path: Path, node_type: str, parameters: object, code: str, category: str
) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of(node_type, parameters))
        assert (error.code, error.category) == (code, category)
        assert error.message


async def test_a_failing_node_can_be_told_when_to_stop_failing(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        given = {"times": 2, "message": "not yet", "retryable": True}
        for failures in (0, 1):
            task = f"t{failures}"
            stage.start("core.fail", given, task=task, attempt=failures + 1, failures=failures)
            error = error_of(await stage.outcome(task))
            assert (error.message, error.retryable) == ("not yet", True)
        stage.start("core.fail", given, task="t2", attempt=3, failures=2)
        assert value_of(await stage.outcome("t2")) == {}


async def test_the_stack_of_a_script_begins_in_the_script(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        code = "def main():\n    return 1 / 0"
        error = error_of(await stage.outcome_of("core.python", {"code": code}))
        assert error.message == "ZeroDivisionError: division by zero"
        assert error.stack is not None
        assert 'File "<core.python>", line 2, in main' in error.stack
        assert "astraflow_sdk" not in error.stack


async def test_an_async_script_can_be_cancelled(tmp_path: Path) -> None:
    code = "import asyncio\nasync def main():\n    print('up')\n    await asyncio.Event().wait()"

    async with staged(tmp_path) as stage:
        stage.start("core.python", {"code": code})
        await stage.up()
        stage.pool.cancel(TaskId("t1"), 1, 60, "cancel")
        assert (await stage.outcome()).status == "CANCELLED"


class TestFiles:
    @pytest.mark.parametrize(
        ("parameters", "content"),
        [
            ({"name": "a.txt", "text": "grüße"}, "grüße".encode()),
            ({"name": "big", "sizeBytes": 3_000_000}, bytes(3_000_000)),
            ({"name": "../../etc/../passwd", "text": ""}, b""),
        ],
    )
    async def test_a_file_is_a_resource_that_another_node_reads(
        self, tmp_path: Path, parameters: dict[str, Any], content: bytes
    ) -> None:
        async with staged(tmp_path) as stage:
            result = await stage.outcome_of("core.file", parameters)
            reference = value_of(result)["file"]["resourceRef"]
            digest = hashlib.sha256(content).hexdigest()
            (artifact,) = result.artifacts
            assert (artifact.resource_id, artifact.worker_id) == (
                reference["resourceId"],
                "w-1",
            )
            assert (artifact.type, artifact.size_bytes) == ("file", len(content))
            assert json.loads(bytes(artifact.metadata))["sha256"] == digest
            (kept,) = stage.registry.list()
            assert kept.listed
            path = stage.registry.files.path_of(kept.token, kept.name)
            assert path.resolve().is_relative_to((tmp_path / "resources").resolve())
            assert path.read_bytes() == content
            read = await stage.outcome_of(
                "core.read_file", {"file": {"resourceRef": reference}}, task="t2"
            )
            assert value_of(read) == {"sizeBytes": len(content), "sha256": digest}

    @pytest.mark.parametrize(
        ("resource_id", "code"),
        [
            ("run-1/" + "0" * 32 + "/gone", "E.RESOURCE.MISSING"),
            ("../../../etc/passwd", "E.RESOURCE.INVALID"),
            ("run-1/" + "0" * 32 + "/..", "E.RESOURCE.INVALID"),
            ("/etc/passwd", "E.RESOURCE.INVALID"),
            ("a\0b", "E.RESOURCE.INVALID"),
            (5, "E.RESOURCE.INVALID"),
        ],
    )
    async def test_an_id_that_names_no_file_of_ours_is_refused(
        self, tmp_path: Path, resource_id: object, code: str
    ) -> None:
        async with staged(tmp_path) as stage:
            given = {"file": {"resourceRef": {"resourceId": resource_id}}}
            error = error_of(await stage.outcome_of("core.read_file", given))
            assert error.code == code


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/away":
            self._send(302, "text/plain", b"", Location="ftp://127.0.0.1/secrets")
        elif self.path == "/large":
            self._send(200, "text/plain", b"x" * (2 * 1024 * 1024 + 1))
        elif self.path == "/nan":
            self._send(200, "application/json", b'{"a": NaN}')
        else:
            self._send(
                404 if self.path == "/none" else 200, "application/json", b'{"a": "\xc3\xbc"}'
            )

    def do_POST(self) -> None:
        got = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers.get("Content-Type", "")
        self._send(201, "text/plain; charset=utf-8", kind.encode() + b" " + got)

    def _send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class TestHttp:
    @pytest.mark.parametrize(
        ("path", "status", "body"),
        [("/", 200, {"a": "ü"}), ("/none", 404, {"a": "ü"}), ("/nan", 200, '{"a": NaN}')],
    )
    async def test_an_answer_is_a_result_whatever_its_status(
        self, tmp_path: Path, site: str, path: str, status: int, body: object
    ) -> None:
        async with staged(tmp_path) as stage:
            got = value_of(await stage.outcome_of("core.http", {"url": site + path}))
            assert (got["status"], got["body"]) == (status, body)
            assert got["headers"]["content-type"] == "application/json"

    @pytest.mark.parametrize(
        ("body", "got"),
        [
            ({"a": 1}, 'application/json {"a": 1}'),
            ("plain", "application/x-www-form-urlencoded plain"),
        ],
    )
    async def test_an_object_is_sent_as_json_and_a_text_as_it_is(
        self, tmp_path: Path, site: str, body: object, got: str
    ) -> None:
        async with staged(tmp_path) as stage:
            given = {"url": site, "method": "POST", "body": body}
            answer = value_of(await stage.outcome_of("core.http", given))
            assert (answer["status"], answer["body"]) == (201, got)

    @pytest.mark.parametrize(
        ("path", "code"), [("/away", "E.RUNNER.FAILURE"), ("/large", "E.RUNNER.LIMIT")]
    )
    async def test_answers_that_lead_away_or_are_too_large_are_refused(
        self, tmp_path: Path, site: str, path: str, code: str
    ) -> None:
        async with staged(tmp_path) as stage:
            error = error_of(await stage.outcome_of("core.http", {"url": site + path}))
            assert error.code == code

    async def test_a_server_that_does_not_answer_is_a_timeout(self, tmp_path: Path) -> None:
        silent = asyncio.Event()

        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await silent.wait()
            writer.close()

        server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with staged(tmp_path) as stage, server:
            given = {"url": f"http://127.0.0.1:{port}", "timeoutSeconds": 0.1}
            error = error_of(await stage.outcome_of("core.http", given))
            assert (error.code, error.category) == ("E.TIMEOUT", "TIMEOUT")
            silent.set()
