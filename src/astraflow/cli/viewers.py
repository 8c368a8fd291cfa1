"""Viewers of a running run: lines for a pipe, JSON for a program. `live_view` is for terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, TextIO

import msgspec
import typer

from astraflow.cli.output import plain
from astraflow.cli.run_progress import NodeLine, RunProgress, dropped_line, log_lines
from astraflow.core.contract.events import Event

MAX_LINE_CHARS: Final = 160

_TOLD: Final = frozenset(
    {"running", "succeeded", "failed", "retrying", "waiting", "skipped", "cancelled"}
)


class Viewer(Protocol):
    """Receives the events of a run. Use in a `with` block."""

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...
    def take(self, event: Event) -> None: ...
    def cut(self, why: str) -> None:
        """The connection was lost; the client reconnects."""


class JsonViewer:
    """Prints one event per line, unchanged."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def take(self, event: Event) -> None:
        typer.echo(msgspec.json.encode(event).decode())

    def cut(self, why: str) -> None:
        typer.echo(f"reconnecting: {why}", err=True)


class LineViewer:
    """Prints one line per relevant event."""

    def __init__(self, progress: RunProgress, stream: TextIO) -> None:
        self._progress = progress
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
            self._say("reconnected")
        inside = self._progress.owner(event.body)
        if inside is not None:
            self._progress.take(event)
            self._tell_item(f"{inside[0].label}[{inside[1]}]", event)
            return
        node = self._progress.node(event)
        before = (node.status, node.attempt) if node else ("", 0)
        self._progress.take(event)
        if event.type == "run.status":
            stopping = " (cancel requested)" if self._progress.is_cancelling else ""
            self._say(f"run {self._progress.run_id} {self._progress.status}{stopping}")
        elif event.type == "node.result.delta" and node and "text" in event.body:
            self._gather(node, event.body)
        elif event.type == "node.state" and node:
            if event.body.get("dropped"):
                self._say(dropped_line(node.label, event.body["dropped"]))
            if (node.status, node.attempt) != before:
                self._tell(node)

    def _tell_item(self, label: str, event: Event) -> None:
        """Of what is inside of a map, its output and its failures are told: there may be a hundred thousand."""
        body = event.body
        if event.type == "node.result.delta" and "text" in body and body["channel"] != "llm":
            for line in log_lines(label, body):
                self._say(line)
        elif event.type == "node.state" and body["status"] == "failed":
            error = body.get("error") or {}
            said = f"{error.get('code', '')} {error.get('message', '')}".strip()
            self._say(plain(f"{label} failed: {said}"))

    def _tell(self, node: NodeLine) -> None:
        if node.status not in _TOLD:
            return
        if node.status != "running":
            self._flush(node)
        said = f": {node.error or node.message}" if node.error or node.message else ""
        tries = f" (attempt {node.attempt})" if node.attempt > 1 else ""
        self._say(f"{node.label} {node.status}{tries}{said}")

    def _gather(self, node: NodeLine, body: Mapping[str, Any]) -> None:
        """Streamed tokens arrive one by one: a line is printed when it is complete, or long."""
        if body["channel"] != "llm":
            for line in log_lines(node.label, body):
                self._say(line)
            return
        gathered = self._texts.get(node.node_id, "") + body["text"]
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
