"""Authored parameters: checked once, kept as the bytes they were written in, shared where equal.

A dispatch carries them in a frame, so what a frame may not hold is refused here, where the author
still reads the answer (PROTOCOL §1): too deep, numbers out of range, integers beyond 64 bits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core.errors import WORKFLOW_INVALID, WORKFLOW_LIMIT
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.limits import MAX_PARAMETERS_BYTES, MAX_PARAMETERS_DEPTH
from astraflow.core.workflow.plan import ResourceRefValue, find_resource_refs
from astraflow.core.workflow.secret_refs import find_secret_refs

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from astraflow.core.errors import Code
    from astraflow.core.workflow.problems import Problems

EMPTY: Final = b"{}"
_MAX_REMEMBERED: Final = 1_024
"""Nodes that share parameters share a few; a large graph of all different ones gains nothing."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_MAX_PLAIN_BYTES: Final = 24
"""`{"":` and `}` leave no room for 20 digits, let alone for deep nesting."""
_LEAST_INT: Final = -(2**63)
_MOST_INT: Final = 2**64 - 1


class ParameterStore:
    """The parameters of all nodes of one definition; equal ones are mostly one bytes object."""

    __slots__ = ("_problems", "_sound", "resource_refs", "secrets", "with_expression")

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._sound: dict[bytes, bytes] = {EMPTY: EMPTY, b"": EMPTY, b"null": EMPTY}
        self.with_expression: set[bytes] = set()
        self.resource_refs: dict[bytes, tuple[ResourceRefValue, ...]] = {}
        """The references found in parameters that hold any."""
        self.secrets: dict[bytes, tuple[str, ...]] = {}
        """The names of the secrets that parameters refer to, if they refer to any."""

    def take(self, raw: Raw, place: int) -> bytes:
        """The bytes of a node's parameters; a problem is reported for the node at `place`."""
        text = bytes(raw)
        sound = self._sound.get(text)
        if sound is not None:
            return sound
        refusal = self._inspect(text)
        if refusal is not None:
            self._problems.add(f"/nodes/{place}/parameters", *refusal)
            return EMPTY
        return self.take_bound(text, place)

    def take_bound(self, text: bytes, place: int) -> bytes:
        """The same for parameters whose secrets have become references."""
        secrets = find_secret_refs(text)
        if secrets.malformed is not None:
            pointer, message = secrets.malformed
            self._problems.add(f"/nodes/{place}/parameters{pointer}", WORKFLOW_INVALID, message)
            return EMPTY
        if secrets.places:
            self.secrets[text] = secrets.names
        if len(self._sound) < _MAX_REMEMBERED:
            self._sound[text] = text
        return text

    def _inspect(self, text: bytes) -> tuple[Code, str] | None:
        if not text.startswith(b"{"):
            return WORKFLOW_INVALID, "parameters must be an object"
        if len(text) > MAX_PARAMETERS_BYTES:
            message = f"parameters are larger than {MAX_PARAMETERS_BYTES} bytes: {len(text)}"
            return WORKFLOW_LIMIT, message
        try:
            document = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            return WORKFLOW_INVALID, f"parameters cannot be read: {error}"
        except RecursionError:
            return _too_deep()
        if _may_need_walk(text):
            refusal = self._walk(document, text)
            if refusal is not None:
                return refusal
        refs = find_resource_refs(text)
        if refs:
            self.resource_refs[text] = tuple(refs)
        return None

    def _walk(self, document: Any, text: bytes) -> tuple[Code, str] | None:
        return find_unfit(document, lambda: self.with_expression.add(text))


def find_unfit(
    document: Any, on_expression: Callable[[], None] = lambda: None
) -> tuple[Code, str] | None:
    """Why a frame could not hold a value, if it could not; `on_expression` is told of each expression in it."""
    level = [document]
    for _ in range(MAX_PARAMETERS_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str):
                if is_expression(value):
                    on_expression()
            elif type(value) is int and not _LEAST_INT <= value <= _MOST_INT:
                return WORKFLOW_INVALID, "there is an integer beyond 64 bits"
        if not below:
            return None
        level = below
    return _too_deep()


def _may_need_walk(text: bytes) -> bool:
    """Most parameters are plain, and their bytes show it."""
    if b'"=' in text or b'"\\u003' in text:
        return True
    if len(text) <= _MAX_PLAIN_BYTES:
        return False
    nested = text.count(b"{") + text.count(b"[") > MAX_PARAMETERS_DEPTH
    return nested or _LONG_NUMBER.search(text) is not None


def _too_deep() -> tuple[Code, str]:
    return WORKFLOW_LIMIT, f"the value is nested deeper than {MAX_PARAMETERS_DEPTH}"
