"""The registry on its own: who may use what, for how long, and what goes when there is no room."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core import errors
from astraflow.core.ids import RunId
from astraflow.worker.resources import Lessee, Terms
from astraflow.worker.resources.files import StoredFile
from astraflow.worker.resources.resource import Maker
from tests.worker.resources.bench import Bench, FakeHolder, code_of, lessee, maker, take_in

BAD_IDS = ["", "/etc/passwd", "a/../b", "..", "a//b", "a/./b", "a\0b", "a\nb", "a" * 4096]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(**limits: Any) -> Bench:
        made.append(Bench(tmp_path, **limits))
        return made[-1]

    yield build
    for bench in made:
        bench.registry.check()
        bench.registry.close()


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(errors.AstraflowError) as caught:
        call()
    assert caught.value.message
    return code_of(caught.value)


class TestRegistering:
    def test_a_file_is_moved_read_and_told(self, bench: Bench) -> None:
        made = bench.file("run-1/a", b"grass", metadata={"mime": "text/plain", "path": "/etc"})
        path = bench.registry.files.path_of(made.token, made.name)
        assert path.read_bytes() == b"grass"
        assert not list(bench.source.iterdir())
        assert made.checksum == hashlib.sha256(b"grass").hexdigest()
        assert (made.state, made.scope, made.size_bytes, made.in_use_count) == (
            "ready", "run-1", 5, 1,
        )  # fmt: skip
        (event,) = bench.events
        assert (event.state, event.scope, event.run_id, event.node_id) == (
            "ready", "run-1", "run-1", "node-1",
        )  # fmt: skip
        assert b'"mime":"text/plain"' in bytes(event.metadata)
        assert b'"path"' not in bytes(event.metadata)

    @pytest.mark.parametrize("resource_id", BAD_IDS)
    def test_an_id_that_leads_elsewhere_is_refused(self, bench: Bench, resource_id: str) -> None:
        for call in (
            lambda: bench.file(resource_id),
            lambda: bench.object(resource_id),
            lambda: bench.registry.lease(resource_id, lessee()),
            lambda: bench.registry.release(resource_id, lessee()),
            lambda: bench.registry.touch(resource_id, lessee()),
        ):
            assert refusal(call) == "E.RESOURCE.INVALID"
        assert not bench.files()

    def test_a_file_outside_the_folder_is_refused(self, bench: Bench, tmp_path: Path) -> None:
        outside = tmp_path / "secret"
        outside.write_text("secret")
        (bench.source / "link").symlink_to(outside)
        (bench.source / "folder").symlink_to(tmp_path)
        os.mkfifo(bench.source / "pipe")
        for path in (
            outside,
            bench.source / "link",
            bench.source / "folder" / "secret",
            bench.source / "pipe",
            bench.source / ".." / "secret",
            bench.source / "none",
            bench.source,
        ):
            assert refusal(partial(take_in, bench.registry, "a", path)) == "E.RESOURCE.INVALID"
        assert outside.read_text() == "secret"

    def test_a_file_that_changes_after_its_digest_is_refused(self, bench: Bench) -> None:
        token = "ab" * 16
        path = bench.registry.files.path_of(token, "a")
        path.parent.mkdir(parents=True)
        path.write_text("before")
        seen = path.stat()
        path.write_text("after, and longer")
        filed = StoredFile(token, "a", seen.st_size, seen.st_mtime_ns, "0" * 64)
        assert refusal(lambda: bench.registry.adopt("a", filed)) == "E.RESOURCE.INVALID"
        assert not bench.files()

    def test_a_file_that_changes_later_is_not_given_out(self, bench: Bench) -> None:
        made = bench.file("a", "before")
        bench.registry.files.path_of(made.token, made.name).write_text("after, and longer")
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.INVALID"

    def test_a_file_that_is_gone_is_lost_and_told(self, bench: Bench) -> None:
        made = bench.file("a")
        bench.end()
        bench.registry.files.path_of(made.token, made.name).unlink()
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.LOST"
        assert bench.states()[-1] == ("a", "evicted")

    def test_a_host_cannot_claim_the_file_of_another(self, bench: Bench) -> None:
        made = bench.file("a", b"mine")
        filed = StoredFile(made.token, made.name, made.size_bytes, made.mtime_ns, "0" * 64)
        stolen = lambda: bench.registry.adopt("b", filed, maker=maker("run-2"))  # noqa: E731
        assert refusal(stolen) == "E.RESOURCE.DENIED"
        assert bench.registry.lease("a", lessee()).size_bytes == 4

    @pytest.mark.parametrize("name", ["../../../secret", "../../secret", ".hidden", "folder/a"])
    def test_a_host_cannot_name_a_file_elsewhere(self, bench: Bench, name: str) -> None:
        """The file is there, and all that is said about it is true."""
        token = "ab" * 16
        bench.registry.files.path_of(token, "folder").mkdir(parents=True)
        path = bench.registry.files.path_of(token, name)
        path.write_text("secret")
        seen = path.stat()
        filed = StoredFile(token, name, seen.st_size, seen.st_mtime_ns, "0" * 64)
        assert refusal(lambda: bench.registry.adopt("a", filed)) == "E.RESOURCE.INVALID"

    @pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
    def test_a_host_cannot_claim_what_is_no_plain_file(self, bench: Bench, kind: str) -> None:
        """It stands where the file should, and its size and time are as they are said to be."""
        token = "ab" * 16
        path = bench.registry.files.path_of(token, "a")
        path.parent.mkdir(parents=True)
        if kind == "link":
            path.symlink_to("/etc/hostname")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        seen = path.lstat()
        filed = StoredFile(token, "a", seen.st_size, seen.st_mtime_ns, "0" * 64)
        assert refusal(lambda: bench.registry.adopt("a", filed)) == "E.RESOURCE.INVALID"

    @pytest.mark.parametrize("type_name", ["", "9lives", "a b", "x" * 65, "../x"])
    def test_a_type_that_is_none_is_refused(self, bench: Bench, type_name: str) -> None:
        path = bench.source / "f"
        path.write_text("x")
        call = partial(take_in, bench.registry, "a", path, type=type_name)
        assert refusal(call) == "E.RESOURCE.INVALID"

    @pytest.mark.parametrize(
        "terms",
        [
            {"ttl_s": 0},
            {"ttl_s": -1},
            {"ttl_s": float("nan")},
            {"ttl_s": 1e12},
            {"expires_at": 0},
            {"expires_at": 253_402_300_799_000},
            {"scope": "run-2"},
            {"scope": "session:"},
            {"scope": "session:" + "x" * 4096},
            {"metadata": {"a": "x" * 20_000}},
        ],
    )
    def test_terms_that_make_no_sense_are_refused(
        self, bench: Bench, terms: dict[str, Any]
    ) -> None:
        assert refusal(lambda: bench.object("a", **terms)) == "E.RESOURCE.INVALID"
        assert not bench.registry.list()

    def test_an_id_can_be_registered_again_by_its_run_when_nobody_else_uses_it(
        self, bench: Bench
    ) -> None:
        bench.file("a", b"first")
        again = bench.file("a", b"second", by=maker(attempt=1))
        assert [path.read_bytes() for path in bench.files()] == [b"second"]
        bench.registry.lease("a", lessee(task="t-2"))
        assert refusal(lambda: bench.file("a", by=maker(attempt=2))) == "E.RESOURCE.BUSY"
        assert refusal(lambda: bench.file("a", by=maker("run-2"))) == "E.RESOURCE.DENIED"
        assert bench.registry.lease("a", lessee()) is again
        assert len(bench.files()) == 1


class TestLeasing:
    def test_only_the_run_may_lease_until_a_result_lists_it(self, bench: Bench) -> None:
        bench.file("a")
        other = lessee("run-2")
        assert refusal(lambda: bench.registry.lease("a", other)) == "E.RESOURCE.DENIED"
        assert refusal(lambda: bench.registry.touch("a", other)) == "E.RESOURCE.DENIED"
        assert refusal(lambda: bench.registry.evict("a", lessee=other)) == "E.RESOURCE.DENIED"
        bench.registry.mark_listed("a", RunId("run-1"))
        assert bench.registry.lease("a", other).in_use_count == 2
        assert refusal(lambda: bench.registry.evict("a", lessee=other)) == "E.RESOURCE.DENIED"

    def test_whatever_is_of_a_session_is_for_all_of_the_tenant(self, bench: Bench) -> None:
        bench.object("browser", scope="session:shop")
        assert bench.registry.lease("browser", lessee("run-2")).scope == "session:shop"

    def test_what_nobody_made_is_missing(self, bench: Bench) -> None:
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.MISSING"

    def test_after_its_time_it_is_expired_even_before_it_is_cleaned_up(self, bench: Bench) -> None:
        bench.file("a", ttl_s=10)
        bench.clock.turn(10)
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.EXPIRED"
        bench.end()
        bench.registry.gc()
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.EXPIRED"
        assert bench.states()[-1] == ("a", "evicted")

    def test_releases_are_counted_and_one_too_many_is_an_error(self, bench: Bench) -> None:
        made = bench.file("a")
        bench.registry.lease("a", lessee())
        bench.registry.release("a", lessee())
        bench.registry.release("a", lessee())
        assert made.in_use_count == 0
        assert refusal(lambda: bench.registry.release("a", lessee())) == "E.RESOURCE.INVALID"
        assert made.in_use_count == 0

    def test_another_attempt_cannot_release_it(self, bench: Bench) -> None:
        made = bench.file("a")
        other = lessee(task="t-2")
        assert refusal(lambda: bench.registry.release("a", other)) == "E.RESOURCE.INVALID"
        assert made.in_use_count == 1

    def test_the_end_of_an_attempt_gives_all_of_its_leases_back_and_no_others(
        self, bench: Bench
    ) -> None:
        made = bench.file("a")
        other = lessee(task="t-2")
        bench.registry.lease("a", lessee())
        bench.registry.lease("a", other)
        bench.end()
        assert made.in_use_count == 1
        bench.end()
        assert made.in_use_count == 1
        bench.end(other)
        assert made.in_use_count == 0

    def test_a_touch_prolongs_and_never_shortens(self, bench: Bench) -> None:
        made = bench.file("a", ttl_s=100)
        before = made.expires_at
        bench.clock.turn(50)
        bench.registry.touch("a", lessee(), expires_at=bench.clock.wall_ms() + 1000)
        assert made.expires_at == before
        bench.registry.touch("a", lessee())
        assert made.expires_at == before + 50_000
        assert bench.states()[-1] == ("a", "touched")

    @pytest.mark.parametrize("at", [1, 253_402_300_799_000])
    def test_a_touch_into_the_past_or_too_far_is_refused(self, bench: Bench, at: int) -> None:
        made = bench.file("a")
        before = made.expires_at
        call = lambda: bench.registry.touch("a", lessee(), expires_at=at)  # noqa: E731
        assert refusal(call) == "E.RESOURCE.INVALID"
        assert made.expires_at == before


class TestGoing:
    def test_what_is_in_use_goes_with_its_last_lease(self, bench: Bench) -> None:
        bench.file("a")
        bench.registry.lease("a", lessee(task="t-2"))
        assert bench.registry.evict("a")
        assert bench.states()[-1] == ("a", "evicting")
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.LOST"
        bench.end()
        assert len(bench.files()) == 1
        bench.end(lessee(task="t-2"))
        assert bench.states()[-1] == ("a", "released")
        assert not bench.files()
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.LOST"

    def test_the_end_of_a_scope_spares_what_a_result_lists(self, bench: Bench) -> None:
        bench.file("listed")
        bench.file("unlisted")
        bench.object("object")
        bench.file("other", scope="session:s")
        bench.registry.mark_listed("listed", RunId("run-1"))
        bench.end()
        bench.registry.release_scope("run-1")
        bench.registry.closed(bench.host.asked[0])
        assert sorted(one.resource_id for one in bench.registry.list()) == ["listed", "other"]
        assert refusal(lambda: bench.registry.lease("unlisted", lessee())) == "E.RESOURCE.LOST"

    def test_a_handler_cannot_end_the_scope_of_another_run(self, bench: Bench) -> None:
        bench.file("a")
        bench.end()
        call = lambda: bench.registry.release_scope("run-1", lessee=lessee("run-2"))  # noqa: E731
        assert refusal(call) == "E.RESOURCE.DENIED"
        assert len(bench.files()) == 1

    def test_room_is_made_by_the_longest_unused_and_listed_ones_go_last(
        self, make: Callable[..., Bench]
    ) -> None:
        bench = make(max_disk_bytes=30)
        for name in ("listed", "used", "unused"):
            bench.file(name, b"x" * 10)
            bench.clock.turn(1)
        bench.registry.mark_listed("listed", RunId("run-1"))
        bench.registry.lease("used", lessee(task="t-2"))
        bench.end()
        bench.registry.release("used", lessee(task="t-2"))
        bench.file("new", b"x" * 10)
        assert ("unused", "evicted") in bench.states()
        assert sorted(one.resource_id for one in bench.registry.list()) == ["listed", "new", "used"]
        bench.file("newer", b"x" * 10)
        assert ("used", "evicted") in bench.states()
        bench.end()
        bench.clock.turn(1)
        bench.registry.mark_listed("new", RunId("run-1"))
        bench.registry.mark_listed("newer", RunId("run-1"))
        bench.file("newest", b"x" * 10)
        assert ("listed", "evicted") in bench.states()

    def test_what_has_no_room_is_refused_and_nothing_goes_for_it(
        self, make: Callable[..., Bench]
    ) -> None:
        bench = make(max_disk_bytes=30, max_mem_bytes=10, max_sessions=2)
        bench.file("free", b"x" * 10)
        bench.end()
        bench.file("held", b"x" * 20)
        assert refusal(lambda: bench.file("large", b"x" * 11)) == "E.RESOURCE.QUOTA"
        assert len(bench.files()) == 2
        assert refusal(lambda: bench.object("large", size_bytes=11)) == "E.RESOURCE.QUOTA"
        bench.object("one")
        bench.object("two")
        assert refusal(lambda: bench.object("three")) == "E.RESOURCE.QUOTA"
        assert bench.host.asked == []

    def test_an_eviction_never_takes_what_is_leased(self, make: Callable[..., Bench]) -> None:
        """first registered, leased by another, its maker ends, then room is needed: it stays."""
        bench = make(max_disk_bytes=10)
        bench.file("a", b"x" * 10)
        bench.registry.lease("a", lessee(task="t-2"))
        bench.end()
        assert refusal(lambda: bench.file("b", b"x" * 10)) == "E.RESOURCE.QUOTA"
        bench.clock.turn(7200)
        bench.registry.gc()
        assert [one.resource_id for one in bench.registry.list()] == ["a"]
        bench.end(lessee(task="t-2"))
        bench.registry.gc()
        assert not bench.registry.list()
        assert bench.registry.metrics().disk_bytes_in_use == 0

    def test_the_loop_keeps_some_room_free(self, make: Callable[..., Bench]) -> None:
        bench = make(max_disk_bytes=100)
        for number in range(10):
            bench.file(f"{number}", b"x" * 10)
            bench.clock.turn(1)
        bench.registry.mark_listed("0", RunId("run-1"))
        bench.end()
        bench.registry.gc()
        assert sorted(one.resource_id for one in bench.registry.list()) == [
            "0", "3", "4", "5", "6", "7", "8", "9",
        ]  # fmt: skip

    def test_what_takes_no_room_is_not_closed_to_make_some(
        self, make: Callable[..., Bench]
    ) -> None:
        bench = make(max_mem_bytes=100)
        bench.object("browser")  # the longest unused, and of no bytes
        bench.clock.turn(1)
        bench.object("old model", size_bytes=80)
        bench.end()
        bench.object("model", size_bytes=90)
        assert [one.state for one in bench.registry.list()] == ["ready", "evicting", "ready"]
        assert bench.registry.list()[1].resource_id == "old model"
        bench.end()
        bench.registry.gc()
        assert bench.registry.find("browser").state == "ready"  # type: ignore[union-attr]

    def test_one_object_takes_its_room_once_however_often_it_is_kept(
        self, make: Callable[..., Bench]
    ) -> None:
        bench = make(max_mem_bytes=100, max_sessions=3)
        first = bench.object("0", size_bytes=60)
        for number in range(1, 10):
            bench.object(f"{number}", size_bytes=60, shares=first.token)
        assert bench.registry.metrics().mem_bytes_in_use == 60
        assert bench.registry.metrics().sessions_active == 1
        bench.end()
        bench.registry.evict("0")
        bench.registry.closed(first.token)
        assert bench.registry.metrics().mem_bytes_in_use == 60  # the others still have it
        bench.registry.check()
        # Room for another is made by all of them together, unless one of them is used.
        bench.registry.lease("5", lessee())
        assert refusal(lambda: bench.object("next", size_bytes=50)) == "E.RESOURCE.QUOTA"
        bench.end()
        bench.object("next", size_bytes=50)
        states = {one.resource_id: one.state for one in bench.registry.list()}
        assert states == {"next": "ready", **{f"{number}": "evicting" for number in range(1, 10)}}
        bench.registry.check()

    def test_the_object_of_another_host_is_another_object(self, bench: Bench) -> None:
        first = bench.object("mine", size_bytes=10)
        bench.host = FakeHolder()
        bench.object("yours", size_bytes=10, shares=first.token)
        assert bench.registry.metrics().mem_bytes_in_use == 20

    def test_an_object_is_closed_before_it_is_gone(self, bench: Bench) -> None:
        made = bench.object("model")
        assert bench.host.kept == {made.token}
        bench.end()
        bench.registry.evict("model")
        assert bench.host.asked == [made.token]
        assert bench.states()[-1] == ("model", "evicting")
        assert refusal(lambda: bench.registry.lease("model", lessee())) == "E.RESOURCE.LOST"
        bench.registry.closed(made.token)
        assert bench.states()[-1] == ("model", "released")
        assert bench.host.kept == set()

    def test_a_host_that_does_not_close_an_object_does_not_keep_it_for_ever(
        self, bench: Bench
    ) -> None:
        bench.object("model")
        bench.end()
        bench.registry.evict("model")
        bench.registry.gc()
        assert bench.states()[-1] == ("model", "evicting")
        bench.clock.turn(11)
        bench.registry.gc()
        assert bench.states()[-1] == ("model", "released")

    def test_the_death_of_a_host_takes_its_objects(self, bench: Bench) -> None:
        bench.object("model")
        bench.registry.host_gone(bench.host)
        assert bench.states()[-1] == ("model", "evicted")
        assert refusal(lambda: bench.registry.lease("model", lessee())) == "E.RESOURCE.LOST"
        bench.end()
        assert bench.registry.metrics().sessions_active == 0

    def test_what_went_is_remembered_for_a_day(self, bench: Bench) -> None:
        bench.file("a")
        bench.end()
        bench.registry.evict("a")
        bench.clock.turn(86_399)
        bench.registry.gc()
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.LOST"
        bench.clock.turn(2)
        bench.registry.gc()
        assert refusal(lambda: bench.registry.lease("a", lessee())) == "E.RESOURCE.MISSING"

    def test_discarded_files_are_deleted_by_the_sweep(self, bench: Bench) -> None:
        bench.file("a")
        bench.end()
        bench.registry.evict("a")
        bench.registry.sweeping()()
        root = bench.registry.files.root
        assert not [path for path in root.rglob("*") if path.is_file()]


class TestRestart:
    def test_complete_files_survive_and_objects_are_told_evicted(self, bench: Bench) -> None:
        bench.file("file", b"kept")
        bench.object("model")
        bench.registry.mark_listed("file", RunId("run-1"))
        bench.restart()
        assert sorted(bench.states()) == [("file", "ready"), ("model", "evicted")]
        kept = bench.registry.lease("file", lessee("run-2"))
        assert (kept.in_use_count, kept.listed) == (1, True)
        assert bench.registry.files.path_of(kept.token, kept.name).read_bytes() == b"kept"
        assert refusal(lambda: bench.registry.lease("model", lessee())) == "E.RESOURCE.LOST"
        assert bench.registry.metrics().disk_bytes_in_use == 4

    def test_a_row_or_file_that_is_not_whole_is_swept(self, bench: Bench) -> None:
        half = bench.file("half", b"whole")
        broken = bench.file("broken")
        bench.file("good")
        bench.registry.files.path_of(half.token, half.name).write_bytes(b"who")
        rows = sqlite3.connect(bench.folder / "resources.db")
        with rows:
            rows.execute(
                "UPDATE resources SET record = substr(record, 1, 40) WHERE token = ?",
                (broken.token,),
            )
        rows.close()
        bench.restart()
        assert sorted(bench.states()) == [("good", "ready"), ("half", "evicted")]
        assert len(bench.files()) == 1
        assert refusal(lambda: bench.registry.lease("broken", lessee())) == "E.RESOURCE.MISSING"

    def test_a_file_that_was_moved_but_never_registered_is_swept(self, bench: Bench) -> None:
        stray = bench.registry.files.path_of("cd" * 16, "stray")
        stray.parent.mkdir(parents=True)
        stray.write_text("x")
        bench.restart()
        assert not stray.exists()

    def test_a_ledger_that_is_no_database_is_set_aside(self, bench: Bench) -> None:
        bench.file("a")
        bench.registry.close()
        for name in ("resources.db-wal", "resources.db-shm"):
            (bench.folder / name).unlink(missing_ok=True)
        (bench.folder / "resources.db").write_bytes(b"not a database" * 1000)
        bench.restart()
        assert bench.registry.list() == []
        assert not bench.files()
        assert (bench.folder / "resources.db.broken").exists()
        bench.file("b")

    def test_what_was_going_does_not_come_back(self, bench: Bench) -> None:
        bench.file("a")
        bench.registry.evict("a")
        bench.restart()
        assert bench.states() == [("a", "evicted")]
        assert not bench.files()

    def test_a_lane_whose_resource_another_lane_replaces_is_told_of_its_end(
        self, bench: Bench
    ) -> None:
        def of(lane: int) -> Maker:
            return msgspec.structs.replace(maker(task=f"t-{lane}"), lane=lane)

        bench.file("session:a/x", by=of(0), scope="session:a")
        bench.end(lessee(task="t-0"))
        bench.file("session:a/x", by=of(1), scope="session:a")
        told = [(one.state, lane) for one, lane in zip(bench.events, bench.lanes_told, strict=True)]
        assert told == [("ready", 0), ("released", 0), ("ready", 1)]

    def test_what_replaced_another_is_the_one_that_is_there(self, bench: Bench) -> None:
        bench.file("a", b"first")
        bench.file("a", b"second")
        bench.restart()
        assert [path.read_bytes() for path in bench.files()] == [b"second"]


def test_an_artifact_is_a_reference_without_paths(bench: Bench) -> None:
    bench.file("a", b"abc", metadata={"mime": "text/plain"})
    told = bench.registry.get("a", None).artifact()
    assert (told.resource_id, told.worker_id, told.type) == ("a", "w-1", "file")
    assert (told.inline, told.size_bytes) == (False, 3)
    assert "path" not in msgspec.json.decode(told.metadata)


def test_the_numbers_of_a_heartbeat_are_what_is_there(bench: Bench) -> None:
    bench.file("a", b"abc")
    bench.object("m", size_bytes=7)
    found = bench.registry.metrics()
    assert (found.disk_bytes_in_use, found.mem_bytes_in_use) == (3, 7)
    assert (found.sessions_active, found.eviction_candidates) == (1, 0)
    bench.end()
    assert bench.registry.metrics().eviction_candidates == 2


STEPS = st.tuples(
    st.sampled_from(["file", "object", "lease", "release", "end", "evict", "scope", "gc", "die"]),
    st.integers(0, 2),
    st.integers(0, 2),
)


@settings(max_examples=25)  # each has a folder and a database of its own
@given(st.lists(STEPS, max_size=40))
def test_counts_are_exact_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    """I18: what is leased is there, no count is wrong, and in the end nothing is left."""
    bench = Bench(tmp_path_factory.mktemp("bench"), max_disk_bytes=2, max_sessions=2)
    try:
        for action, name, task in steps:
            _step(bench, action, f"r{name}", lessee(task=f"t{task}"))
            bench.registry.check()
        bench.end(*(lessee(task=f"t{task}") for task in range(3)))
        bench.clock.turn(7200)
        bench.registry.gc()
        for token in list(bench.host.asked):
            bench.registry.closed(token)
        bench.registry.check()
        assert bench.registry.list() == []
        assert bench.registry.metrics().disk_bytes_in_use == 0
        assert not bench.files()
    finally:
        bench.registry.close()


def _step(bench: Bench, action: str, name: str, who: Lessee) -> None:
    registry = bench.registry
    by = maker(task=who.task_id)
    bench.clock.turn(1)
    calls: dict[str, Callable[[], object]] = {
        "file": lambda: bench.file(name, by=by),
        "object": lambda: bench.object(name, by=by),
        "lease": lambda: registry.lease(name, who),
        "release": lambda: registry.release(name, who),
        "end": lambda: registry.release_attempt(who),
        "evict": lambda: registry.evict(name),
        "scope": lambda: registry.release_scope("run-1"),
        "gc": registry.gc,
        "die": lambda: registry.host_gone(bench.host),
    }
    try:
        calls[action]()
    except errors.Refused:
        return


def test_what_is_said_of_a_file_is_kept_with_it(bench: Bench) -> None:
    path = bench.source / "a.txt"
    path.write_text("x")
    made = take_in(bench.registry, "a", path, terms=Terms(ttl_s=5))
    assert made.expires_at - made.created_at == 5000
    assert made.metadata["name"] == "a.txt"


def test_what_went_just_before_a_crash_is_told_again_at_the_next_start(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    path = bench.source / "made"
    path.write_bytes(b"x")
    take_in(bench.registry, "r1", path, maker=maker())
    bench.registry.release_attempt(lessee())
    bench.registry.evict("r1", "closed")
    bench.events.clear()
    bench.restart()
    assert [(event.resource_id, event.state) for event in bench.events] == [("r1", "released")]
    bench.registry.close()
