"""Expressions that are evaluated for who writes them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from astraflow.core.contract.base import (
    OBJECT,
    Count,
    Id,
    JsonObject,
    RequestBody,
    RestObject,
    doc,
)

MAX_VALUE_BYTES: Final = 64 * 1024
"""Of a value that is shown."""
MAX_ALIASES: Final = 1_000


class EvaluateRequest(RequestBody, frozen=True, kw_only=True):
    """An expression, and what its names are."""

    expression: Annotated[str, doc("The expression, without `=` in front.", max_length=16_384)]
    run_id: Annotated[
        Id | None, doc("The run whose inputs and results it reads, as far as they are there now.")
    ] = None
    node_id: Annotated[
        Id | None,
        doc(
            "The node that the expression is of: inside of a container it reads more. A node that the run does not "
            "have, or that is inside of a map, reads what the workflow itself does."
        ),
    ] = None
    nodes: Annotated[
        dict[str, Id],
        doc(
            "Ids by name, for nodes that the expression calls otherwise than the run does.",
            max_length=MAX_ALIASES,
        ),
    ] = msgspec.field(default_factory=dict)
    names: Annotated[
        Raw | UnsetType,
        doc("Values by name, in place of those of the run.", extra_json_schema=OBJECT),
    ] = UNSET

    EXAMPLE: ClassVar[JsonObject] = {
        "expression": "upper(nodes.Greet.results.text)",
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
    }


class EvaluationProblem(RestObject, frozen=True, kw_only=True):
    """Why an expression has no value."""

    code: Annotated[
        str,
        doc(
            "`E.WORKFLOW.EXPRESSION` if it cannot be read, `E.TASK.EXPRESSION` if it has no value."
        ),
    ]
    message: Annotated[str, doc("Why, for people.")]
    position: Annotated[
        Count | None, doc("The character of the expression that is wrong, from 0 on, if one is.")
    ] = None


class Evaluation(RestObject, frozen=True, kw_only=True):
    """What an expression gives."""

    value: Annotated[Any, doc("Its value; null with an `error`, and when `valueTruncated`.")]
    value_truncated: Annotated[bool, doc("The value is too large for this response.")] = False
    error: Annotated[EvaluationProblem | None, doc("Why it has no value.")] = None

    EXAMPLE: ClassVar[JsonObject] = {"value": "HELLO"}
