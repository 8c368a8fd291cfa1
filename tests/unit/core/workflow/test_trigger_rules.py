from __future__ import annotations

from typing import Any

from astraflow.core.workflow.definition import CronTrigger, ManualTrigger
from astraflow.core.workflow.trigger_rules import name_triggers
from tests.tables import each_row
from tests.unit.core.workflow.drafts import found, node, plan, uid

DAILY = {"type": "cron", "expression": "@daily"}
OTHER = {"type": "workflow", "workflowId": uid(77)}
INPUTS: dict[str, Any] = {"city": {}}


@each_row(
    ("trigger", "pointer", "code"),
    [
        ({**DAILY, "id": ""}, "/id", "BAD_ID"),
        ({**DAILY, "id": "a b"}, "/id", "BAD_ID"),
        ({**DAILY, "id": "x" * 65}, "/id", "BAD_ID"),
        ({**DAILY, "expression": "61 * * * *"}, "/expression", "BAD_TEXT"),
        ({**DAILY, "expression": "0 0 30 2 *"}, "/expression", "BAD_TEXT"),
        ({**DAILY, "expression": "0 0 */31 1 MON#5"}, "/expression", "BAD_TEXT"),
        ({**DAILY, "expression": "0 0 0 0 1 1 1"}, "/expression", "BAD_TEXT"),
        ({**DAILY, "expression": "@reboot"}, "/expression", "BAD_TEXT"),
        ({**DAILY, "timeZone": "Mars/Olympus"}, "/timeZone", "BAD_TEXT"),
        ({**DAILY, "timeZone": "../UTC"}, "/timeZone", "BAD_TEXT"),
        ({**DAILY, "inputs": {"town": "scheduledAt"}}, "/inputs/town", "INPUT"),
        ({**DAILY, "values": {"town": 1}}, "/values/town", "INPUT"),
        ({**DAILY, "inputs": {"city": "body.city"}}, "/inputs/city", "BAD_PATH"),
        ({"type": "webhook", "inputs": {"city": "body..x"}}, "/inputs/city", "BAD_PATH"),
        ({"type": "webhook", "inputs": {"city": "/cookies/x"}}, "/inputs/city", "BAD_PATH"),
        ({"type": "webhook", "secretRef": "a b"}, "/secretRef", "BAD_TEXT"),
        ({"type": "webhook", "path": "../a"}, "/path", "BAD_TEXT"),
        ({"type": "webhook", "methods": []}, "/methods", "BAD_TEXT"),
        ({**OTHER, "workflowId": "w"}, "/workflowId", "BAD_ID"),
        ({**OTHER, "on": []}, "/on", "BAD_TEXT"),
        ({**OTHER, "inputs": {"city": "result.x"}}, "/inputs/city", "BAD_PATH"),
        ({**OTHER, "values": {f"v{n}": 0 for n in range(1_025)}}, "/values", "LIMIT"),
    ],
)
def test_what_is_wrong_with_a_trigger_is_reported(
    trigger: dict[str, Any], pointer: str, code: str
) -> None:
    reported = found([node(1)], inputs=INPUTS, triggers=[{"type": "manual"}, trigger])
    assert reported == [(f"/triggers/1{pointer}", code)]


def test_a_workflow_does_not_start_itself() -> None:
    own = {"type": "workflow", "workflowId": uid(900)}
    assert found([node(1)], id=uid(900), triggers=[own]) == [("/triggers/0/workflowId", "BAD_ID")]


def test_two_webhooks_have_two_paths() -> None:
    hooks = [{"type": "webhook", "path": path} for path in ("a", "b", "a", None, None)]
    assert found([node(1)], triggers=hooks) == [("/triggers/2/path", "DUPLICATE_ID")]


def test_two_triggers_have_two_ids_also_when_one_is_made() -> None:
    triggers = [DAILY, {**DAILY, "id": "a"}, {**DAILY, "id": "a"}, {**DAILY, "id": "cron-1"}]
    assert found([node(1)], triggers=triggers) == [
        ("/triggers/2/id", "DUPLICATE_ID"),
        ("/triggers/3/id", "DUPLICATE_ID"),
    ]


def test_a_trigger_without_an_id_is_named_by_its_type_and_place() -> None:
    cron = CronTrigger("@daily")
    named = CronTrigger("@daily", id="mine")
    assert name_triggers([cron, ManualTrigger(), named, cron]) == [
        "cron-1",
        "manual-1",
        "mine",
        "cron-3",
    ]


def test_all_that_a_trigger_may_have_is_taken() -> None:
    made = plan(
        [node(1)],
        inputs={"city": {}, "day": {}},
        triggers=[
            {"type": "manual", "id": "by-hand"},
            {
                "type": "cron",
                "expression": "*/10 * * * * *",
                "timeZone": "Europe/Berlin",
                "jitterSeconds": 5,
                "overlap": "queue",
                "catchUp": "all",
                "maxCatchUp": 3,
                "inputs": {"day": "scheduledAt"},
                "values": {"city": "Bern"},
            },
            {
                "type": "webhook",
                "secretRef": "hook.key",
                "inputs": {"city": "/body/a~1b/0", "day": "headers.date"},
            },
            {**OTHER, "on": ["succeeded", "failed"], "inputs": {"city": "outputs.city"}},
        ],
    )
    assert made.nodes
