"""Output of nodes for `astra runs logs`: log lines one by one, streamed tokens joined to text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from astraflow.cli.output import plain, show_json
from astraflow.cli.run_progress import dropped_line, log_lines
from astraflow.core.contract.runs import Node


class NodeOutputPrinter:
    """Takes chunks in order and prints lines."""

    def __init__(self, nodes: Iterable[Node], as_json: bool) -> None:
        self._nodes = {one.node_id: one for one in nodes}
        self._as_json = as_json
        self._speaker: tuple[str, str | None, int] | None = None

    def add(self, piece: Mapping[str, Any]) -> None:
        if self._as_json:
            show_json(piece)
            return
        path = piece.get("scopePath")
        label = self._label(piece["nodeId"], path)
        text = piece.get("text")
        if text is None:
            size = len(piece.get("dataBase64") or "") * 3 // 4
            self._line(f"{label} | {size} bytes of {plain(piece.get('mimeType') or 'anything')}")
        elif piece["channel"] == "llm":
            self._word(label, (piece["nodeId"], path, piece["attempt"]), text)
        else:
            for line in log_lines(label, piece):
                self._line(line)

    def add_dropped(self, node_id: str, path: str | None, count: int) -> None:
        """Chunks were dropped before they were stored."""
        if self._as_json:
            place = {} if path is None else {"scopePath": path}
            show_json({"nodeId": node_id, **place, "dropped": count})
        else:
            self._line(dropped_line(self._label(node_id, path), count))

    def end(self) -> None:
        if self._speaker is not None:
            typer.echo("")
            self._speaker = None

    def _label(self, node_id: str, path: str | None) -> str:
        """The label of a node, with the item of the map that it is in: `Greet[3]`."""
        node = self._nodes.get(node_id)
        label = plain((node.label if node is not None else None) or node_id)
        items: dict[str, str] = {}
        for step in (path or "").split("/"):
            owner, _, item = step.partition(":")
            if self._is_mapped(owner):
                items.setdefault(
                    owner, item
                )  # a mapped container is there twice: its item, and its body
        return f"{label}[{'.'.join(items.values())}]" if items else label

    def _is_mapped(self, node_id: str) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.items is not None

    def _line(self, text: str) -> None:
        self.end()
        typer.echo(text)

    def _word(self, label: str, speaker: tuple[str, str | None, int], text: str) -> None:
        if speaker != self._speaker:
            self.end()
            typer.echo(f"{label} > ", nl=False)
            self._speaker = speaker
        typer.echo(plain(text, lines=True), nl=False)
