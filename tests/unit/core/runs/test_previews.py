"""What an expression gives by a run, for who is writing it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from astraflow.core.contract.expressions import MAX_VALUE_BYTES, Evaluation
from astraflow.core.runs.commands import LeaseTask, Report
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.previews import names_for, preview
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow import StaticCatalog, core_manifest, plan_workflow
from tests.unit.core.workflow.drafts import definition, node, uid
from tests.unit.plans import AT, start

CATALOG = StaticCatalog([core_manifest()])


def begun() -> RunRecord:
    nodes = [
        node(1, label="One"),
        node(2, "core.container", label="Box"),
        node(3, label="Inside", parent=uid(2)),
        node(4, label="Twice"),
        node(5, label="Twice"),
    ]
    plan = plan_workflow(definition(nodes, inputs={"a": {}}), CATALOG)
    run = start(plan, inputs=msgspec.Raw(b'{"a": 2}')).run
    decide(run, LeaseTask(0, "w", 1, 1000), AT, Random(1))
    decide(run, Report(0, 1, "w", "SUCCEEDED", msgspec.Raw(b'{"n": 1}')), AT, Random(1))
    return run


def shown(text: str, node_id: str | None = None, **given: Any) -> Any:
    found = evaluated(text, node_id, **given)
    assert found.error is None, found.error
    return msgspec.json.decode(found.value)


def evaluated(text: str, node_id: str | None = None, **given: Any) -> Evaluation:
    names = names_for(begun(), node_id, {"Other": uid(1), "Nobody": uid(99)}, given)
    return preview(text, names)


def test_every_node_has_its_id_its_label_and_the_name_that_the_writer_gives() -> None:
    for name in (f'["{uid(1)}"]', ".One", ".Other"):
        assert shown(f"nodes{name}.results.n + inputs.a") == 3
    for name in ("Nobody", "Twice", "Missing"):
        assert evaluated(f"nodes.{name}.results").error is not None


def test_a_node_inside_of_a_container_reads_what_is_around_it() -> None:
    assert shown("nodes.One.results.n", uid(3)) == 1
    assert shown("type(container)", uid(3)) == "object"
    assert evaluated("container", uid(1)).error is not None
    assert shown("nodes.One.results.n", uid(99)) == 1


def test_a_value_is_shown_up_to_a_size() -> None:
    assert shown("x", x="a" * (MAX_VALUE_BYTES - 2)) == "a" * (MAX_VALUE_BYTES - 2)
    large = evaluated("x", x="a" * (MAX_VALUE_BYTES - 1))
    assert (large.value, large.value_truncated) == (None, True)


def test_nodes_as_a_whole_secrets_and_addresses_of_signals_are_no_values() -> None:
    for text in ("nodes", "[nodes]", "secrets.key", "secrets", "run.signals.go"):
        found = evaluated(text)
        assert found.error is not None, text
        assert found.error.code == "E.TASK.EXPRESSION"


def test_an_expression_that_cannot_be_read_says_where() -> None:
    found = evaluated("  1 + )")
    assert found.error is not None
    assert (found.error.code, found.error.position) == ("E.WORKFLOW.EXPRESSION", 6)
