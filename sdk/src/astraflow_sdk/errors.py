"""Errors that a node raises. The category decides whether the attempt is retried.

`USER_CODE` and `INFRASTRUCTURE` are retried if the retry policy of the node allows it; `DATA_QUALITY` and
`CONFIGURATION` are not, because the same input would fail again. `retryable` overrides the category.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NodeError(Exception):
    """The base class of errors with a category."""

    category = "USER_CODE"
    default_code = "E.RUNNER.FAILURE"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        code: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.code = code or self.default_code
        self.context = context


class UserCodeError(NodeError):
    """The node's own code failed."""


class DataQualityError(NodeError):
    """The input is invalid."""

    category = "DATA_QUALITY"


class InfrastructureError(NodeError):
    """A network, a disk or a service is not available now."""

    category = "INFRASTRUCTURE"


class ConfigurationError(NodeError):
    """The node or the machine is not configured correctly."""

    category = "CONFIGURATION"


class CallFailed(NodeError):
    """The rest of the chain, called with `ctx.next()`, did not succeed."""

    default_code = "E.NEXT.FAILED"

    def __init__(self, message: str, *, category: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.category = category


class Cancelled(BaseException):
    """Raised by `ctx.raise_if_cancelled()`. Not an `Exception`: `except Exception` must not stop it."""
