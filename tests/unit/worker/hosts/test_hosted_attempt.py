"""Feedback is merged, limited, and told in order."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import PoolSettings, frames
from astraflow.worker.hosts.hosted_attempt import (
    MERGE_BYTES,
    MERGE_CHUNKS,
    HostedAttempt,
    PendingFeedback,
)
from astraflow.worker.hosts.rate_limit import RateLimit
from astraflow.worker.hosts.secret_mask import SecretMask

PARAMETERS = msgspec.Raw(b'{"a": 1}')
DISPATCH = business.Dispatch(
    RunId("r"),
    TaskId("t"),
    2,
    1,
    "n",
    "p.x",
    business.PackageId("p", "1"),
    PARAMETERS,
    business.LeaseGrant(1, "hb"),
)


def pending(**settings: Any) -> PendingFeedback:
    return PendingFeedback(PoolSettings(**settings), 0.0)


def said(*chunks: business.FeedbackChunk, **fields: Any) -> frames.HostFeedback:
    return frames.HostFeedback(TaskId("t"), 2, chunks=chunks, **fields)


def chunk(text: str, index: int = 0, channel: str = "llm") -> business.FeedbackChunk:
    return business.FeedbackChunk(channel, index, text=text)


class TestAllowance:
    def test_a_second_is_worth_the_rate_and_no_more_is_saved(self) -> None:
        allowance = RateLimit(10, 0.0, 1000)
        assert allowance.take(10, 0.0)
        assert not allowance.take(1, 0.0)
        assert allowance.take(5, 0.5)
        assert not allowance.take(11, 100.0)
        assert allowance.take(10, 100.0)

    def test_the_total_ends_it_for_good(self) -> None:
        allowance = RateLimit(10, 0.0, 15)
        assert allowance.take(10, 0.0)
        assert not allowance.take(6, 9.0)
        assert allowance.take(5, 9.0)


class TestMasking:
    KEY = "canary-4711"

    def test_feedback_is_masked_in_every_text(self) -> None:
        feedback = PendingFeedback(PoolSettings(), 0.0, SecretMask([self.KEY]))
        metadata = msgspec.Raw(msgspec.json.encode({self.KEY: [self.KEY]}))
        noted = msgspec.structs.replace(chunk(f"a {self.KEY}"), metadata=metadata)
        texts = {"message": self.KEY, "stage": f"with {self.KEY}"}
        feedback.add(said(noted, metrics={f"loss of {self.KEY}": 1.0, "rows": 2.0}, **texts), 0.0)
        told = feedback.take(DISPATCH)
        assert told is not None
        assert (told.message, told.stage) == ("***", "with ***")
        assert told.metrics == {"loss of ***": 1.0, "rows": 2.0}
        assert (told.chunks[0].text, bytes(told.chunks[0].metadata)) == (
            "a ***",
            b'{"***":["***"]}',
        )

    def test_a_result_is_masked_in_every_text(self) -> None:
        dispatch = msgspec.structs.replace(DISPATCH, secrets={"key": self.KEY})
        attempt = HostedAttempt(dispatch, 1.0, 0.0)
        error = business.AttemptError(f"E.{self.KEY}", "USER_CODE", self.KEY, stack=self.KEY)
        result = business.Result(
            *(dispatch.run_id, dispatch.task_id, dispatch.attempt, "FAILED"),
            metrics={self.KEY: 1.0}, error=error,
        )  # fmt: skip
        masked = attempt.masked_result(result)
        assert masked.metrics == {"***": 1.0}
        assert masked.error == business.AttemptError("E.***", "USER_CODE", "***", stack="***")
        assert self.KEY not in str(masked)


class TestPendingFeedback:
    def test_nothing_said_is_nothing_told(self) -> None:
        assert pending().take(DISPATCH) is None

    def test_what_was_said_in_a_moment_is_one_frame_and_told_once(self) -> None:
        feedback = pending()
        feedback.add(said(chunk("a"), progress=0.1, message="m", stage="s"), 0.0)
        feedback.add(said(chunk("b", 1), progress=0.2), 0.0)
        assert feedback.take(DISPATCH) == business.Feedback(
            RunId("r"), TaskId("t"), 2, "s", 0.2, "m", (chunk("a"), chunk("b", 1))
        )
        assert feedback.take(DISPATCH) is None

    def test_it_is_full_by_count_or_by_size(self) -> None:
        feedback = pending()
        feedback.add(said(*(chunk("x", n) for n in range(MERGE_CHUNKS - 1))), 0.0)
        before = feedback.is_full
        feedback.add(said(chunk("x")), 0.0)
        assert (before, feedback.is_full) == (False, True)
        large = pending()
        large.add(said(chunk("x" * MERGE_BYTES)), 0.0)
        assert large.is_full

    def test_what_is_beyond_the_rate_is_dropped_and_counted(self) -> None:
        feedback = pending(feedback_bytes_per_s=1000)
        feedback.add(said(chunk("x" * 900), chunk("y" * 900, 1), dropped=3), 0.0)
        told = feedback.take(DISPATCH)
        assert told is not None
        assert ([one.index for one in told.chunks], told.dropped) == ([0], 4)

    def test_a_drop_is_told_even_if_nothing_else_is(self) -> None:
        feedback = pending()
        feedback.add_lines("stdout", [], 5, 0.0)
        told = feedback.take(DISPATCH)
        assert told is not None
        assert (told.chunks, told.dropped) == ((), 5)

    def test_printed_lines_of_both_ways_are_numbered_together(self) -> None:
        feedback = pending()
        feedback.add(said(chunk("a\n", 0, "stdout"), chunk("c\n", 0, "stderr")), 0.0)
        feedback.add_lines("stdout", ["b\n"], 0, 0.0)
        told = feedback.take(DISPATCH)
        assert told is not None
        assert [(one.channel, one.index, one.text) for one in told.chunks] == [
            ("stdout", 0, "a\n"),
            ("stderr", 0, "c\n"),
            ("stdout", 1, "b\n"),
        ]


class TestRunning:
    def test_a_start_carries_what_a_handler_may_know(self) -> None:
        running = HostedAttempt(DISPATCH, 9.0, 0.0)
        running.folder = "/data/host/1"
        (raw,) = frames.Splitter().feed(running.start_frame())
        assert json.loads(raw) == {
            "type": "start",
            "task_id": "t",
            "attempt": 2,
            "run_id": "r",
            "node_id": "n",
            "node_type": "p.x",
            "parameters": {"a": 1},
            "data_dir": "/data/host/1",
            "failures": 1,
        }

    def test_an_attempt_that_was_lost_before_needs_a_host_of_its_own(self) -> None:
        assert not HostedAttempt(DISPATCH, 9.0, 0.0).needs_own_host
        lost = msgspec.structs.replace(DISPATCH, attempt=3)
        assert HostedAttempt(lost, 9.0, 0.0).needs_own_host
