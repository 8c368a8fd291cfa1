"""Whether a request has left a row in the audit, so that it leaves one, and not two.

The mark travels in a context variable, as the id of the request does. It is an object: a task that a request starts
has a copy of the context, and marks the same one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final


class AuditMark:
    """Of one request."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False


_current: Final[ContextVar[AuditMark | None]] = ContextVar("audit_mark", default=None)


def begin_audit() -> AuditMark:
    """The mark of a request whose handling begins here."""
    mark = AuditMark()
    _current.set(mark)
    return mark


def mark_audited() -> None:
    """What is handled in this context has a row in the audit."""
    mark = _current.get()
    if mark is not None:
        mark.is_set = True
