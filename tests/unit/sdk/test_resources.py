"""Resources as an author uses them, without a worker."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk import Context, NodeError, ResourceError, ResourceHandle, artifact, resource
from astraflow_sdk.current import CURRENT
from astraflow_sdk.host.outcome import encode_value
from astraflow_sdk.resources import Defaults, LocalRegistry

from astraflow.core import errors
from astraflow.worker.resources.resource import check_id as worker_check_id
from tests.tables import each_row
from tests.unit.sdk.port import Ear, context

BAD_IDS = ["", "/etc/passwd", "a/../b", "..", "a//b", "a/./b", "a\0b", "a\nb", "a" * 4096]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AWAY = datetime(9999, 12, 31, tzinfo=UTC)


class Desk(Ear):
    """A host that gives its attempts a local registry."""

    def __init__(self, registry: LocalRegistry) -> None:
        super().__init__()
        self._local = registry

    def registry_of(self, ctx: Context) -> Any:
        return self._local


@pytest.fixture
def registry(tmp_path: Path) -> LocalRegistry:
    return LocalRegistry(tmp_path, run_id="r-1", defaults=Defaults(inline_threshold_bytes=4))


@pytest.fixture
def ctx(registry: LocalRegistry) -> Iterator[Context]:
    ctx = Context(context()._frame, Desk(registry))
    token = CURRENT.set(ctx)
    yield ctx
    CURRENT.reset(token)


def code_of(call: Any) -> str:
    with pytest.raises(NodeError) as caught:
        call()
    assert caught.value.message
    return caught.value.code


class TestRegistry:
    def test_a_file_is_moved_and_described(self, registry: LocalRegistry, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_text("grass")
        handle = registry.register_file("r-1/a", path, metadata={"mime": "text/plain"})
        assert not path.exists()
        assert handle.path is not None
        assert handle.path.read_text() == "grass"
        assert handle.metadata["path"] == str(handle.path)
        assert handle.checksum == hashlib.sha256(b"grass").hexdigest()
        assert registry.to_artifact_descriptor("r-1/a") == {
            "resource_id": "r-1/a",
            "worker_id": "local",
            "type": "file",
            "size_bytes": 5,
            "inline": False,
            "metadata": {"mime": "text/plain", "name": "a.txt", "sha256": handle.checksum},
        }
        inline = registry.to_artifact_descriptor("r-1/a", inline=True)
        assert (inline["inline"], inline["metadata"]["base64"]) == (True, "Z3Jhc3M=")

    @each_row("resource_id", BAD_IDS)
    def test_the_worker_and_the_sdk_refuse_the_same_ids(
        self, registry: LocalRegistry, resource_id: str
    ) -> None:
        assert code_of(lambda: registry.register(None, resource_id, "x")) == "E.RESOURCE.INVALID"
        assert code_of(lambda: registry.lease(resource_id)) == "E.RESOURCE.INVALID"
        with pytest.raises(errors.Refused):
            worker_check_id(resource_id)

    @pytest.mark.parametrize("kind", ["outside", "link", "folder link", "pipe", "folder", "none"])
    def test_what_is_no_file_below_the_folder_is_left_alone(
        self, tmp_path: Path, kind: str
    ) -> None:
        outside = tmp_path / "secret"
        outside.write_text("secret")
        home = tmp_path / "home"
        home.mkdir()
        (home / "link").symlink_to(outside)
        (home / "away").symlink_to(tmp_path)
        os.mkfifo(home / "pipe")
        path = {
            "outside": outside,
            "link": home / "link",
            "folder link": home / "away" / "secret",
            "pipe": home / "pipe",
            "folder": home,
            "none": home / "none",
        }[kind]
        registry = LocalRegistry(home)
        assert code_of(lambda: registry.register_file("a", path)) == "E.RESOURCE.INVALID"
        assert outside.read_text() == "secret"
        assert registry.list() == []

    @each_row(
        "fields",
        [
            {"scope": "r-2"},
            {"scope": "session:"},
            {"type": "no type"},
            {"ttl_seconds": 0},
            {"ttl_seconds": -1},
            {"ttl_seconds": 1e12},
            {"ttl_seconds": True},
            {"expires_at": LONG_AGO},
            {"expires_at": FAR_AWAY},
            {"expires_at": datetime(2030, 1, 1)},
            {"scope": "session:" + "x" * 4096},
            {"size_bytes": -1},
            {"size_bytes": 2**60},
            {"size_bytes": 1.5},
        ],
    )
    def test_what_makes_no_sense_is_refused_at_once(
        self, registry: LocalRegistry, fields: dict[str, Any]
    ) -> None:
        given: dict[str, Any] = {"scope": None, "resource_id": "a", "type": "model", **fields}
        assert code_of(lambda: registry.register(**given)) == "E.RESOURCE.INVALID"
        assert registry.kept == {}

    def test_leases_are_counted(self, registry: LocalRegistry) -> None:
        registry.register(None, "a", "model", value=5)
        assert registry.lease("a").value == 5
        registry.release("a")
        registry.release("a")
        assert code_of(lambda: registry.release("a")) == "E.RESOURCE.INVALID"
        assert code_of(lambda: registry.release("b")) == "E.RESOURCE.INVALID"
        with registry.lease("a"):
            assert [one.resource_id for one in registry.list(type="model")] == ["a"]
        assert registry.list() == []

    def test_what_is_not_there_or_has_expired_is_said_so(self, registry: LocalRegistry) -> None:
        assert code_of(lambda: registry.lease("none")) == "E.RESOURCE.MISSING"
        handle = registry.register(None, "a", "model", ttl_seconds=60)
        registry.release("a")
        handle.expires_at = LONG_AGO
        assert code_of(lambda: registry.lease("a")) == "E.RESOURCE.EXPIRED"

    def test_a_touch_prolongs_and_is_checked(self, registry: LocalRegistry) -> None:
        handle = registry.register(None, "a", "model", ttl_seconds=60)
        later = datetime.now(UTC) + timedelta(hours=2)
        registry.touch("a", expires_at=later)
        assert handle.expires_at == later
        for bad in (LONG_AGO, FAR_AWAY):
            assert code_of(lambda bad=bad: registry.touch("a", expires_at=bad)) == (
                "E.RESOURCE.INVALID"
            )

    def test_what_goes_is_closed_or_deleted(self, registry: LocalRegistry, tmp_path: Path) -> None:
        closed: list[str] = []
        registry.register(None, "m", "model", close=lambda: closed.append("m"))
        (tmp_path / "f").write_text("x")
        handle = registry.register_file("f", tmp_path / "f", scope="session:s")
        registry.evict("m")
        assert closed == ["m"]
        registry.release_scope("session:s")
        assert handle.path is not None
        assert not handle.path.exists()
        assert code_of(lambda: registry.release_scope("r-2")) == "E.RESOURCE.DENIED"


class TestConveniences:
    def test_bytes_are_kept_as_a_file_and_listed(self, ctx: Context) -> None:
        handle = artifact.store_bytes(b"long enough", name="a.json")
        assert handle.read_bytes() == b"long enough"
        (listed,) = ctx.take_artifacts()
        assert (listed["inline"], listed["metadata"]["mime"]) == (False, "application/json")
        assert handle.ref() == {
            "resourceRef": {
                "resourceId": handle.resource_id, "workerId": "local", "type": "file",
            }
        }  # fmt: skip
        with resource.lease(handle.ref()) as leased:
            assert leased is handle

    def test_few_bytes_travel_inline_and_are_read_the_same_way(self, ctx: Context) -> None:
        handle = artifact.store_bytes(b"abc", mime="text/plain")
        (listed,) = ctx.take_artifacts()
        assert (listed["inline"], listed["metadata"]["base64"]) == (True, "YWJj")
        with resource.lease(handle.ref()) as found:
            assert (found.read_bytes(), found.metadata["mime"]) == (b"abc", "text/plain")

    async def test_an_object_is_kept_and_found_in_tasks_and_threads(self, ctx: Context) -> None:
        handle = resource.keep([1], type="list")
        leased = await asyncio.to_thread(resource.lease, handle)
        assert leased.value == [1]
        assert await asyncio.ensure_future(_leased_in_task(handle)) == [1]
        assert code_of(handle.read_bytes) == "E.RESOURCE.INVALID"

    def test_what_is_no_reference_is_refused(self, ctx: Context) -> None:
        for wrong in (5, None, {}, {"resourceRef": 5}, {"inline": {"base64": "%"}}):
            assert code_of(lambda wrong=wrong: resource.lease(wrong)) == "E.RESOURCE.INVALID"

    def test_without_an_attempt_it_is_said_what_to_do(self) -> None:
        with pytest.raises(NodeError, match=r"ctx\.resource_registry"):
            artifact.store_bytes(b"x")

    def test_without_a_registry_a_context_says_none(self) -> None:
        ctx = context()
        assert (ctx.resource_registry, ctx.leased_resources) == (None, {})
        with pytest.raises(NodeError, match="no registry"):
            ctx.needed_registry()


async def _leased_in_task(handle: ResourceHandle) -> Any:
    return resource.lease(handle.resource_id).value


def test_a_result_lists_each_artifact_once_as_the_wire_has_it(ctx: Context) -> None:
    handle = artifact.store_bytes(b"long enough")
    given = {
        "status": "succeeded",
        "outputs": {},
        "artifacts": [
            handle,
            {"resourceId": "b", "type": "video", "sizeBytes": 5, "odd": 1, "expiresAt": None},
        ],
    }
    text = encode_value(ctx, given, 100_000)
    assert text.count(handle.resource_id) == 1
    assert '{"resource_id":"b","type":"video","size_bytes":5,"worker_id":"w-1"}' in text


def test_inline_artifacts_count_as_part_of_the_result(ctx: Context) -> None:
    ctx.list_artifact({"resource_id": "a", "inline": True, "metadata": {"base64": "x" * 1000}})
    assert "E.RESULT.TOO_LARGE" in encode_value(ctx, {}, 500)


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        ({}, Defaults()),
        ({"resources": [{"path": "a", "type": "b"}]}, Defaults()),
        ({"resources": {"defaults": None}}, Defaults()),
        (
            {"resources": {"defaults": {"inlineThresholdBytes": 5, "type": "x", "ttlSeconds": 9}}},
            Defaults(5, "x", 9),
        ),
    ],
)
def test_defaults_come_from_either_form_of_the_manifest(
    manifest: dict[str, Any], found: Defaults
) -> None:
    assert Defaults.of(manifest) == found


def test_an_error_of_a_resource_says_its_code_and_category() -> None:
    problem = ResourceError("gone", category="INFRASTRUCTURE", code="E.RESOURCE.LOST")
    assert (problem.code, problem.category, problem.retryable) == (
        "E.RESOURCE.LOST", "INFRASTRUCTURE", None,
    )  # fmt: skip
