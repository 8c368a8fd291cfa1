from __future__ import annotations

from typing import Any

from astraflow.core.workflow.diff import DefinitionDiff, diff_definitions


def diff(before: dict[str, Any], after: dict[str, Any], **more: Any) -> DefinitionDiff:
    return diff_definitions(before, after, **more)


def node(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "type": "core.echo", **fields}


def edge(source: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"source": {"node": source}, "target": {"node": target}, **fields}


def test_a_definition_does_not_differ_from_itself_whatever_is_left_out_or_null() -> None:
    one: dict[str, Any] = {
        "id": "w",
        "nodes": [node("a")],
        "edges": [],
        "inputs": {},
        "triggers": None,
    }
    other = {"id": "w", "nodes": [node("a")], "edges": None, "outputs": None, "triggers": []}
    assert diff(one, other).is_empty
    assert diff({}, {}).is_empty


def test_nodes_are_matched_by_their_ids() -> None:
    before = {"nodes": [node("a", parameters={"value": 1}), node("b", label="B"), node("c")]}
    after = {"nodes": [node("a", parameters={"value": 2}, label="A"), node("c"), node("d")]}
    found = diff(before, after)
    assert [one.id for one in found.nodes.added] == ["d"]
    assert [(one.id, one.label, one.type) for one in found.nodes.removed] == [
        ("b", "B", "core.echo")
    ]
    (changed,) = found.nodes.changed
    assert (changed.id, changed.label) == ("a", "A")
    assert [(one.pointer, one.kind) for one in changed.changes] == [
        ("/parameters/value", "changed"),
        ("/label", "added"),
    ]
    assert not found.nodes.is_reordered
    assert not found.settings


def test_a_node_that_was_moved_is_listed_apart() -> None:
    before = {"nodes": [node("a", position={"x": 1, "y": 2}), node("b")]}
    after = {"nodes": [node("a", position={"x": 1, "y": 3}), node("b", position={"x": 0})]}
    found = diff(before, after)
    assert not found.nodes.changed
    assert [(one.id, [change.pointer for change in one.changes]) for one in found.moved] == [
        ("a", ["/position/y"]),
        ("b", ["/position"]),
    ]
    assert not found.is_empty


def test_edges_are_matched_by_id_or_by_their_ends() -> None:
    ported = {"source": {"node": "a", "port": "out"}, "target": {"node": "b", "port": "in"}}
    before = {"edges": [edge("a", "b", id="e1"), edge("a", "c"), ported]}
    after = {"edges": [edge("a", "b", id="e1", when="=true"), ported, edge("a", "c")]}
    found = diff(before, after).edges
    assert [(one.id, one.changes[0].pointer) for one in found.changed] == [("e1", "/when")]
    assert found.is_reordered
    gone = diff(before, {"edges": []}).edges
    assert [one.id for one in gone.removed] == ["e1", "a -> c", "a.out -> b.in"]


def test_parts_and_settings_have_pointers_into_the_definition() -> None:
    before = {"inputs": {"n": {"default": 1}}, "triggers": [{"type": "manual"}], "tags": ["a"]}
    after = {"inputs": {"n": {"default": 2}}, "outputs": {"o": {}}, "metadata": {"name": "new"}}
    found = diff(before, after)
    assert [one.pointer for one in found.inputs] == ["/inputs/n/default"]
    assert [one.pointer for one in found.outputs] == ["/outputs/o"]
    assert [one.pointer for one in found.triggers] == ["/triggers/0"]
    assert [(one.pointer, one.kind) for one in found.settings] == [
        ("/tags", "removed"),
        ("/metadata", "added"),
    ]


def test_lists_of_any_shape_are_compared_by_place() -> None:
    for odd in (
        5,
        [5],
        [{"type": "no id"}],
        [node("a"), node("a")],
    ):
        found = diff({"nodes": [node("b")]}, {"nodes": odd})
        assert found.settings[0].pointer.startswith("/nodes")
        assert not found.nodes.added
    loose = [{"source": "a", "target": "b"}]
    assert diff({"edges": loose}, {"edges": []}).settings[0].pointer == "/edges/0"
    assert diff({"nodes": [node("a", label=5)]}, {"nodes": []}).nodes.removed[0].label == ""


def test_the_number_of_changes_is_bounded_over_all_parts() -> None:
    before = {"nodes": [node(str(place), x=0) for place in range(5)], "tags": [1]}
    after = {"nodes": [node(str(place), x=1) for place in range(5)], "tags": [2]}
    found = diff(before, after, limit=3)
    assert sum(len(one.changes) for one in found.nodes.changed) == 3
    assert found.is_truncated
    assert not diff(before, after, limit=6).is_truncated
