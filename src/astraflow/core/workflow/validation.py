"""Validation: is this definition one that can be run, and if not, what all is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.errors import WORKFLOW_INVALID
from astraflow.core.workflow.analysis import Analysis
from astraflow.core.workflow.planner import callees_of
from astraflow.core.workflow.problems import InvalidDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.core.workflow.callees import Documents
    from astraflow.core.workflow.catalog import Catalog
    from astraflow.core.workflow.definition import WorkflowDocument
    from astraflow.core.workflow.problems import DefinitionProblem


def validate(
    definition: WorkflowDocument, catalog: Catalog, documents: Documents | None = None
) -> list[DefinitionProblem]:
    """All problems of a decoded definition; an empty list means that it can be run. `documents` are the definitions
    that it calls, and those that they call."""
    callees = callees_of(definition, catalog, documents or {})
    return Analysis(definition.workflow, catalog, callees).problems.found()


def refusal_of(problems: Sequence[DefinitionProblem]) -> InvalidDocument:
    """The refusal of a definition with these problems, whoever asks."""
    return InvalidDocument(WORKFLOW_INVALID, problems)
