from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.errors import Refused
from astraflow.core.workflow import (
    AffinityHint,
    InvalidDocument,
    Plan,
    ResourceRefValue,
    RetryPolicy,
    StaticCatalog,
    bind,
    decode_manifest,
    plan_workflow,
)
from astraflow.core.workflow.decoding import decode_definition
from astraflow.core.workflow.plan import DEFAULT_RETRY
from tests.unit.core.workflow.drafts import (
    CORE,
    EXAMPLES,
    definition,
    edge,
    manifest,
    node,
    plan,
    uid,
)

edge_lists = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(st.tuples(st.integers(1, size), st.integers(1, size)), max_size=14),
    )
)


def naive_order(size: int, pairs: list[tuple[int, int]]) -> list[int] | None:
    """Take, again and again, the first node that waits for nobody."""
    left = list(range(1, size + 1))
    order = []
    while left:
        free = [n for n in left if not any(t == n and s in left for s, t in pairs)]
        if not free:
            return None
        left.remove(free[0])
        order.append(free[0])
    return order


@given(edge_lists)
def test_the_plan_agrees_with_a_naive_walk(graph: tuple[int, list[tuple[int, int]]]) -> None:
    size, pairs = graph
    nodes = [node(number) for number in range(1, size + 1)]
    draft = definition(nodes, [edge(source, target) for source, target in pairs])
    if naive_order(size, pairs) is None:
        with pytest.raises(InvalidDocument):
            plan_workflow(draft, CORE)
        return
    made = plan_workflow(draft, CORE)
    made.check()
    number = {row.node_id: place for place, row in enumerate(made.nodes)}
    assert number == made.index
    for here in range(1, size + 1):
        place = made.index[uid(here)]  # type: ignore[index]
        parents = {s for s, t in pairs if t == here}
        children = {t for s, t in pairs if s == here}
        assert {made.nodes[p].node_id for p in made.parents[place]} == {uid(p) for p in parents}
        assert {made.nodes[c].node_id for c in made.children[place]} == {uid(c) for c in children}


