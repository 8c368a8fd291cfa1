"""What is shown of a run while it runs."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from astraflow.cli.live_view import LiveViewer
from astraflow.cli.output import plain
from astraflow.cli.run_progress import RunProgress
from astraflow.cli.viewers import LineViewer
from astraflow.clock import SystemClock
from astraflow.core.contract.events import Event

HEIGHT, WIDTH = 20, 80


def definition(count: int) -> dict[str, Any]:
    nodes = [{"id": f"n{number}", "label": f"Node {number}"} for number in range(count)]
    return {"nodes": nodes, "edges": []}


def state(node: int, status: str, **more: Any) -> Event:
    return Event(type="node.state", body={"nodeId": f"n{node}", "status": status, **more})


def said(node: int, text: str, channel: str = "llm") -> Event:
    body = {"nodeId": f"n{node}", "attempt": 1, "channel": channel, "index": 0, "text": text}
    return Event(type="node.result.delta", body=body)


def test_what_runs_and_what_failed_comes_first_and_the_rest_is_counted() -> None:
    picture = RunProgress("r", definition(1000))
    for number in range(300):
        picture.take(state(number, "running", attempt=1))
        picture.take(state(number, "succeeded", attempt=1))
    picture.take(state(500, "waiting"))
    picture.take(state(501, "failed", attempt=1, error={"code": "E.X", "message": "no"}))
    picture.take(state(502, "running", attempt=1))
    shown = picture.rows(10)
    assert [one.node_id for one in shown[:3]] == ["n502", "n501", "n500"]
    assert len(shown) == 10
    assert {one.status for one in shown[3:]} == {"succeeded"}
    assert picture.counts["pending"] == 697
    assert picture.counts["succeeded"] == 300


def test_a_new_attempt_starts_with_a_clean_slate() -> None:
    picture = RunProgress("r", definition(1), {"w": "worker-1"})
    picture.take(state(0, "running", attempt=1, workerId="w", progress=0.5, message="half"))
    picture.take(state(0, "retrying", attempt=1, error={"code": "E.X"}))
    node = picture.nodes["n0"]
    assert (node.worker, node.error, node.progress) == ("worker-1", "E.X", 0.5)
    picture.take(state(0, "dispatched", attempt=2))
    assert (node.attempt, node.error, node.progress, node.message) == (2, "", None, "")


def test_an_outermost_middleware_is_named_and_ends_its_host_too() -> None:
    """n1 is around n0: the task of n0 runs n1, and calls n0."""
    picture = RunProgress("r", definition(2))
    chain = {"hostNodeId": "n0", "chainIndex": 0, "middlewareNodeId": "n1", "attempt": 1}
    viewer = LineViewer(picture, stream := io.StringIO())
    viewer.take(state(0, "running", **chain))
    said_by_chain = said(0, "calls it", "log")
    viewer.take(Event(type="node.result.delta", body={**said_by_chain.body, **chain}))
    viewer.take(state(0, "failed", attempt=1, callId="c", error={"code": "E.X"}))
    assert (picture.nodes["n0"].status, picture.nodes["n1"].status) == ("failed", "running")
    viewer.take(state(0, "succeeded", **chain))
    assert (picture.nodes["n0"].status, picture.nodes["n1"].status) == ("succeeded", "succeeded")
    assert stream.getvalue().splitlines() == [
        "Node 1 running",
        "Node 1 | calls it",
        "Node 0 failed: E.X",
        "Node 1 succeeded",
    ]


def live(picture: RunProgress) -> tuple[LiveViewer, Console]:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=WIDTH, height=HEIGHT, color_system=None
    )
    return LiveViewer(picture, console, SystemClock()), console


@pytest.mark.parametrize("count", [1, 40, 5000])
def test_a_picture_is_never_longer_or_wider_than_the_screen(count: int) -> None:
    viewer, console = live(RunProgress("r", definition(count)))
    for number in range(count):
        viewer.take(state(number, "running", attempt=1, workerId="w" * 36, message="word " * 50))
        viewer.take(said(number, "a line that is said\n" * 3, "log"))
    viewer.take(said(0, "wörter und 漢字 " * 100))
    viewer.cut("the connection was refused")
    lines = console.render_lines(viewer._draw(), pad=False)
    assert len(lines) < HEIGHT
    texts = ["".join(segment.text for segment in line) for line in lines]
    assert all(len(text) <= WIDTH for text in texts)
    assert f"{count} running" in texts[0]
    assert any(text.startswith("Node 0 >") or "漢字" in text for text in texts)


def test_progress_is_a_bar() -> None:
    viewer, console = live(RunProgress("r", definition(1)))
    viewer.take(state(0, "running", attempt=1, progress=0.5))
    text = "".join(one.text for line in console.render_lines(viewer._draw()) for one in line)
    assert "━━━━━━──────  50%" in text


def lines_of(events: list[Event]) -> list[str]:
    stream = io.StringIO()
    viewer = LineViewer(RunProgress("r", definition(2)), stream)
    with viewer:
        for event in events:
            viewer.take(event)
    return stream.getvalue().splitlines()


def test_each_change_is_one_line_and_no_change_is_none() -> None:
    assert lines_of(
        [
            Event(type="run.status", body={"status": "running"}),
            state(0, "dispatched", attempt=1),
            state(0, "running", attempt=1),
            state(0, "running", attempt=1, progress=0.5),
            state(0, "retrying", attempt=1, error={"code": "E.X", "message": "bad"}),
            state(0, "running", attempt=2),
            state(0, "succeeded", attempt=2),
            state(1, "skipped", error={"code": "E.Y"}),
        ]
    ) == [
        "run r running",
        "Node 0 running",
        "Node 0 retrying: E.X bad",
        "Node 0 running (attempt 2)",
        "Node 0 succeeded (attempt 2)",
        "Node 1 skipped: E.Y",
    ]


def test_streamed_words_become_lines_when_they_are_whole_or_the_node_ends() -> None:
    words = [said(0, word) for word in ("one ", "two\n", "three ", "four")]
    assert lines_of([state(0, "running"), *words, state(0, "succeeded")]) == [
        "Node 0 running",
        "Node 0 > one two",
        "Node 0 > three four",
        "Node 0 succeeded",
    ]


def test_a_lost_connection_is_told_once_and_so_is_its_return() -> None:
    stream = io.StringIO()
    viewer = LineViewer(RunProgress("r", definition(1)), stream)
    viewer.cut("gone")
    viewer.cut("gone")
    viewer.take(state(0, "running"))
    assert stream.getvalue().splitlines() == [
        "connection lost (gone); reconnecting",
        "reconnected",
        "Node 0 running",
    ]


def test_steering_characters_are_replaced_and_letters_stay() -> None:
    assert plain("a\x1b[2Jb\n\u202ec\x9b") == "a\ufffd[2Jb\ufffd\ufffdc\ufffd"
    assert plain("a\tb\nc\x07", lines=True) == "a\tb\nc\ufffd"
    assert plain("Zoë 漢字 🙂") == "Zoë 漢字 🙂"


def test_the_items_of_a_map_are_one_line() -> None:
    nodes = [
        {"id": "m", "label": "Map", "map": {"over": "=[1, 2]"}},
        {"id": "c", "label": "Inner", "parent": "m"},
        {"id": "k", "label": "Call"},
    ]
    out = io.StringIO()
    progress = RunProgress("r", {"nodes": nodes})
    viewer = LineViewer(progress, out)
    assert set(progress.nodes) == {"m", "k"}

    def tell(node_id: str, status: str, path: str | None = None, **more: Any) -> None:
        body = {"nodeId": node_id, "status": status, **more}
        viewer.take(
            Event(type="node.state", body=body if path is None else {**body, "scopePath": path})
        )

    tell("m", "running", items=2)
    tell("c", "succeeded", "m:0/m:0")
    tell("m", "succeeded", "m:0")
    tell("m", "failed", "m:1", error={"code": "E.X", "message": "no"})
    tell("other", "failed", "k:0", error={"code": "E.Y"})
    assert progress.nodes["m"].message == "2 of 2 items have ended"
    assert progress.nodes["m"].status == "running"
    assert progress.counts == {"pending": 1, "running": 1}
    text = {"nodeId": "c", "scopePath": "m:1/m:0", "channel": "log", "text": "hello", "index": 0}
    viewer.take(Event(type="node.result.delta", body=text))
    tell("m", "succeeded")
    assert out.getvalue().splitlines() == [
        "Map running",
        "Map[1] failed: E.X no",
        "Call[0] failed: E.Y",
        "Map[1] | hello",
        "Map succeeded: 2 of 2 items have ended",
    ]
