"""Output of nodes for `astra runs logs`: log lines one by one, streamed tokens joined to text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from astraflow.cli.output import plain, show_json
from astraflow.cli.run_progress import dropped_line, log_lines


class NodeOutputPrinter:
    """Takes chunks in order and prints lines."""

    def __init__(self, labels: Mapping[str, str], as_json: bool) -> None:
        self._labels = labels
        self._as_json = as_json
        self._speaker: tuple[str, int] | None = None

    def add(self, piece: Mapping[str, Any]) -> None:
        if self._as_json:
            show_json(piece)
            return
        label = plain(self._labels.get(piece["nodeId"], piece["nodeId"]))
        text = piece.get("text")
        if text is None:
            size = len(piece.get("dataBase64") or "") * 3 // 4
            self._line(f"{label} | {size} bytes of {plain(piece.get('mimeType') or 'anything')}")
        elif piece["channel"] == "llm":
            self._word(label, (piece["nodeId"], piece["attempt"]), text)
        else:
            for line in log_lines(label, piece):
                self._line(line)

    def add_dropped(self, node_id: str, count: int) -> None:
        """Chunks were dropped before they were stored."""
        if self._as_json:
            show_json({"nodeId": node_id, "dropped": count})
        else:
            self._line(dropped_line(plain(self._labels.get(node_id, node_id)), count))

    def end(self) -> None:
        if self._speaker is not None:
            typer.echo("")
            self._speaker = None

    def _line(self, text: str) -> None:
        self.end()
        typer.echo(text)

    def _word(self, label: str, speaker: tuple[str, int], text: str) -> None:
        if speaker != self._speaker:
            self.end()
            typer.echo(f"{label} > ", nl=False)
            self._speaker = speaker
        typer.echo(plain(text, lines=True), nl=False)
