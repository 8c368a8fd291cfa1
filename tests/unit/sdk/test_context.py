"""What a handler can know and say."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from astraflow_sdk import Cancelled
from astraflow_sdk.context import CHUNK_CHARS, FRAME_CHUNKS, PENDING_CHUNKS, Context

from tests.unit.sdk.port import Ear, context


def ear_of(ctx: Context) -> Ear:
    assert isinstance(ctx._port, Ear)
    return ctx._port


def test_a_context_knows_its_attempt() -> None:
    ctx = context({"a": 1}, failures=1, timeout_ms=1500, chain_index=0, secrets={"k": "v"})
    assert (ctx.run_id, ctx.node_id, ctx.task_id, ctx.node_type) == ("r-1", "n-1", "t-1", "a.b")
    assert (ctx.attempt, ctx.failures, ctx.timeout_s, ctx.chain_index) == (2, 1, 1.5, 0)
    assert (ctx.parameters, ctx.inputs, ctx.secrets) == ({"a": 1}, {"a": 1}, {"k": "v"})
    assert ctx.worker_id == "w-1"
    assert (ctx.resource_refs, ctx.traceparent) == ([], None)
    assert context().timeout_s is None


def test_the_folder_of_an_attempt_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    ctx = context(data_dir=str(tmp_path / "host" / "1"))
    assert not ctx.told_data_dir.exists()
    (ctx.data_dir / "a").write_text("x")
    assert [one.name for one in ctx.data_dir.iterdir()] == ["a"]


def test_the_idempotency_key_is_the_same_for_every_attempt() -> None:
    assert context(attempt=1).idempotency_key == context(attempt=5).idempotency_key
    assert context(task_id="t-2").idempotency_key != context().idempotency_key


def test_of_several_progresses_the_last_is_told_and_the_last_message_kept() -> None:
    ctx = context()
    ctx.progress(0.1, "first")
    ctx.progress(7)
    assert ctx.take_feedback() == {"progress": 1.0, "message": "first"}
    assert ctx.take_feedback() is None


def test_of_several_metrics_of_one_name_the_last_is_told() -> None:
    ctx = context()
    ctx.metrics(loss=0.5, rows=10)
    ctx.progress(0.5)
    ctx.metrics({"loss": 0.25, "a name with spaces": 1})
    told = {"loss": 0.25, "rows": 10.0, "a name with spaces": 1.0}
    assert ctx.take_feedback() == {"progress": 0.5, "metrics": told}
    ctx.metrics()
    ctx.metrics({})
    assert ctx.take_feedback() is None


@pytest.mark.parametrize(
    "given",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": "high"},
        {"x": None},
        {"x": 10**400},
        {"": 1.0},
        {"n" * 257: 1.0},
        {1: 1.0},
        {f"m{number}": 1.0 for number in range(257)},
    ],
)
def test_what_is_no_metric_is_refused_and_nothing_is_told(given: dict[str, float]) -> None:
    ctx = context()
    with pytest.raises(ValueError, match="metric"):
        ctx.metrics(given)
    assert ctx.take_feedback() is None


def test_the_host_is_told_once_until_it_has_listened() -> None:
    ctx = context()
    ctx.log("info", "a")
    ctx.emit("b")
    assert len(ear_of(ctx).told_by) == 1
    ctx.take_feedback()
    ctx.emit("c")
    assert len(ear_of(ctx).told_by) == 2


def test_each_channel_counts_its_own_pieces() -> None:
    ctx = context()
    ctx.log("warning", "careful")
    ctx.emit("a", channel="llm", mime_type="text/plain")
    ctx.emit(b"\0\1", channel="llm", metadata={"k": 1})
    assert ctx.take_feedback() == {
        "chunks": [
            {"channel": "log", "index": 0, "text": "careful", "metadata": {"level": "warning"}},
            {"channel": "llm", "index": 0, "text": "a", "mime_type": "text/plain"},
            {
                "channel": "llm",
                "index": 1,
                "data_base64": base64.b64encode(b"\0\1").decode(),
                "metadata": {"k": 1},
            },
        ]
    }


def test_a_long_text_is_told_in_pieces_and_an_empty_one_as_one() -> None:
    ctx = context()
    ctx.emit("x" * (CHUNK_CHARS + 1))
    ctx.emit("")
    feedback = ctx.take_feedback()
    assert feedback is not None
    assert [len(chunk["text"]) for chunk in feedback["chunks"]] == [CHUNK_CHARS, 1, 0]


def test_pieces_that_nobody_fetches_are_dropped_and_counted() -> None:
    ctx = context()
    for _ in range(PENDING_CHUNKS + 3):
        ctx.emit("x")
    told = dropped = 0
    while (feedback := ctx.take_feedback()) is not None:
        assert len(feedback["chunks"]) <= FRAME_CHUNKS
        told += len(feedback["chunks"])
        dropped += feedback.get("dropped", 0)
    assert (told, dropped) == (PENDING_CHUNKS, 3)


def test_a_cancel_is_seen_and_can_be_raised() -> None:
    ctx = context()
    ctx.raise_if_cancelled()
    before = ctx.cancelled
    ctx.cancel_reason = "enough"
    assert (before, ctx.cancelled) == (False, True)
    with pytest.raises(Cancelled, match="enough"):
        ctx.raise_if_cancelled()
    assert not issubclass(Cancelled, Exception)


def test_artifacts_carry_the_worker_that_holds_them() -> None:
    ctx = context()
    ctx.add_artifact("r/1", "file", size_bytes=3, metadata={"mime": "text/plain"})
    ctx.add_artifact("r/2", "session")
    assert ctx.take_artifacts() == [
        {
            "resource_id": "r/1",
            "worker_id": "w-1",
            "type": "file",
            "size_bytes": 3,
            "metadata": {"mime": "text/plain"},
        },
        {"resource_id": "r/2", "worker_id": "w-1", "type": "session"},
    ]


def test_the_rest_of_the_chain_is_asked_through_the_host() -> None:
    ctx = context()
    assert ctx.next({"a": 1}, timeout_s=3) == "answer"
    assert ear_of(ctx).asked == [({"a": 1}, 3)]
