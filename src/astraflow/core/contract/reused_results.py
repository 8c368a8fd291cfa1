"""Results that a re-run takes over."""

from __future__ import annotations

from typing import Annotated, ClassVar

from astraflow.core.contract.base import JsonObject, RestObject, doc


class ReusedFrom(RestObject, frozen=True, kw_only=True):
    """The node of an earlier run that a result was taken over from."""

    run_id: Annotated[str, doc("The run. It may have been removed since.")]
    node_id: Annotated[str, doc("The node in that run.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "nodeId": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
    }
