from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from astraflow.core.contract.events import JoinedOutput, NodeOutput, NodeState
from astraflow.core.contract.streams import StreamItem
from astraflow.core.runs.coalescing import GROUP_CHARS, as_joined, join_outputs


def piece(number: int, text: str | None, node: str = "a", **more: Any) -> StreamItem:
    run_id = more.pop("run_id", "run")
    body = NodeOutput(
        node_id=node,
        attempt=more.pop("attempt", 1),
        channel=more.pop("channel", "stdout"),
        index=number,
        mime_type="text/plain",
        text=text,
        **more,
    )
    return StreamItem(run_id=run_id, id=number, type="node.result.delta", body=body)


def state(number: int, node: str = "a", run_id: str | None = "run") -> StreamItem:
    body = NodeState(node_id=node, status="running")
    return StreamItem(run_id=run_id, id=number, type="node.state", body=body)


def flat(items: list[StreamItem]) -> list[StreamItem]:
    return [one for group in join_outputs(items) for one in group]


def test_pieces_of_one_channel_become_one_with_the_number_of_the_last() -> None:
    (only,) = flat([piece(1, "a"), piece(2, "b"), piece(3, "c")])
    assert only.id == 3
    assert (only.body.text, only.body.index, only.body.pieces) == ("abc", 1, 3)


def test_one_piece_stays_as_it_is() -> None:
    one = piece(1, "a")
    assert flat([one])[0] is one


def test_channels_attempts_and_nodes_are_kept_apart_and_may_pass_each_other() -> None:
    items = [
        piece(1, "a"),
        piece(2, "b", "b"),
        piece(3, "c", channel="stderr"),
        piece(4, "d", attempt=2),
        piece(5, "e"),
        piece(6, "f", "b"),
    ]
    (group,) = join_outputs(items)
    assert [one.body.text for one in group] == ["ae", "bf", "c", "d"]
    assert [one.id for one in group] == [5, 6, 3, 4]


def test_nothing_passes_any_other_event_of_its_run() -> None:
    items = [piece(1, "a"), state(2, "b"), piece(3, "b")]
    assert [one.id for one in flat(items)] == [1, 2, 3]


def test_events_of_other_runs_and_of_the_tenant_keep_nothing_apart() -> None:
    other = state(1, run_id="other")
    tenant = StreamItem(id=9, type="worker.online", body={})
    assert [one.id for one in flat([piece(1, "a"), other, tenant, piece(2, "b")])] == [1, 9, 2]


def test_lines_with_words_about_them_and_bytes_stay_apart() -> None:
    items = [
        piece(1, "a"),
        piece(2, "b", metadata=Raw(b'{"level":"error"}')),
        piece(3, None, data_base64="AA=="),
        piece(4, "c"),
    ]
    assert [one.id for one in flat(items)] == [1, 2, 3, 4]


def test_a_group_has_a_bound() -> None:
    text = "x" * (GROUP_CHARS // 4)
    groups = list(join_outputs([piece(number, text) for number in range(1, 11)]))
    assert [len(group[0].body.text) // len(text) for group in groups] == [4, 4, 2]


def test_a_piece_has_the_form_of_several() -> None:
    one = as_joined(piece(1, "a").body)
    assert (type(one), one.pieces, one.text) == (JoinedOutput, 1, "a")
    assert as_joined(one) is one


@given(
    st.lists(st.tuples(st.sampled_from("abs"), st.sampled_from(["r1", "r2"]), st.text(max_size=3)))
)
def test_nothing_is_lost_and_the_order_of_each_channel_is_kept(drawn: list[Any]) -> None:
    items = [
        state(number, run_id=run) if node == "s" else piece(number, text, node, run_id=run)
        for number, (node, run, text) in enumerate(drawn, 1)
    ]
    joined = flat(items)
    for run in ("r1", "r2"):
        for node in "ab":
            assert _text(joined, run, node) == _text(items, run, node)
        kept = [one.id for one in joined if one.type == "node.state" and one.run_id == run]
        assert kept == [one.id for one in items if one.type == "node.state" and one.run_id == run]
        highest = 0
        for one in (one for one in joined if one.run_id == run):
            assert one.type != "node.state" or one.id > highest
            highest = max(highest, one.id)
    assert sum(getattr(one.body, "pieces", 1) for one in joined) == len(items)


def _text(items: list[StreamItem], run_id: str, node: str) -> str:
    return "".join(
        one.body.text or ""
        for one in items
        if one.run_id == run_id and isinstance(one.body, NodeOutput) and one.body.node_id == node
    )
