"""Ways to look at a run while it runs: moving at a terminal, lines for a pipe, JSON for a program."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol, TextIO

import msgspec
import typer

from astraflow.cli.picture import NodeLine, Picture
from astraflow.cli.showing import STYLES, plain
from astraflow.client.models import Event
from astraflow.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["JsonViewer", "LineViewer", "LiveViewer", "Viewer"]

REFRESH_HZ: Final = 10
LOG_ROWS: Final = 6
BAR_CHARS: Final = 12
FEWEST_ROWS: Final = 3
MAX_LINE_CHARS: Final = 160

_TOLD: Final = frozenset(
    {"running", "succeeded", "failed", "retrying", "waiting", "skipped", "cancelled"}
)


class Viewer(Protocol):
    """What a watcher is told. Use in a `with` block."""

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...
    def take(self, event: Event) -> None: ...
    def cut(self, why: str) -> None:
        """The connection was lost, and is tried again."""


class JsonViewer:
    """One event a line, as it came."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def take(self, event: Event) -> None:
        typer.echo(msgspec.json.encode(event).decode())

    def cut(self, why: str) -> None:
        typer.echo(f"reconnecting: {why}", err=True)


class LineViewer:
    """One line for each event that matters."""

    def __init__(self, picture: Picture, stream: TextIO) -> None:
        self._picture = picture
        self._stream = stream
        self._texts: dict[str, str] = {}
        self._is_cut = False

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def cut(self, why: str) -> None:
        if not self._is_cut:
            self._say(f"connection lost ({why}); reconnecting")
        self._is_cut = True

    def take(self, event: Event) -> None:
        if self._is_cut:
            self._is_cut = False
            self._say("connected again")
        node = self._picture.node(event)
        before = (node.status, node.attempt) if node else ("", 0)
        self._picture.take(event)
        if event.type == "run.status":
            stopping = " (cancel requested)" if self._picture.is_cancelling else ""
            self._say(f"run {self._picture.run_id} {self._picture.status}{stopping}")
        elif event.type == "node.result.delta" and node and "text" in event.body:
            self._gather(node, event.body["channel"], event.body["text"])
        elif event.type == "node.state" and node and (node.status, node.attempt) != before:
            self._tell(node)

    def _tell(self, node: NodeLine) -> None:
        if node.status not in _TOLD:
            return
        if node.status != "running":
            self._flush(node)
        said = f": {node.error or node.message}" if node.error or node.message else ""
        tries = f" (attempt {node.attempt})" if node.attempt > 1 else ""
        self._say(f"{node.label} {node.status}{tries}{said}")

    def _gather(self, node: NodeLine, channel: str, text: str) -> None:
        """Words of a stream come one by one: a line is told when it is whole, or long."""
        if channel != "llm":
            for line in text.splitlines():
                self._say(f"{node.label} | {plain(line)}")
            return
        gathered = self._texts.get(node.node_id, "") + text
        *lines, rest = gathered.split("\n")
        for line in lines:
            self._say(f"{node.label} > {plain(line)}")
        self._texts[node.node_id] = rest
        if len(rest) >= MAX_LINE_CHARS:
            self._flush(node)

    def _flush(self, node: NodeLine) -> None:
        rest = self._texts.pop(node.node_id, "").strip()
        if rest:
            self._say(f"{node.label} > {plain(rest)}")

    def _say(self, text: str) -> None:
        typer.echo(text, file=self._stream)


class LiveViewer:
    """A picture that moves: never longer than the screen, drawn ten times a second at most."""

    def __init__(self, picture: Picture, console: Console, clock: Clock) -> None:
        from rich.live import Live

        self._picture = picture
        self._console = console
        self._clock = clock
        self._started_at = clock.now()
        self._cut_why = ""
        # Drawn in a thread of the picture's own, fed in ours.
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
            self._picture.take(event)

    def cut(self, why: str) -> None:
        with self._lock:
            self._cut_why = why

    def _draw(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            height = max(self._console.size.height, 8)
            log = list(self._picture.log)[-LOG_ROWS:]
            rows = self._picture.rows(max(FEWEST_ROWS, height - 4 - len(log)))
            table = Table(box=None, pad_edge=False, show_header=False, expand=True)
            for width in (24, 11, 3, BAR_CHARS + 5, 12, None):
                table.add_column(
                    width=width,
                    no_wrap=True,
                    overflow="ellipsis",
                    ratio=1 if width is None else None,
                )
            for node in rows:
                table.add_row(*_cells(node))
            parts: list[RenderableType] = [self._head(), table]
            parts += [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in log]
            return Group(*parts)

    def _head(self) -> RenderableType:
        from rich.text import Text

        picture = self._picture
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(f"run {picture.run_id} ")
        status = "cancelling" if picture.is_cancelling else picture.status
        head.append(status, style=STYLES.get(status, ""))
        head.append(f"  {self._clock.now() - self._started_at:.1f} s ")
        for status, count in sorted(
            picture.counts.items(),
            key=lambda item: list(STYLES).index(item[0]) if item[0] in STYLES else 99,
        ):
            if count:
                head.append(f"  {count} {status}", style=STYLES.get(status, ""))
        if self._cut_why:
            head.append(f"  reconnecting ({self._cut_why})", style="yellow")
        return head


def _cells(node: NodeLine) -> list[RenderableType]:
    from rich.text import Text

    says = node.says
    return [
        Text(node.label),
        Text(node.status, style=STYLES.get(node.status, "")),
        Text(f"#{node.attempt}" if node.attempt else ""),
        Text(_bar(node.progress)),
        Text(node.worker[-12:], style="dim"),
        # Of a text that grows at its end, the end.
        Text(says[-200:].lstrip() if node.tail and says == node.tail else says),
    ]


def _bar(progress: float | None) -> str:
    if progress is None:
        return ""
    share = min(max(progress, 0.0), 1.0)
    full = round(share * BAR_CHARS)
    return "━" * full + "─" * (BAR_CHARS - full) + f" {share:4.0%}"
