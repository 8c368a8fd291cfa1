"""Workflows that are called by others: found, planned once, and refused where they would call themselves.

The shell reads the definitions beforehand; a plan has the plans of all that it calls inside, so that a run executes
what was there when it was accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from astraflow.core.workflow.plan import DeclaredInput, Plan
from astraflow.core.workflow.problems import InvalidDocument
from astraflow.core.workflow.run_inputs import declared_inputs

if TYPE_CHECKING:
    from astraflow.core.workflow.definition import CallSpec, WorkflowDocument

MAX_CALL_DEPTH: Final = 8
"""Workflows that call workflows that call workflows."""
MAX_CALLED_NODES: Final = 65_536
"""Nodes of all workflows that one calls, with what those call in turn."""
MISSING_CALLEE: Final = "there is no published workflow with this id and version"

CalleeKey = tuple[str, int | None]
Documents = Mapping[CalleeKey, "WorkflowDocument"]
"""Published definitions by id and version; None: the newest."""


class Called(Struct, frozen=True):
    """A workflow that can be called."""

    plan: Plan
    inputs: tuple[DeclaredInput, ...]


class Callees:
    """The workflows that a definition may call. `plan` plans one of them, with these callees in turn."""

    def __init__(
        self, documents: Documents, plan: Callable[[WorkflowDocument, Callees], Plan], caller: str
    ) -> None:
        self._documents = documents
        self._plan = plan
        self._found: dict[CalleeKey, Called | str] = {}
        self._open: list[str] = [caller]  # the ids of the workflows that are being planned
        self._nodes = 0

    def find(self, call: CallSpec) -> Called | str:
        """The workflow that a node calls, or why it cannot be called."""
        key = (call.workflow_id, call.version)
        found = self._found.get(key)
        if found is None:
            found = self._make(key)
            if call.workflow_id not in self._open:
                self._found[key] = found
        return found

    def _make(self, key: CalleeKey) -> Called | str:
        workflow_id = key[0]
        if workflow_id in self._open:
            return "the workflow would call itself"
        if len(self._open) > MAX_CALL_DEPTH:
            return f"workflows call each other more than {MAX_CALL_DEPTH} deep"
        document = self._documents.get(key)
        if document is None:
            return MISSING_CALLEE
        self._nodes += len(document.workflow.nodes)
        if self._nodes > MAX_CALLED_NODES:
            return f"the workflows that are called have more than {MAX_CALLED_NODES} nodes"
        self._open.append(workflow_id)
        try:
            plan = self._plan(document, self)
        except InvalidDocument as error:
            first = error.problems[0]
            return f"the workflow cannot be run: {first.pointer}: {first.message}"[:500]
        finally:
            self._open.pop()
        return Called(plan, declared_inputs(document.workflow))


def called_by(document: WorkflowDocument) -> set[CalleeKey]:
    """What a definition calls itself."""
    return {
        (node.call.workflow_id, node.call.version)
        for node in document.workflow.nodes
        if node.call is not None
    }
