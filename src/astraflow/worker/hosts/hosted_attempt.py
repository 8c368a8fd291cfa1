"""An attempt in the host pool, and its feedback that was not sent yet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.rate_limit import RateLimit
from astraflow.worker.hosts.secret_mask import NO_MASK, SecretMask, masked_json
from astraflow.worker.hosts.settings import PoolSettings

if TYPE_CHECKING:
    from astraflow.worker.hosts.host import Host

MERGE_CHUNKS: Final = 64
MERGE_BYTES: Final = 64 * 1024
"""A frame of feedback is full with that much."""
CHUNK_OVERHEAD_BYTES: Final = 64
"""Counted for each chunk beside its text, so that empty ones are limited too."""

_PRINTED: Final = frozenset({"stdout", "stderr"})


class PendingFeedback:
    """Merges the feedback of an attempt into few frames."""

    def __init__(self, settings: PoolSettings, now: float, mask: SecretMask = NO_MASK) -> None:
        self._mask = mask
        self._allowance = RateLimit(settings.feedback_bytes_per_s, now, settings.feedback_bytes)
        self._indexes: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._chunks: list[business.FeedbackChunk] = []
        self._size = 0
        self._dropped = 0
        self._progress: float | None = None
        self._message: str | None = None
        self._stage: str | None = None
        self._metrics: dict[str, float] = {}

    @property
    def is_full(self) -> bool:
        return len(self._chunks) >= MERGE_CHUNKS or self._size >= MERGE_BYTES

    def add(self, said: frames.HostFeedback, now: float) -> None:
        self._dropped += said.dropped
        for name, value in (
            ("_progress", said.progress),
            ("_message", said.message),
            ("_stage", said.stage),
        ):
            if value is not None:
                setattr(self, name, value)
        if said.metrics:
            self._add_metrics(said.metrics)
        for chunk in said.chunks:
            self._add_chunk(chunk, now)

    def _add_metrics(self, told: Mapping[str, float]) -> None:
        """The last value of each; of new names beyond what fits a frame, none."""
        for name, value in told.items():
            if name in self._metrics or len(self._metrics) < business.MAX_GAUGES:
                self._metrics[name] = value

    def add_lines(self, channel: str, lines: list[str], dropped: int, now: float) -> None:
        """Lines that the worker read itself."""
        self._dropped += dropped
        for line in lines:
            self._add_chunk(business.FeedbackChunk(channel, 0, text=line), now)

    def _add_chunk(self, chunk: business.FeedbackChunk, now: float) -> None:
        size = (
            CHUNK_OVERHEAD_BYTES + len(chunk.text or chunk.data_base64 or "") + len(chunk.metadata)
        )
        if not self._allowance.take(size, now):
            self._dropped += 1
            return
        if chunk.channel in _PRINTED:
            # Printed lines come by two ways, which do not know each other's numbers.
            index = self._indexes.get(chunk.channel, 0)
            self._indexes[chunk.channel] = index + 1
            chunk = msgspec.structs.replace(chunk, index=index)
        self._chunks.append(self._masked(chunk) if self._mask else chunk)
        self._size += size

    def _masked(self, chunk: business.FeedbackChunk) -> business.FeedbackChunk:
        text, data = chunk.text, chunk.data_base64
        return msgspec.structs.replace(
            chunk,
            text=None if text is None else self._mask.piece(chunk.channel, text),
            data_base64=None if data is None else self._mask.data(data),
            metadata=masked_json(self._mask, chunk.metadata),
        )

    def finish(self) -> None:
        """No more comes: what may have been the beginning of a secret was none."""
        for channel, text in self._mask.take_waiting():
            last = [one for one in self._chunks if one.channel == channel][-1:]
            index = self._indexes.get(channel, last[0].index + 1 if last else 0)
            self._chunks.append(business.FeedbackChunk(channel, index, text=text))

    def take(self, dispatch: business.Dispatch) -> business.Feedback | None:
        """What is to be told now, if anything."""
        is_empty = not self._chunks and self._dropped == 0 and self._message is None
        if is_empty and self._progress is None and self._stage is None and not self._metrics:
            return None
        feedback = business.Feedback(
            dispatch.run_id,
            dispatch.task_id,
            dispatch.attempt,
            self._stage and self._mask.text(self._stage),
            self._progress,
            self._message and self._mask.text(self._message),
            tuple(self._chunks),
            {self._mask.text(name): value for name, value in self._metrics.items()},
            self._dropped,
        )
        self._clear()
        return feedback


class HostedAttempt:
    """One attempt, from `start` until it has ended."""

    def __init__(
        self, dispatch: business.Dispatch, fence_at: float, now: float, lane: int = 0
    ) -> None:
        self.dispatch = dispatch
        self.lane = lane
        self.key = (dispatch.task_id, dispatch.attempt)
        self.fence_at = fence_at
        self.started_at = now
        self.host: Host | None = None  # None: it waits for one
        # Its own, as soon as it has a host; made when it is first asked for.
        self.folder = ""  # a text: a path costs more than all else of a short attempt
        self.grace_s: float | None = None  # set: it was asked to end
        self.grace_timer: asyncio.TimerHandle | None = None
        self.is_overdue = False  # its grace is over, its host is being killed for it
        self.is_killed = False  # nobody wants its outcome, only its end
        self.feedback: PendingFeedback | None = None
        self.leased: tuple[frames.Handle, ...] = ()
        self.open_calls: set[str] = set()  # of the rest of its chain, which has not answered
        self.pinned: Host | None = None  # the host that holds an object which it needs
        self.refusal: business.AttemptError | None = None  # the registry's first to it
        self.mask = SecretMask(dispatch.secrets.values()) if dispatch.secrets else NO_MASK
        """Hides its secrets in what is kept of it."""

    @property
    def needs_own_host(self) -> bool:
        """It was lost before, so it may be what kills hosts: it shall not take others with it again."""
        return self.dispatch.attempt > self.dispatch.failures + 1

    def masked_error(self, error: business.AttemptError) -> business.AttemptError:
        mask = self.mask
        if not mask:
            return error
        return msgspec.structs.replace(
            error,
            code=mask.text(error.code),
            message=mask.text(error.message),
            stack=error.stack and mask.text(error.stack),
            context=masked_json(mask, error.context),
        )

    def masked_result(self, result: business.Result) -> business.Result:
        """Without the secrets of the attempt."""
        mask = self.mask
        if not mask:
            return result
        artifacts = tuple(
            msgspec.structs.replace(one, metadata=masked_json(mask, one.metadata))
            for one in result.artifacts
        )
        return msgspec.structs.replace(
            result,
            result=masked_json(mask, result.result),
            artifacts=artifacts,
            metrics={mask.text(name): value for name, value in result.metrics.items()},
            error=result.error and self.masked_error(result.error),
        )

    def start_frame(self) -> bytes:
        dispatch = self.dispatch
        return frames.encode(
            frames.HostStart(
                dispatch.task_id,
                dispatch.attempt,
                dispatch.run_id,
                dispatch.node_id,
                dispatch.node_type,
                dispatch.parameters,
                self.folder,
                dispatch.failures,
                dispatch.constraints.timeout_ms,
                dispatch.resource_refs,
                dispatch.secrets,
                dispatch.traceparent,
                dispatch.chain_index,
                self.leased,
                dispatch.host_node_id,
                dispatch.middleware_chain,
                dispatch.host,
            )
        )
