"""Handlers in real hosts that make and use resources of a real registry."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostSpec
from astraflow.worker.resources import ResourceLimits
from tests.worker.hosts.stage import Stage, error_of, staged, value_of
from tests.worker.resources.bench import take_in

KEEPING = HostSpec("keeping", "1.0.0", Path(sys.executable), Path(__file__).parent / "keeping")
ALONE = msgspec.structs.replace(KEEPING, isolation="attempt")


def ref_of(value: Any, **changes: Any) -> business.RequiredResource:
    told = value["resourceRef"]
    ref = business.RequiredResource(told["resourceId"], told["workerId"], told["type"])
    return msgspec.structs.replace(ref, **changes)


async def closed(stage: Stage, resource_id: str, state: str) -> None:
    await stage.until(
        lambda: any((one.resource_id, one.state) == (resource_id, state) for one in stage.events)
    )


class TestObjects:
    async def test_an_object_is_used_by_other_attempts_in_the_host_that_made_it(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            note = str(tmp_path / "note")
            made = value_of(await stage.outcome_of("keeping.keep", {"note": note}))
            ref = ref_of(made["model"])
            for number, node in enumerate(("use", "use_in_thread", "use"), 1):
                used = value_of(
                    await stage.outcome_of(
                        f"keeping.{node}", made, task=f"use-{number}", resource_refs=(ref,)
                    )
                )
                assert (used["used"], used["pid"]) == (number, made["pid"])
            assert used["leased"] == [ref.resource_id]
            (kept,) = stage.registry.list()
            assert (kept.in_use_count, kept.kind) == (0, "memory")

    async def test_a_host_that_only_keeps_an_object_takes_no_place_from_others(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING, max_hosts=1) as stage:
            await stage.outcome_of("keeping.keep", {"note": str(tmp_path / "note")})
            assert value_of(await stage.outcome_of("core.echo", {"value": 1}, task="other"))
            assert stage.pool.stats().hosts == 2

    async def test_an_object_is_used_in_the_lane_in_which_it_was_made(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            given = {"note": str(tmp_path / "note")}
            made = value_of(await stage.outcome_of("keeping.keep", given, lane=1))
            refs = (ref_of(made["model"]),)
            used = await stage.outcome_of(
                "keeping.use", made, task="t2", resource_refs=refs, lane=1
            )
            assert value_of(used)["pid"] == made["pid"]
            other = await stage.outcome_of("keeping.use", made, task="t3", resource_refs=refs)
            assert error_of(other).code == "E.RESOURCE.CONFLICT"
            assert set(stage.lanes_told) == {1}

    async def test_an_attempt_that_would_be_alone_goes_to_the_object_that_it_needs(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(
                await stage.outcome_of("keeping.keep", {"note": str(tmp_path / "note")})
            )
            refs = (ref_of(made["model"]),)
            used = await stage.outcome_of(
                "keeping.use", made, task="again", attempt=3, resource_refs=refs
            )
            assert value_of(used)["pid"] == made["pid"]

    @pytest.mark.parametrize("how", ["close", "aclose", "close_badly"])
    async def test_the_end_of_the_run_closes_it_as_its_author_says(
        self, tmp_path: Path, how: str
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            note = tmp_path / "note"
            given = {"note": str(note), "how": how, "resource_id": "run-1/model"}
            await stage.outcome_of("keeping.keep", given)
            stage.registry.release_scope("run-1")
            await closed(stage, "run-1/model", "released")
            assert note.exists() == (how != "close_badly")
            assert (await stage.outcome_of("core.noop", task="t2")).status == "SUCCEEDED"

    async def test_a_host_that_holds_an_object_is_not_let_go_and_its_death_is_told(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING, idle_timeout_s=0) as stage:
            given = {"note": str(tmp_path / "note"), "resource_id": "run-1/model"}
            made = value_of(await stage.outcome_of("keeping.keep", given))
            await stage.outcome_of("core.noop", task="other")
            await stage._until_seen(lambda: stage.pool.stats().hosts == 1)
            assert stage.registry.memory.holder_of(stage.registry.list()[0].token) is not None
            os.kill(made["pid"], 9)
            await closed(stage, "run-1/model", "evicted")
            refs = (ref_of(made["model"]),)
            lost = await stage.outcome_of("keeping.use", made, task="t2", resource_refs=refs)
            error = error_of(lost)
            assert (error.code, error.category) == ("E.RESOURCE.LOST", "INFRASTRUCTURE")
            assert error.retryable is False

    async def test_another_package_cannot_use_it(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(
                await stage.outcome_of("keeping.keep", {"note": str(tmp_path / "note")})
            )
            for task, fields in {
                "t2": {"resource_refs": (ref_of(made["model"]),)},
                "t3": {},
            }.items():
                given = {"file": made["model"]}
                error = error_of(
                    await stage.outcome_of("core.read_file", given, task=task, **fields)
                )
                assert error.code == "E.RESOURCE.CONFLICT"
                assert "keeping 1.0.0" in error.message

    async def test_objects_in_two_hosts_cannot_be_used_by_one_node(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            given = {"note": str(tmp_path / "note")}
            shared = value_of(await stage.outcome_of("keeping.keep", given))
            alone = value_of(await stage.outcome_of("keeping.keep", given, task="t2", attempt=3))
            assert shared["pid"] != alone["pid"]
            refs = (ref_of(shared["model"]), ref_of(alone["model"]))
            failed = await stage.outcome_of("keeping.hold", task="t3", resource_refs=refs)
            assert error_of(failed).code == "E.RESOURCE.CONFLICT"

    async def test_a_package_with_a_host_per_attempt_cannot_keep_objects(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, ALONE) as stage:
            error = error_of(
                await stage.outcome_of("keeping.keep", {"note": str(tmp_path / "note")})
            )
            assert (error.code, error.category) == ("E.RESOURCE.INVALID", "CONFIGURATION")
            assert "isolation" in error.message

    async def test_an_object_without_room_is_closed_and_fails_its_attempt(
        self, tmp_path: Path
    ) -> None:
        limits = ResourceLimits(max_mem_bytes=10)
        async with staged(tmp_path, KEEPING, limits=limits) as stage:
            note = tmp_path / "note"
            given = {"note": str(note), "size_bytes": 11}
            error = error_of(await stage.outcome_of("keeping.keep", given))
            assert (error.code, error.category) == ("E.RESOURCE.QUOTA", "INFRASTRUCTURE")
            await stage.until_exists(note)
            assert stage.registry.list() == []


class TestFiles:
    async def test_what_is_stored_is_listed_and_followed(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            result = await stage.outcome_of("keeping.store", {"text": "long enough"})
            made = value_of(result)
            (artifact,) = result.artifacts
            assert (artifact.size_bytes, artifact.inline) == (11, False)
            assert artifact.expires_at is not None
            assert json.loads(bytes(artifact.metadata))["mime"] == "text/plain"
            (kept,) = stage.registry.list()
            assert (kept.listed, kept.ttl_ms) == (True, 600_000)
            refs = (ref_of(made["file"]),)
            for node in ("read", "read_on_the_loop"):
                read = await stage.outcome_of(
                    f"keeping.{node}", made, task=node, run="run-2", resource_refs=refs
                )
                assert value_of(read)["text"] == "long enough"
            assert [one.state for one in stage.events] == ["ready"]

    async def test_a_few_bytes_travel_inline(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            result = await stage.outcome_of("keeping.store", {"text": "short"})
            made = value_of(result)
            assert made["inline"] is True
            (artifact,) = result.artifacts
            metadata = json.loads(bytes(artifact.metadata))
            assert artifact.inline
            assert base64.b64decode(metadata["base64"]) == b"short"
            assert stage.registry.list() == []
            read = await stage.outcome_of("keeping.read_on_the_loop", made, task="t2")
            assert value_of(read) == {"text": "short"}

    @pytest.mark.parametrize(
        ("ref", "code", "category"),
        [
            ({"resource_id": "run-1/none"}, "E.RESOURCE.MISSING", "CONFIGURATION"),
            ({"resource_id": "a/../b"}, "E.RESOURCE.INVALID", "CONFIGURATION"),
            ({"worker_id": "w-2"}, "E.RESOURCE.CONFLICT", "CONFIGURATION"),
            ({"type": "browserSession"}, "E.RESOURCE.INVALID", "CONFIGURATION"),
            ({"run": "run-2"}, "E.RESOURCE.DENIED", "CONFIGURATION"),
            ({"expired": True}, "E.RESOURCE.EXPIRED", "INFRASTRUCTURE"),
            ({"evicted": True}, "E.RESOURCE.LOST", "INFRASTRUCTURE"),
        ],
    )
    async def test_a_reference_that_leads_nowhere_ends_the_attempt_before_it_starts(
        self, tmp_path: Path, ref: dict[str, Any], code: str, category: str
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(await stage.outcome_of("keeping.unlisted", {"resource_id": "run-1/a"}))
            wrong = dict(ref)
            run = wrong.pop("run", "run-1")
            if wrong.pop("expired", False):
                stage.registry.get("run-1/a", None).expires_at = 1
            if wrong.pop("evicted", False):
                stage.registry.evict("run-1/a")
            refs = (ref_of(made["file"]), ref_of(made["file"], **wrong))
            stage.start("keeping.hold", {}, task="t2", run=run, resource_refs=refs)
            error = error_of(await stage.outcome("t2"))
            assert (error.code, error.category, error.retryable) == (code, category, False)
            assert not stage.said
            assert all(not one.in_use_count for one in stage.registry.list())

    async def test_it_is_leased_before_the_handler_begins_and_until_it_ends(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(await stage.outcome_of("keeping.unlisted", {"resource_id": "run-1/a"}))
            (kept,) = stage.registry.list()
            path = stage.registry.files.path_of(kept.token, kept.name)
            assert (kept.in_use_count, made["path"]) == (0, str(path))
            stage.start("keeping.hold", {}, task="t2", resource_refs=(ref_of(made["file"]),))
            assert kept.in_use_count == 1
            await stage.up("t2")
            stage.registry.evict("run-1/a")
            assert [event.state for event in stage.events][-1:] == ["evicting"]
            assert path.exists()
            stage.pool.cancel(TaskId("t2"), 1, 60, "enough")
            await stage.outcome("t2")
            assert [event.state for event in stage.events][-1:] == ["released"]
            assert not path.exists()

    async def test_leases_are_given_back_when_the_host_dies(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(await stage.outcome_of("keeping.unlisted", {"resource_id": "run-1/a"}))
            refs = (ref_of(made["file"]),)
            died = await stage.outcome_of("keeping.exits", task="t2", resource_refs=refs)
            assert error_of(died).code == "E.RUNNER.CRASHED"
            assert stage.registry.list()[0].in_use_count == 0

    @pytest.mark.parametrize(
        ("node", "parameters", "code"),
        [
            ("unlisted", {"resource_id": "a/../b"}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a" * 4096}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a", "path": "/etc/hostname"}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a", "type": "no type"}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a", "scope": "run-2"}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a", "ttl_seconds": 0}, "E.RESOURCE.INVALID"),
            ("unlisted", {"resource_id": "a", "ttl_seconds": 1e12}, "E.RESOURCE.INVALID"),
            (
                "unlisted",
                {"resource_id": "a", "metadata": {"a": "x" * 20_000}},
                "E.RESOURCE.INVALID",
            ),
            (
                "unlisted",
                {"resource_id": "a", "metadata": {"a": "x" * 2_000_000}},
                "E.RESOURCE.INVALID",
            ),
            ("touch", {"resource_id": "a", "seconds": -1}, "E.RESOURCE.INVALID"),
            ("touch", {"resource_id": "a", "seconds": 2e11}, "E.RESOURCE.INVALID"),
            ("touch", {"resource_id": "none", "seconds": 60}, "E.RESOURCE.MISSING"),
            ("lists", {"resource_id": "none"}, "E.RESOURCE.MISSING"),
            ("lies", {}, "E.RESOURCE.INVALID"),
            ("garbled", {}, "E.RESOURCE.INVALID"),
            ("read", {"file": {"resourceRef": {"resourceId": "none"}}}, "E.RESOURCE.MISSING"),
            ("read", {"file": 5}, "E.RESOURCE.INVALID"),
            ("read_on_the_loop", {"file": "some"}, "E.RESOURCE.INVALID"),
        ],
    )
    async def test_what_an_author_does_wrong_fails_the_attempt_with_its_code(
        self, tmp_path: Path, node: str, parameters: dict[str, Any], code: str
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            error = error_of(await stage.outcome_of(f"keeping.{node}", parameters))
            assert error.code == code
            assert error.message
            assert stage.registry.list() == [] or node == "lies"

    async def test_a_release_too_many_fails_the_attempt_and_changes_no_count(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            made = value_of(await stage.outcome_of("keeping.unlisted", {"resource_id": "run-1/a"}))
            stage.registry.lease("run-1/a")
            refs = (ref_of(made["file"]),)
            failed = await stage.outcome_of(
                "keeping.release_twice", made, task="t2", resource_refs=refs
            )
            assert error_of(failed).code == "E.RESOURCE.INVALID"
            assert stage.registry.list()[0].in_use_count == 1
            stage.registry.release("run-1/a")

    async def test_a_file_without_room_fails_its_attempt_and_leaves_nothing(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING, limits=ResourceLimits(max_disk_bytes=10)) as stage:
            error = error_of(await stage.outcome_of("keeping.store", {"text": "x" * 11}))
            assert (error.code, error.retryable) == ("E.RESOURCE.QUOTA", True)
            root = stage.registry.files.root
            assert not [one for one in root.glob("??/*/*") if one.is_file()]

    async def test_a_thread_that_outlives_its_attempt_can_register_nothing(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            note = tmp_path / "note"
            await stage.outcome_of("keeping.late", {"note": str(note)})
            await stage.until_exists(note)
            assert stage.registry.list() == []
            assert stage.pool.counters == {}


class TestAdapters:
    async def test_the_example_of_the_older_documents_runs(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            (tmp_path / "data").mkdir(exist_ok=True)
            video = tmp_path / "data" / "frame"
            video.write_text("frames")
            kept = take_in(stage.registry, "run123/sessionA/frame001", video)
            kept.listed = True
            ref = business.RequiredResource("run123/sessionA/frame001", "w-1", "file")
            result = await stage.outcome_of("keeping.video", resource_refs=(ref,))
            assert value_of(result) == {"message": "video processed"}
            (artifact,) = result.artifacts
            assert artifact.resource_id == "run-1/t1/processed"
            made = stage.registry.get("run-1/t1/processed", None)
            assert made.listed
            assert made.expires_at == kept.expires_at + 3_600_000

    async def test_a_method_finds_what_the_older_documents_promise(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING, tenant="shop") as stage:
            told = value_of(await stage.outcome_of("keeping.told", {"a": 1}))
            assert told == {"tenant": "shop", "params": {"a": 1}, "refs": [], "is_there": True}


class TestFolders:
    async def test_attempts_at_the_same_time_do_not_see_the_files_of_each_other(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            gate = tmp_path / "gate"
            texts = {f"t{number}": f"bytes of run {number}" for number in range(4)}
            for task, text in texts.items():
                given = {"text": text, "gate": str(gate)}
                stage.start("keeping.write", given, task=task, run=f"run-{task}")
            for task in texts:
                await stage.up(task)
            gate.touch()
            made = {task: value_of(await stage.outcome(task)) for task in texts}
            assert [one["before"] for one in made.values()] == [[]] * 4
            for task, text in texts.items():
                given = {"file": made[task]["file"]}
                refs = (ref_of(made[task]["file"]),)
                read = await stage.outcome_of(
                    "keeping.read",
                    given,
                    task=f"r{task}",
                    run=f"run-{task}",
                    resource_refs=refs,
                )
                assert value_of(read)["text"] == text
            # What they left behind is gone with them, the working directory stays with the host.
            await stage._until_seen(
                lambda: not any(Path(one["data_dir"]).exists() for one in made.values())
            )
            (cwd,) = {Path(one["cwd"]) for one in made.values()}
            assert cwd in (tmp_path / "data").iterdir()
        assert [one.name for one in (tmp_path / "data").rglob("*")] in ([], ["trash"])

    async def test_files_of_a_killed_host_are_removed(self, tmp_path: Path) -> None:
        async with staged(tmp_path, KEEPING) as stage:
            stage.start("keeping.fill", {"size": 10})
            await stage.up()
            assert [one.name for one in (tmp_path / "data").rglob("fill")] == ["fill"]
            stage.pool.kill(TaskId("t1"), 1)
            await stage.until(lambda: stage.goners)
            await stage._until_seen(lambda: not list((tmp_path / "data").rglob("fill")))

    async def test_what_attempts_write_counts_against_the_quota(self, tmp_path: Path) -> None:
        limits = ResourceLimits(max_disk_bytes=100_000)
        async with staged(tmp_path, KEEPING, limits=limits) as stage:
            held = value_of(await stage.outcome_of("keeping.store", {"text": "x" * 50_000}))
            refs = (ref_of(held["file"]),)
            stage.start("keeping.hold", held, task="hold", resource_refs=refs)
            stage.start("keeping.fill", {"size": 80_000}, task="fill")
            await stage.up("fill")
            await stage._until_seen(lambda: stage.registry.scratch_bytes >= 80_000)
            assert stage.registry.metrics().disk_bytes_in_use >= 130_000
            refused = await stage.outcome_of("keeping.store", {"text": "x" * 9_000}, task="t2")
            assert error_of(refused).code == "E.RESOURCE.QUOTA"

    async def test_an_attempt_that_fills_the_disk_is_ended_and_says_why(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path, KEEPING, disk_bytes=1_000_000) as stage:
            error = error_of(await stage.outcome_of("keeping.fill", {"size": 2_000_000}))
            assert error.code == "E.RUNNER.LIMIT"
            assert "allowed are 1000000" in error.message
            assert (await stage.outcome_of("core.noop", task="t2")).status == "SUCCEEDED"
