"""Which features a definition needs, and where it says so.

Everything that can be modelled is planned. What cannot be executed yet is refused, by validation and by submission
alike, with a pointer to each place that asks for it: a workflow is never half run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from astraflow.core.errors import WORKFLOW_UNSUPPORTED
from astraflow.core.workflow.limits import MAX_PROBLEMS
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import Problems

EXECUTED: Final[frozenset[Feature]] = frozenset(
    {
        Feature.APPROVAL,
        Feature.CALL,
        Feature.COMPENSATION,
        Feature.CONDITION,
        Feature.EXPRESSION,
        Feature.MAP,
        Feature.SIGNAL,
        Feature.SUBGRAPH,
        Feature.WAIT,
        Feature.JOIN_ANY,
        Feature.JOIN_ALL_DONE,
        Feature.ERROR_PORT,
        Feature.MIDDLEWARE,
        Feature.RUN_INPUT,
        Feature.RUN_OUTPUT,
        Feature.RUN_TIMEOUT,
    }
)
"""The features that the run machine carries out."""

_WORDS: Final = {
    Feature.KEY_EXPRESSION: "expressions in keys",
}


class Needs:
    """The features of one definition, each with the places that need it, as far as anybody wants to read them."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[Feature, list[str]] = {}

    def add(self, feature: Feature, pointer: str) -> None:
        places = self._places.setdefault(feature, [])
        if len(places) < MAX_PROBLEMS:
            places.append(pointer)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._places)

    def report(self, problems: Problems) -> None:
        """Report every place that needs what is not executed."""
        for feature, places in self._places.items():
            if feature not in EXECUTED:
                for pointer in places:
                    message = (
                        f"{_WORDS[feature]} are not executed by this version ({feature.value})"
                    )
                    problems.add(pointer, WORKFLOW_UNSUPPORTED, message)
