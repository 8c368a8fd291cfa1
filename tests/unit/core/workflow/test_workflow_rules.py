from __future__ import annotations

from typing import Any

from astraflow.core.workflow import Feature
from tests.tables import each_row
from tests.unit.core.workflow.drafts import found, node, plan, uid

OUTPUT = {"source": {"node": uid(1)}}


@each_row(
    ("fields", "pointer", "code"),
    [
        ({"id": "w1"}, "/id", "BAD_ID"),
        ({"id": uid(1) + "\n"}, "/id", "BAD_ID"),
        ({"metadata": {"name": "x" * 257}}, "/metadata/name", "LIMIT"),
        ({"metadata": {"description": "\u202e"}}, "/metadata/description", "BAD_TEXT"),
        ({"metadata": {"environment": "\x1b"}}, "/metadata/environment", "BAD_TEXT"),
        ({"metadata": {"tags": ["ok", ""]}}, "/metadata/tags/1", "BAD_TEXT"),
        ({"tags": ["t"] * 1_025}, "/tags", "LIMIT"),
        ({"runtimes": {"": {}}}, "/runtimes", "BAD_TEXT"),
        ({"runtimes": {str(n): {} for n in range(1_025)}}, "/runtimes", "LIMIT"),
        (
            {"runtimes": {"a/b~": {"workerHints": {"minVersion": "?"}}}},
            "/runtimes/a~1b~0/workerHints/minVersion",
            "BAD_TEXT",
        ),
        ({"inputs": {"a b": {}}}, "/inputs", "BAD_TEXT"),
        ({"inputs": {"a" * 129: {}}}, "/inputs", "BAD_TEXT"),
        ({"inputs": {f"i{n}": {} for n in range(1_025)}}, "/inputs", "LIMIT"),
        ({"outputs": {"1": OUTPUT}}, "/outputs", "BAD_TEXT"),
        ({"triggers": [{"type": "manual"}] * 1_025}, "/triggers", "LIMIT"),
        ({"triggers": [{"type": "cron", "expression": "x"}]}, "/triggers/0/expression", "BAD_TEXT"),
        (
            {"triggers": [{"type": "cron", "expression": "@daily", "timeZone": "a b"}]},
            "/triggers/0/timeZone",
            "BAD_TEXT",
        ),
        ({"triggers": [{"type": "webhook", "path": "/a"}]}, "/triggers/0/path", "BAD_TEXT"),
    ],
)
def test_what_is_wrong_with_the_whole_is_reported(
    fields: dict[str, Any], pointer: str, code: str
) -> None:
    assert found([node(1)], **fields) == [(pointer, code)]


def test_a_workflow_with_everything_set_is_fine() -> None:
    made = plan(
        [node(1, "core.echo")],
        metadata={"name": "n", "description": "d", "environment": "e", "tags": ["t"]},
        tags=["t"],
        runtimes={"python": {"workerHints": {"labels": {"zone": "a"}}}, "other": {}},
        inputs={"city": {"schema": {"type": "string"}, "default": None, "required": True}},
        outputs={"all": {"source": {"node": uid(1), "port": "value"}}, "ok": OUTPUT},
        triggers=[
            {"type": "manual"},
            {"type": "cron", "expression": "*/5 0-6 1,15 * MON-FRI", "timeZone": "Europe/Paris"},
            {"type": "webhook"},
            {"type": "webhook", "path": "orders/new"},
        ],
        timeoutSeconds=60,
    )
    assert made.features == {Feature.RUN_INPUT, Feature.RUN_OUTPUT, Feature.RUN_TIMEOUT}
    assert made.timeout_s == 60
    assert made.nodes[0].worker_labels == (("zone", "a"),)
    assert [(row.name, row.source, row.read) for row in made.outputs] == [
        ("all", 0, ("value",)),
        ("ok", 0, None),
    ]
