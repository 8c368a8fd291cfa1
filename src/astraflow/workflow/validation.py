"""Validation: is this definition one that can be run, and if not, what all is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.workflow.analysis import Analysis

if TYPE_CHECKING:
    from astraflow.workflow.catalog import Catalog
    from astraflow.workflow.definition import Definition
    from astraflow.workflow.problems import Problem

__all__ = ["validate"]


def validate(definition: Definition, catalog: Catalog) -> list[Problem]:
    """All problems of a decoded definition; an empty list means that it can be planned."""
    return Analysis(definition.workflow, catalog).problems.found()
