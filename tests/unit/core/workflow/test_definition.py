from __future__ import annotations

import msgspec
import pytest

from astraflow.core.workflow.definition import (
    ABSENT,
    CronTrigger,
    ManualTrigger,
    NodeSpec,
    WebhookTrigger,
    WorkflowSpec,
)
from tests.unit.core.workflow.drafts import EXAMPLES, definition, node


def test_the_typed_view_holds_everything_that_an_editor_can_write() -> None:
    raw = (EXAMPLES / "workflow" / "everything.json").read_bytes()
    workflow = msgspec.json.decode(raw, type=WorkflowSpec)
    assert [type(row) for row in workflow.triggers] == [ManualTrigger, CronTrigger, WebhookTrigger]
    assert workflow.inputs["city"].default == msgspec.Raw(b'"Paris"')
    assert workflow.nodes[1].retry is not None
    assert workflow.nodes[1].retry.categories == ["INFRASTRUCTURE", "TIMEOUT"]
    assert workflow.edges[1].when == "len(results.value) > 0"


def test_what_is_left_out_has_a_default() -> None:
    row = definition([node(1)]).workflow.nodes[0]
    assert row == NodeSpec(id=row.id, type="core.noop")
    assert row.parameters is ABSENT
    assert row.join == "all"


def test_a_definition_is_read_only() -> None:
    draft = definition([node(1)])
    with pytest.raises(AttributeError):
        draft.workflow.nodes[0].label = "new"  # type: ignore[misc]


def test_the_document_is_a_copy_that_may_be_changed() -> None:
    draft = definition([node(1)], vendor={"kept": True})
    document = draft.document()
    assert document["vendor"] == {"kept": True}
    document["nodes"].clear()
    assert draft.document()["nodes"] == [node(1)]
