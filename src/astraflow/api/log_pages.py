"""Pages of the output of a run: what a request leaves out, the newest first, and all of it as a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from astraflow.api.responses import PIECE_BYTES
from astraflow.core.contract.events import Event
from astraflow.core.contract.runs import ListLogs, LogLine
from astraflow.core.runs.history import LogFilter, log_lines

MAX_SCANNED_EVENTS: Final = 20_000
"""How many events are read for one page of output; a page may then be shorter, and has a cursor."""
Batches = AsyncGenerator[list[Event], None]


def fits(query: ListLogs) -> Callable[[LogLine], bool]:
    """What the request asks for, beside its node and its level."""
    text = query.text.lower()

    def check(line: LogLine) -> bool:
        return (
            (query.before is None or line.id < query.before)
            and query.channel in (None, line.channel)
            and query.attempt in (None, line.attempt)
            and (not text or text in (line.text or "").lower())
        )

    return check


async def newest_lines(batches: Batches, query: ListLogs, before: int) -> tuple[list[LogLine], int]:
    """The last lines before event `before`, the last one first, and the number of the first event that was looked at.
    `batches`: the events from there back."""
    lines: list[LogLine] = []
    reached, start, wanted = before, before, fits(query)
    chosen = LogFilter(query.node_id, query.level, query.scope)
    async with aclosing(batches):
        async for events in batches:
            found = filter(wanted, log_lines(events, chosen))
            for line in found:
                lines.append(line)
                if len(lines) == query.count:
                    return lines, line.id
            reached = events[-1].id
            if start - reached >= MAX_SCANNED_EVENTS:
                break
    return lines, reached


async def log_file(batches: Batches, query: ListLogs, last: int) -> AsyncIterator[bytes]:
    """The lines up to event `last` as text: time, node, attempt, channel, and what was written."""
    wanted, chosen = fits(query), LogFilter(query.node_id, query.level, query.scope)
    gathered: list[bytes] = []
    size = 0
    async with aclosing(batches):
        async for events in batches:
            for line in filter(wanted, log_lines(events, chosen)):
                if line.id > last:
                    break
                gathered.append(_text_of(line))
                size += len(gathered[-1])
            if size >= PIECE_BYTES:
                yield b"".join(gathered)
                gathered, size = [], 0
            if events[-1].id >= last:
                break
    if gathered:
        yield b"".join(gathered)


def _text_of(line: LogLine) -> bytes:
    where = line.node_id if line.scope_path is None else f"{line.scope_path}/{line.node_id}"
    said = line.data_base64 if line.text is None else line.text
    head = f"{line.occurred_at} {where} {line.attempt} {line.channel} "
    return f"{head}{(said or '').removesuffix(chr(10))}\n".encode("utf-8", "replace")
