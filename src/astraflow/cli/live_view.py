"""Live view of a run at a terminal."""

from __future__ import annotations

import textwrap
import threading
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from astraflow.cli.output import STYLES
from astraflow.cli.run_progress import NodeLine, RunProgress
from astraflow.clock import Clock
from astraflow.core.contract.events import Event

REFRESH_HZ: Final = 10
LOG_ROWS: Final = 6
STREAM_ROWS: Final = 3
FEWEST_ROWS: Final = 3
BAR_CHARS: Final = 12
MAX_LABEL_CHARS: Final = 32

_COUNTED: Final = (
    "running",
    "failed",
    "retrying",
    "waiting",
    "dispatched",
    "succeeded",
    "skipped",
    "cancelled",
    "ready",
    "pending",
)


class LiveViewer:
    """A live table that never exceeds the screen, refreshed ten times per second at most."""

    def __init__(self, progress: RunProgress, console: Console, clock: Clock) -> None:
        self._progress = progress
        self._console = console
        self._clock = clock
        self._started_at = clock.now()
        self._cut_why = ""
        # rich draws in its own thread; events arrive in ours.
        self._lock = threading.Lock()
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=REFRESH_HZ,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def take(self, event: Event) -> None:
        with self._lock:
            self._cut_why = ""
            self._progress.take(event)

    def cut(self, why: str) -> None:
        with self._lock:
            self._cut_why = why

    def _draw(self) -> RenderableType:
        with self._lock:
            width, height = self._console.size
            log = [_line(line, width) for line in list(self._progress.log)[-LOG_ROWS:]]
            stream = self._stream(width)
            rows = self._progress.rows(max(FEWEST_ROWS, height - 3 - len(log) - len(stream)))
            return Group(self._head(), *_table(rows, width), *log, *stream)

    def _head(self) -> Text:
        progress = self._progress
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(f"run {progress.run_id} ")
        status = "cancelling" if progress.is_cancelling else progress.status
        head.append(status, style=STYLES.get(status, ""))
        head.append(f"  {self._clock.now() - self._started_at:.1f} s ")
        for status in _COUNTED:
            if count := progress.counts[status]:
                head.append(f"  {count} {status}", style=STYLES[status])
        if self._cut_why:
            head.append(f"  reconnecting ({self._cut_why})", style="yellow")
        return head

    def _stream(self, width: int) -> list[Text]:
        """The end of the streamed text, as much as fits."""
        speaker = self._progress.speaker
        if speaker is None or speaker.status != "running":
            return []
        text = f"{speaker.label} > {speaker.tail}"
        lines = textwrap.wrap(text, max(width - 1, 20))[-STREAM_ROWS:]
        return [_line(line, width, "bold") for line in lines]


def _table(rows: list[NodeLine], width: int) -> list[Text]:
    """One line per node; a column is as wide as its contents, and the last column takes the rest."""
    cells = [_cells(node) for node in rows]
    widths = [max((cell_len(row[place]) for row in cells), default=0) for place in range(5)]
    widths[0] = min(widths[0], MAX_LABEL_CHARS)
    lines = []
    for node, row in zip(rows, cells, strict=True):
        line = Text(no_wrap=True, overflow="ellipsis")
        for text, size in zip(row, widths, strict=True):
            if size:
                style = STYLES.get(text, "") if text == node.status else ""
                line.append(set_cell_size(text, size) + "  ", style=style)
        line.append(node.error or node.message)
        line.truncate(max(width - 1, 1), overflow="ellipsis")
        lines.append(line)
    return lines


def _line(text: str, width: int, style: str = "dim") -> Text:
    line = Text(text, style=style, no_wrap=True)
    line.truncate(max(width - 1, 1), overflow="ellipsis")
    return line


def _cells(node: NodeLine) -> tuple[str, str, str, str, str]:
    tries = f"#{node.attempt}" if node.attempt > 1 else ""
    return (node.label, node.status, tries, _bar(node.progress), node.worker)


def _bar(progress: float | None) -> str:
    if progress is None:
        return ""
    share = min(max(progress, 0.0), 1.0)
    full = round(share * BAR_CHARS)
    return "━" * full + "─" * (BAR_CHARS - full) + f" {share:4.0%}"