@given(edge_lists)
def test_the_same_definition_always_gives_the_same_plan(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    size, pairs = graph
    forward = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    draft = definition(
        [node(number) for number in range(size, 0, -1)], [edge(s, t) for s, t in forward]
    )
    assert plan_workflow(draft, CORE) == plan_workflow(draft, CORE)


def test_an_authored_order_that_is_topological_is_kept() -> None:
    made = plan([node(3), node(1), node(2)], [edge(3, 2), edge(1, 2)])
    assert [row.node_id for row in made.nodes] == [uid(3), uid(1), uid(2)]


def test_another_order_is_made_topological() -> None:
    made = plan([node(3), node(1), node(2)], [edge(2, 3), edge(1, 2)])
    assert [row.node_id for row in made.nodes] == [uid(1), uid(2), uid(3)]
    assert made.parents == ((), (0,), (1,))
    assert made.children == ((1,), (2,), ())


def test_a_refusal_lists_all_problems() -> None:
    draft = definition([node(1), node(1), node(2, "no.such")], [edge(1, 1)])
    with pytest.raises(Refused) as refused:
        plan_workflow(draft, CORE)
    assert isinstance(refused.value, InvalidDocument)
    assert [row.pointer for row in refused.value.problems] == [
        "/nodes/2/type",
        "/nodes/1/id",
        "/edges/0",
    ]


def test_a_plain_node_gets_the_defaults() -> None:
    (row,) = plan([node(1)]).nodes
    assert (row.package_name, row.package_version, row.runtime) == ("core", "1.0.0", "python")
    assert row.label == "core.noop"
    assert row.retry is DEFAULT_RETRY
    assert row.retry.max_attempts == 1
    assert row.timeout_s is None
    assert row.parameters == b"{}"


def test_every_setting_of_a_node_is_in_the_plan() -> None:
    (row,) = plan(
        [
            node(
                1,
                label="One",
                runtime="gpu",
                retry={
                    "maxAttempts": 3,
                    "backoff": {"initialSeconds": 0.5, "factor": 3, "maxSeconds": 9, "jitter": 0},
                    "categories": ["TIMEOUT"],
                },
                timeoutSeconds=1.5,
                concurrencyKey="mail",
                affinity={"key": "s1", "mode": "preferred"},
                resourceRefs=[{"resourceId": "a", "workerId": "w", "type": "t", "scope": "s"}],
                parameters={"v": {"resourceRef": {"resourceId": "b"}}},
                disabled=True,
                workerHints={"labels": {"zone": "b", "arch": "arm"}},
            )
        ],
        priority=4,
        runtimes={"gpu": {"workerHints": {"labels": {"zone": "a", "gpu": "1"}}}},
    ).nodes
    assert row.label == "One"
    assert row.runtime == "gpu"
    assert row.retry == RetryPolicy(3, 0.5, 3.0, 9.0, 0.0, frozenset({"TIMEOUT"}))
    assert row.timeout_s == 1.5
    assert row.concurrency_key == "mail"
    assert row.affinity == AffinityHint("s1", "preferred")
    assert row.resource_refs == (ResourceRefValue("a", "w", "t", "s"), ResourceRefValue("b"))
    assert row.disabled
    assert row.priority == 4
    assert row.worker_labels == (("arch", "arm"), ("gpu", "1"), ("zone", "b"))


def test_a_retry_without_backoff_has_the_default_one() -> None:
    (row,) = plan([node(1, retry={"maxAttempts": 2})]).nodes
    assert row.retry == RetryPolicy(max_attempts=2)


def test_a_priority_of_the_node_stands_in_front_of_that_of_the_workflow() -> None:
    assert plan([node(1, priority=0)], priority=9).nodes[0].priority == 0


def test_equal_parts_of_a_plan_are_one_object() -> None:
    retry = {"maxAttempts": 3}
    fields: dict[str, Any] = {
        "retry": retry,
        "affinity": {"key": "k"},
        "workerHints": {"labels": {"a": "b"}},
    }
    made = plan(
        [node(1), node(2, **fields), node(3, **fields), node(4)],
        [edge(1, 2), edge(1, 3), edge(1, 4), edge(2, 4)],
    )
    one, other = made.nodes[1], made.nodes[2]
    assert one.retry is other.retry
    assert one.affinity is other.affinity
    assert one.worker_labels is other.worker_labels
    assert one.edges_in is other.edges_in
    assert made.parents[1] is made.parents[2]
    assert made.nodes[3].edges_in[0] is one.edges_in[0]


def test_references_in_the_parameters_join_those_that_the_node_names() -> None:
    ref = {"resourceRef": {"resourceId": "b", "workerId": "w"}}
    (row,) = plan([node(1, parameters={"v": ref})]).nodes
    assert row.resource_refs == (ResourceRefValue("b", "w"),)


def test_the_idempotency_of_the_adapter_is_in_the_plan() -> None:
    adapter = {"name": "a", "runtime": "python", "entrypoint": "example.x:Y", "idempotency": "none"}
    own = manifest(adapters=[adapter], nodes=[{"type": "ex.a", "runtimes": {"python": {}}}])
    assert plan([node(1, "ex.a")], catalog=StaticCatalog([own])).nodes[0].idempotency == "none"


def seed_plan(catalog: StaticCatalog) -> Plan:
    raw = (EXAMPLES / "workflow" / "playwright_smoke_check.json").read_bytes()
    made = plan_workflow(decode_definition(raw), catalog)
    made.check()
    return made


def test_the_definition_of_the_seed_is_planned_verbatim() -> None:
    """Seed 002 §4, against the manifest of §3.

    The manifest there is called `playwright`, while the nodes name the package
    `crawlerx_playwright`. The nodes win: they pin name and version and carry their own ports, so
    nothing has to be looked up, and the run waits for a worker that has that package. The manifest
    is no reason to send them to another package than the one they name.
    """
    raw = (EXAMPLES / "manifest" / "playwright.json").read_bytes()
    made = seed_plan(StaticCatalog([decode_manifest(raw)]))
    opening, click = made.nodes
    assert (opening.type, click.type) == ("playwright.open_page", "playwright.click")
    assert {row.package_name for row in made.nodes} == {"crawlerx_playwright"}
    assert {row.package_version for row in made.nodes} == {"2025.10.0"}
    assert {row.runtime for row in made.nodes} == {"playwright"}
    assert made.parents == ((), (0,))
    assert [(row.kind, row.source) for row in click.edges_in] == [("control", 0), ("data", 0)]
    assert made.features == frozenset()
    page = {"url": "https://example.com"}
    assert msgspec.json.decode(bind(click, lambda source: {"page": page, "done": True})) == {
        "selector": "#login-button",
        "waitFor": "visible",
        "button": "left",
        "delay": 0,
        "page": page,
    }


def test_the_definition_of_the_seed_needs_no_catalog_and_takes_the_right_one() -> None:
    assert seed_plan(StaticCatalog([])) == seed_plan(CORE)
    raw = (EXAMPLES / "manifest" / "playwright.json").read_bytes()
    document = msgspec.json.decode(raw)
    document["name"] = "crawlerx_playwright"
    document["nodes"].append({"type": "playwright.click", "runtimes": {"playwright": {}}})
    known = seed_plan(StaticCatalog([decode_manifest(msgspec.json.encode(document))]))
    assert {row.idempotency for row in known.nodes} == {"per_request"}
