"""What attempts say while they run, and what they ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import process
from tests.worker.hosts.stage import Stage, error_of, staged, value_of


def python(code: str, **inputs: Any) -> dict[str, Any]:
    return {"code": code, "inputs": inputs}


async def test_chunks_of_a_moment_go_up_together_and_before_the_result(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        result = await stage.outcome_of("core.stream", {"text": "one two three", "delayMs": 0})
        assert value_of(result) == {"text": "one two three"}
        (feedback,) = stage.said
        assert [(c.channel, c.index, c.text) for c in feedback.chunks] == [
            ("llm", 0, "one "),
            ("llm", 1, "two "),
            ("llm", 2, "three"),
        ]


async def test_many_chunks_go_up_in_frames_of_bounded_size_without_a_gap(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        words = " ".join(str(n) for n in range(500))
        await stage.outcome_of("core.stream", {"text": words})
        assert max(len(one.chunks) for one in stage.said) <= 64
        indexes = [chunk.index for one in stage.said for chunk in one.chunks]
        assert indexes == list(range(500))


async def test_what_is_printed_is_told_of_the_attempt_that_printed_it(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "async def main(word):\n"
        "    print(word)\n"
        "    await asyncio.sleep(0.01)\n"
        "    print(word, end='')\n"
    )

    async with staged(tmp_path) as stage:
        for word in ("red", "blue"):
            stage.start("core.python", python(code, word=word), task=word)
        for word in ("red", "blue"):
            await stage.outcome(word)
            assert stage.texts("stdout", word) == [f"{word}\n", f"{word}\n"]


async def test_what_a_program_of_an_attempt_prints_is_told_when_it_can_only_be_its_own(
    tmp_path: Path,
) -> None:
    code = "import os\ndef main():\n    os.system('echo out; echo err >&2')\n    print('mine')"

    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.python", python(code))
        assert sorted(stage.texts("stdout")) == ["mine\n", "out\n"]
        assert stage.texts("stderr") == ["err\n"]
        numbers = [c.index for f in stage.said for c in f.chunks if c.channel == "stdout"]
        assert numbers == [0, 1]


async def test_progress_of_a_moment_is_told_once_with_the_newest_value(tmp_path: Path) -> None:
    code = "def main():\n    for n in range(101): ctx.progress(n / 100, f'step {n}')"

    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.python", python(code))
        assert (stage.said[-1].progress, stage.said[-1].message) == (1.0, "step 100")
        assert len(stage.said) < 100


async def test_metrics_of_a_moment_are_told_once_with_the_newest_values(tmp_path: Path) -> None:
    code = (
        "def main():\n"
        "    ctx.log('warning', 'odd')\n"
        "    for n in range(101): ctx.metrics(loss=1 / (n + 1), rows=n)"
    )

    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.python", python(code))
        told: dict[str, float] = {}
        for one in stage.said:
            told |= one.metrics
        assert told == {"loss": 1 / 101, "rows": 100.0}
        assert len(stage.said) < 100
        (line,) = [chunk for one in stage.said for chunk in one.chunks]
        assert (line.channel, bytes(line.metadata)) == ("log", b'{"level":"warning"}')


async def test_bytes_travel_as_base64_in_pieces(tmp_path: Path) -> None:
    code = "def main():\n    ctx.emit(b'x' * 100_000, channel='pixels', mime_type='image/raw')"

    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.python", python(code))
        chunks = [chunk for one in stage.said for chunk in one.chunks]
        assert [chunk.index for chunk in chunks] == [0, 1, 2]
        assert {chunk.mime_type for chunk in chunks} == {"image/raw"}
        assert all(chunk.data_base64 for chunk in chunks)


async def test_feedback_beyond_its_limit_is_dropped_and_counted_and_the_result_arrives(
    tmp_path: Path,
) -> None:
    code = "def main():\n    for n in range(1000): ctx.emit('x' * 1000)"

    async with staged(tmp_path, feedback_bytes=100_000) as stage:
        await stage.outcome_of("core.python", python(code))
        told = sum(len(one.chunks) for one in stage.said)
        assert 0 < told < 100
        assert told + stage.dropped() == 1000


async def test_a_host_that_says_too_much_is_read_slowly_and_loses_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CHANNEL_BYTES_PER_S", 1024 * 1024)

    async with staged(tmp_path) as stage:
        stage.start("nasty.says_a_lot", {"mib": 10})
        assert value_of(await stage.outcome_of("core.echo", {"value": 1}, task="other"))
        assert (await stage.outcome()).status == "SUCCEEDED"
        told = sum(len(one.chunks) for one in stage.said)
        assert told + stage.dropped() == 10 * 64


async def test_secrets_of_the_attempt_are_masked_in_all_that_is_kept(tmp_path: Path) -> None:
    code = (
        "def main():\n"
        "    key = ctx.secrets['key']\n"
        "    print('printed', key); ctx.log('info', f'logged {key}'); ctx.progress(1, f'at {key}')\n"
        "    raise ValueError(f'raised {key}')\n"
    )

    async with staged(tmp_path) as stage:
        secrets = {"key": "hunter2", "pin": "1"}
        stage.start("core.python", python(code), secrets=secrets)
        error = error_of(await stage.outcome())
        kept = repr(stage.said) + repr(error)
        assert "hunter2" not in kept
        for word in ("printed ***", "logged ***", "at ***", "raised ***"):
            assert word in kept


class TestNext:
    async def _answer(self, stage: Stage, result: object = None, **fields: Any) -> None:
        call = stage.calls[-1]
        raw = msgspec.Raw(json.dumps(result).encode())
        stage.pool.answer(
            business.NextResponse(
                call.run_id, call.task_id, call.attempt, call.request_id, raw, **fields
            )
        )

    async def test_a_middleware_calls_the_rest_of_its_chain_as_often_as_it_likes(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path) as stage:
            stage.start("nasty.middleware", chain_index=1)
            await stage.until(lambda: len(stage.calls) == 1)
            await self._answer(stage, {"a": 1})
            await stage.until(lambda: len(stage.calls) == 2)
            await self._answer(stage, "b")
            assert value_of(await stage.outcome()) == {"answers": [{"a": 1}, "b"]}
            first, second = stage.calls
            assert first.request_id != second.request_id
            assert (first.chain_index, bytes(first.payload)) == (1, b'{"n":1}')
            assert (second.timeout_ms, bytes(second.payload)) == (2000, b"null")

    async def test_a_plain_function_waits_for_its_answer(self, tmp_path: Path) -> None:
        async with staged(tmp_path) as stage:
            stage.start("nasty.thread_middleware", chain_index=0)
            await stage.until(lambda: stage.calls)
            await self._answer(stage, [1])
            assert value_of(await stage.outcome()) == {"answer": [1]}

    @pytest.mark.parametrize("node_type", ["nasty.middleware", "nasty.thread_middleware"])
    async def test_a_failed_call_is_raised_where_it_was_made(
        self, tmp_path: Path, node_type: str
    ) -> None:
        async with staged(tmp_path) as stage:
            stage.start(node_type, chain_index=0)
            await stage.until(lambda: stage.calls)
            problem = business.AttemptError("E.NEXT.TIMEOUT", "TIMEOUT", "too slow", True)
            await self._answer(stage, error=problem)
            error = error_of(await stage.outcome())
            assert (error.code, error.category) == ("E.NEXT.TIMEOUT", "TIMEOUT")
            assert (error.message, error.retryable) == ("too slow", True)

    async def test_a_plain_function_that_waits_can_be_cancelled(self, tmp_path: Path) -> None:
        async with staged(tmp_path) as stage:
            stage.start("nasty.thread_middleware", chain_index=0)
            await stage.until(lambda: stage.calls)
            stage.pool.cancel(TaskId("t1"), 1, 60, "cancel")
            assert (await stage.outcome()).status == "CANCELLED"
            await self._answer(stage)
            assert stage.pool.counters == {"answer that nobody waits for": 1}

    async def test_a_node_that_is_no_middleware_has_no_rest_to_call(self, tmp_path: Path) -> None:
        async with staged(tmp_path) as stage:
            error = error_of(await stage.outcome_of("nasty.middleware"))
            assert (error.code, error.category) == ("E.NEXT.INVALID", "CONFIGURATION")
