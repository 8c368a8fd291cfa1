"""What a definition must keep as a whole: its own id, texts, runtimes, inputs, triggers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core.errors import WORKFLOW_BAD_ID, WORKFLOW_BAD_TEXT
from astraflow.core.workflow.limits import (
    MAX_DESCRIPTION_CHARS,
    MAX_KEY_CHARS,
    MAX_LABEL_CHARS,
    MAX_LIST_ITEMS,
)
from astraflow.core.workflow.node_rules import UUID
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import pointer_token
from astraflow.core.workflow.run_inputs import check_declared
from astraflow.core.workflow.schema_rules import check_schema
from astraflow.core.workflow.trigger_rules import check_triggers

if TYPE_CHECKING:
    from collections.abc import Collection

    from astraflow.core.workflow.definition import Metadata, WorkflowSpec
    from astraflow.core.workflow.problems import Problems
    from astraflow.core.workflow.settings_rules import SettingsRules

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def check_workflow(
    workflow: WorkflowSpec, settings: SettingsRules, problems: Problems, features: set[Feature]
) -> None:
    """Report the problems of everything but nodes and edges."""
    if not UUID.fullmatch(workflow.id):
        message = f"the id of a workflow must be a UUID: {workflow.id[:80]!r}"
        problems.add("/id", WORKFLOW_BAD_ID, message)
    if workflow.metadata is not None:
        _check_metadata(workflow.metadata, problems)
    _check_texts(workflow.tags, "/tags", problems)
    if problems.check_count("/runtimes", workflow.runtimes, MAX_LIST_ITEMS):
        for name, runtime in workflow.runtimes.items():
            problems.check_key("/runtimes", name, MAX_KEY_CHARS)
            if runtime.worker_hints is not None:
                settings.check_hints(
                    runtime.worker_hints, f"/runtimes/{pointer_token(name)}/workerHints"
                )
    _check_names(workflow.inputs, "/inputs", problems)
    _check_names(workflow.outputs, "/outputs", problems)
    check_declared(workflow.inputs, problems)
    for name, output in workflow.outputs.items():
        if output.schema is not None:
            pointer = f"/outputs/{pointer_token(name)}/schema"
            check_schema(problems, pointer, msgspec.json.encode(output.schema))
    if workflow.inputs:
        features.add(Feature.RUN_INPUT)
    if workflow.outputs:
        features.add(Feature.RUN_OUTPUT)
    if workflow.timeout_seconds is not None:
        features.add(Feature.RUN_TIMEOUT)
    check_triggers(workflow, problems)


def _check_metadata(metadata: Metadata, problems: Problems) -> None:
    if metadata.name is not None:
        problems.check_text("/metadata/name", metadata.name, MAX_LABEL_CHARS)
    if metadata.description is not None:
        problems.check_text("/metadata/description", metadata.description, MAX_DESCRIPTION_CHARS)
    if metadata.environment is not None:
        problems.check_text("/metadata/environment", metadata.environment, MAX_LABEL_CHARS)
    _check_texts(metadata.tags, "/metadata/tags", problems)


def _check_texts(texts: list[str], pointer: str, problems: Problems) -> None:
    if problems.check_count(pointer, texts, MAX_LIST_ITEMS):
        for place, text in enumerate(texts):
            problems.check_key(f"{pointer}/{place}", text, MAX_LABEL_CHARS)


def _check_names(names: Collection[str], pointer: str, problems: Problems) -> None:
    if not problems.check_count(pointer, names, MAX_LIST_ITEMS):
        return
    for name in names:
        if len(name) > MAX_KEY_CHARS or not _NAME.fullmatch(name):
            problems.add(pointer, WORKFLOW_BAD_TEXT, f"not a name: {name[:80]!r}")
