"""What all structs of the contract share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Meta

MAX_ID_CHARS: Final = 256
MAX_CURSOR_CHARS: Final = 2_048
"""The position of a resource holds its id and the id of its worker."""
NO_LINE_FEED: Final = r"(?!\n)"
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
MAX_WIDE_LIMIT: Final = 1_000

Item = TypeVar("Item")


def doc(description: str, **more: Any) -> Meta:
    """The description of a field."""
    return Meta(description=description, **more)


def named(pattern: str) -> Meta:
    """A text that is this pattern as a whole. `$` alone takes a line feed behind it in Python; ECMAScript, which
    OpenAPI means, has no `\\Z`."""
    return Meta(pattern=f"^{pattern}${NO_LINE_FEED}")


def no_items() -> list[Any]:
    """An empty list as a default that is encoded: `omit_defaults` leaves out `list` itself."""
    return []


def no_text() -> str:
    """An empty text as a default that is encoded, like `no_items`."""
    return ""


Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339 in UTC, with milliseconds."""
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
JsonObject = dict[str, Any]
OBJECT: Final = {"type": "object"}
"""The JSON Schema of a value that is an object and is passed on as it is."""


class RestObject(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """An object of a response. camelCase in JSON, snake_case in Python. Being frozen it can be in no reference cycle.

    A field without a default is always sent. A field with a default is left out when it has that value, and is never
    null. Readers ignore members that they do not know.
    """


class RequestBody(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The body of a request."""


class Query(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The query parameters of a route. Parameters that the struct does not have are refused."""

    IGNORES_OTHERS: ClassVar[bool] = False
    """Whether they are ignored: a URL that others write may have more in it."""
    NOT_BLANK: ClassVar[frozenset[str]] = frozenset()
    """Texts that are refused when they are blank; another one counts as missing then."""


class NoQuery(Query, frozen=True, kw_only=True):
    """No query parameters."""


class PageQuery(Query, frozen=True, kw_only=True):
    """Which page of a list."""

    limit: Annotated[
        int,
        doc(
            f"How many items the page has at most, {DEFAULT_LIMIT} by default. "
            f"More than {MAX_LIMIT} counts as {MAX_LIMIT}.",
            ge=1,
        ),
    ] = DEFAULT_LIMIT
    cursor: Annotated[
        str,
        doc("`nextCursor` of the page before. Leave it out for the first page.", max_length=2_048),
    ] = ""

    @property
    def count(self) -> int:
        """How many items to return."""
        return min(self.limit, MAX_LIMIT)


class WidePageQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of a list of many small items."""

    limit: Annotated[
        int,
        doc(
            f"How many items the page has at most, {MAX_WIDE_LIMIT} by default and at the most.",
            ge=1,
        ),
    ] = MAX_WIDE_LIMIT

    @property
    def count(self) -> int:
        """How many items to return."""
        return min(self.limit, MAX_WIDE_LIMIT)


class Page(RestObject, Generic[Item], frozen=True, kw_only=True):
    """One page of a list."""

    items: Annotated[list[Item], doc("The items of this page.")]
    next_cursor: Annotated[
        str | None, doc("The `cursor` of the next page; null if this is the last one.")
    ]
