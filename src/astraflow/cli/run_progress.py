"""The progress of a run, folded from its events. An event costs the same whatever the size of the run."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from astraflow.cli.output import plain
from astraflow.core.contract.events import Event

MAX_LOG_LINES: Final = 50
MAX_TAIL_CHARS: Final = 400
MAX_RECENT: Final = 50

_ORDER: Final = {"running": 0, "failed": 1, "retrying": 2, "waiting": 3, "dispatched": 4}
"""Statuses that are listed, in this order; nodes in other statuses are only counted."""
_ENDED: Final = frozenset({"succeeded", "failed", "skipped", "cancelled"})


def log_lines(label: str, piece: Mapping[str, Any]) -> list[str]:
    """The lines of an output chunk; the level of a log line is shown if it is not info."""
    level = str((piece.get("metadata") or {}).get("level") or "info").lower()
    shown = "" if piece["channel"] != "log" or level == "info" else f"{plain(level).upper()} "
    return [f"{label} | {shown}{plain(line)}" for line in piece["text"].splitlines()]


def dropped_line(label: str, count: int) -> str:
    return f"{label} | {count} chunks of output were dropped: output limit exceeded"


@dataclass(eq=False, slots=True)
class NodeLine:
    """The state of one node."""

    node_id: str
    label: str
    number: int
    status: str = "pending"
    attempt: int = 0
    worker: str = ""
    progress: float | None = None
    message: str = ""
    error: str = ""
    tail: str = ""


class RunProgress:
    """The state of a run."""

    def __init__(
        self,
        run_id: str,
        definition: Mapping[str, Any],
        workers: Mapping[str, str] | None = None,
    ) -> None:
        self.run_id = run_id
        self.status = "queued"
        self.is_cancelling = False
        self.nodes: dict[str, NodeLine] = {}
        self.counts: Counter[str] = Counter()
        self.log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self.speaker: NodeLine | None = None
        """The node that streamed text last."""
        self._workers = workers or {}
        self._hot: dict[str, NodeLine] = {}
        self._recent: deque[NodeLine] = deque(maxlen=MAX_RECENT)
        self._mapped: set[str] = set()
        self._items: dict[str, tuple[int, int]] = {}  # by node: items that have ended, and all
        nodes = definition.get("nodes") or ()
        inside = self._find_mapped(nodes)
        for node in nodes:
            if str(node.get("id", "")) not in inside:
                self._add(str(node.get("id", "")), str(node.get("label") or node.get("type") or ""))

    def _add(self, node_id: str, label: str) -> NodeLine:
        line = NodeLine(node_id, plain(label) or node_id, len(self.nodes))
        self.nodes[node_id] = line
        self.counts["pending"] += 1
        return line

    def _find_mapped(self, nodes: Sequence[Mapping[str, Any]]) -> set[str]:
        """Find the nodes that are mapped; returns those inside of them, which have no line of their own."""
        parents = {str(node.get("id", "")): str(node.get("parent") or "") for node in nodes}
        self._mapped = {str(node.get("id", "")) for node in nodes if node.get("map")}
        inside: set[str] = set()
        for node_id in parents:
            here, seen = parents[node_id], {node_id}
            while here and here not in seen:
                seen.add(here)
                if here in self._mapped:
                    inside.add(node_id)
                here = parents.get(here, "")
        return inside

    def owner(self, body: Mapping[str, Any]) -> tuple[NodeLine, str] | None:
        """Of an event inside of a map or a called workflow: the line that stands for it, and what it is of that."""
        path, node_id = body.get("scopePath"), body.get("nodeId")
        if not path or (node_id in self.nodes and node_id not in self._mapped):
            return None
        steps = [step.partition(":") for step in path.split("/")]
        known = [(self.nodes[owner], item) for owner, _, item in steps if owner in self.nodes]
        mapped = [one for one in known if one[0].node_id in self._mapped]
        return next(iter(mapped or known[-1:]), None)

    def _take_inside(self, line: NodeLine, item: str, event: Event) -> None:
        body = event.body
        if event.type == "node.result.delta" and "text" in body:
            if body["channel"] != "llm":
                self.log.extend(log_lines(f"{line.label}[{item}]", body))
            return
        is_item = body.get("scopePath") == f"{line.node_id}:{item}"
        is_its_own = is_item and body.get("nodeId") == line.node_id
        if event.type == "node.state" and is_its_own and body["status"] in _ENDED:
            ended, count = self._items.get(line.node_id, (0, 0))
            self._items[line.node_id] = (ended + 1, count)
            line.message = f"{ended + 1} of {count} items have ended"

    def node(self, event: Event) -> NodeLine | None:
        """The node of an event: of one of a chain's own task, the outermost middleware, which that runs."""
        node_id = event.body.get("middlewareNodeId") or event.body.get("nodeId")
        if not isinstance(node_id, str):
            return None
        return self.nodes.get(node_id) or self._add(node_id, "")

    def take(self, event: Event) -> None:
        body = event.body
        if event.type == "run.status":
            self.status = body["status"]
            self.is_cancelling = bool(body.get("cancelRequested"))
            return
        inside = self.owner(body)
        if inside is not None:
            self._take_inside(*inside, event)
            return
        node = self.node(event)
        if node is None:
            return
        if event.type == "node.state":
            if body.get("items") is not None and node.node_id in self._mapped:
                self._items[node.node_id] = (0, body["items"])
            self._take_state(node, body)
            self._take_chain(body)
        elif event.type == "node.result.delta" and "text" in body:
            self._take_text(node, body)

    def _take_state(self, node: NodeLine, body: Mapping[str, Any]) -> None:
        if body.get("attempt", node.attempt) != node.attempt:
            node.attempt = body["attempt"]
            node.progress, node.message, node.tail, node.error = None, "", "", ""
        worker = body.get("workerId")
        if worker is not None:
            node.worker = plain(self._workers.get(worker) or worker)
        if body.get("dropped"):
            self.log.append(dropped_line(node.label, body["dropped"]))
        node.progress = body.get("progress", node.progress)
        node.message = plain(str(body.get("message") or node.message))
        error = body.get("error")
        if error:
            node.error = plain(f"{error['code']} {error.get('message') or ''}".strip())
        waiting = body.get("waitingFor")
        if waiting:
            until = f", until {waiting['until']}" if waiting.get("until") else ""
            node.message = plain(f"waiting for {waiting['kind']}: {waiting['detail']}{until}")
        elif node.status == "waiting" and "message" not in body:
            node.message = ""
        status = body["status"]
        if status != node.status:
            self._move(node, status)

    def _take_chain(self, body: Mapping[str, Any]) -> None:
        """The end of a chain is that of its host, which may never have been called."""
        host = self.nodes.get(body["nodeId"]) if "middlewareNodeId" in body else None
        if host is not None and body["status"] in _ENDED and body["status"] != host.status:
            self._move(host, body["status"])

    def _move(self, node: NodeLine, status: str) -> None:
        self.counts[node.status] -= 1
        self.counts[status] += 1
        node.status = status
        if status in _ORDER:
            self._hot[node.node_id] = node
            return
        self._hot.pop(node.node_id, None)
        if status == "succeeded":
            node.progress = None
            self._recent.append(node)

    def _take_text(self, node: NodeLine, body: Mapping[str, Any]) -> None:
        if body["channel"] == "llm":
            node.tail = plain((node.tail + body["text"])[-MAX_TAIL_CHARS:].replace("\n", " "))
            self.speaker = node
            return
        self.log.extend(log_lines(node.label, body))

    def rows(self, most: int) -> list[NodeLine]:
        """At most `most` nodes to show: running and failed nodes first, then those that succeeded last."""
        hot = heapq.nsmallest(
            most, self._hot.values(), key=lambda one: (_ORDER[one.status], one.number)
        )
        done = [] if len(hot) >= most else list(self._recent)[-(most - len(hot)) :]
        return hot + done[::-1]
