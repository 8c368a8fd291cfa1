"""Who asks, how the scheduler is, and why a request was refused."""

from __future__ import annotations

from typing import Annotated, ClassVar

from astraflow.core.contract.base import (
    Count,
    JsonObject,
    RestObject,
    Timestamp,
    doc,
)
from astraflow.core.security.policy import Role


class Me(RestObject, frozen=True, kw_only=True):
    """Whose token it is."""

    tenant: Annotated[str, doc("The tenant of the token.")]
    subject: Annotated[str, doc("Who holds it.")]
    role: Annotated[Role, doc("What it may do.")]
    expires_at: Annotated[Timestamp | None, doc("Until when it can be used; null is for ever.")]
    expires_in_seconds: Annotated[Count | None, doc("How long that is from now.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "tenant": "default",
        "subject": "bootstrap",
        "role": "admin",
        "expiresAt": None,
    }


class Status(RestObject, frozen=True, kw_only=True):
    """How the scheduler is."""

    status: Annotated[str, doc("`ok` or `ready`.")]

    EXAMPLE: ClassVar[JsonObject] = {"status": "ready"}


class ProblemItem(RestObject, frozen=True, kw_only=True):
    """One of the errors in a request."""

    pointer: Annotated[str, doc("A JSON pointer to the value in the body.")]
    message: Annotated[str, doc("What is wrong with it.")]
    code: Annotated[str | None, doc("A code of the error catalogue.")] = None


class Problem(RestObject, frozen=True, kw_only=True):
    """Why a request was refused (RFC 9457). Some codes add members of their own."""

    type: Annotated[str, doc("A URN of the code.")]
    title: Annotated[str, doc("What the code means.")]
    status: Annotated[int, doc("The HTTP status.", ge=400, le=599)]
    detail: Annotated[str, doc("What happened, to what.")]
    code: Annotated[str, doc("A code of `docs/reference/errors.md`; it never changes its meaning.")]
    instance: Annotated[
        str | None,
        doc("A URN with the id of the request, as in `X-Request-Id`; a 401 has none."),
    ] = None
    errors: Annotated[list[ProblemItem] | None, doc("Every error in the body, if that is why.")] = (
        None
    )

    EXAMPLE: ClassVar[JsonObject] = {
        "type": "urn:astraflow:error:E.RUN.NOT_FOUND",
        "title": "there is no such run, or none that you may see",
        "status": 404,
        "detail": "no such run: 01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "code": "E.RUN.NOT_FOUND",
        "instance": "urn:astraflow:request:5f0c6f1e9a3b7d24-1c",
    }
