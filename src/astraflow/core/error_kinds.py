"""What an error is: a row of the catalogue, and the exception that carries it. `errors` has the rows.

An exception says whose fault it was, so that a caller can tell what to do without reading codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the catalogue."""

    code: str
    http: int
    retryable: bool
    says: str
    do: str

    def __str__(self) -> str:
        return self.code


def final(code: str, http: int, says: str, do: str) -> Code:
    """A row: trying again does not help."""
    return Code(code, http, False, says, do)


def again(code: str, http: int, says: str, do: str) -> Code:
    """A row: trying again can help."""
    return Code(code, http, True, says, do)


class AstraflowError(Exception):
    """An error with a row of the catalogue. `pointer` is a JSON pointer to the offending value."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        pointer: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.pointer = pointer
        self.detail = detail

    @property
    def retryable(self) -> bool:
        return self.code.retryable

    def __str__(self) -> str:
        return f"{self.code.code}: {self.message}"


class LocalProtocolError(AstraflowError):
    """We were about to break the protocol."""


class RemoteProtocolError(AstraflowError):
    """The peer broke the protocol."""


class Refused(AstraflowError):
    """The caller's input is wrong or not allowed."""


class Conflict(AstraflowError):
    """The state that the request meets does not allow it."""


class NotFound(AstraflowError):
    """There is no such thing, or none that the caller may see: the two look the same."""


class Unavailable(AstraflowError):
    """It cannot be done now; it may be possible later."""


class StoreError(AstraflowError):
    """The store failed or refused; its code says which."""


class OutcomeUnknown(StoreError):
    """Nobody knows whether the commit was written; reading it back tells (R16)."""


class Bug(AstraflowError):
    """An invariant of ours broke."""
