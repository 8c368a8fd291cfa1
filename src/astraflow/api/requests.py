"""A request as the endpoints see it: who asks, the parameters of the path, the query, the body.

1. The size of a body is checked by its `Content-Length` before it is read, and counted while it is read. Of a
   compressed body the decompressed bytes count, so that a zip bomb is refused when it reaches the limit.
2. A body is read as bytes and decoded once, by the endpoint that knows its type. A definition is not decoded here.
3. Refuse, do not repair: a header that is there twice is an error and not a guess.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from astraflow.api.asgi import Receive, Scope
from astraflow.api.responses import HAS_BODY
from astraflow.core import errors
from astraflow.core.contract.base import NO_LINE_FEED, Query
from astraflow.core.errors import Refused
from astraflow.core.jsontext import place_in
from astraflow.core.protocol.scan import duplicate_key, has_duplicate_key, problem_in
from astraflow.core.security.bearer import TokenRecord
from astraflow.core.workflow.limits import MAX_DEFINITION_BYTES

PLAIN_BODY_BYTES: Final = 4 * 1024 * 1024
"""Any body that is not a definition."""

DEFINITION_BODY_BYTES: Final = MAX_DEFINITION_BYTES
BODY_WAIT_S: Final = 30.0
"""Between two pieces of a body; a client that sends nothing for so long has gone."""

MAX_DEEP_ID_CHARS: Final = 1_024
"""An id of a resource; it may hold the ids of its run and its session."""
_DIGITS: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_AT: Final = re.compile(r" - at `(?:key in )?\$([^`]*)`$", re.DOTALL)
_KEY: Final = re.compile(r"\.([^.\[\]]+)|\[([0-9]+|\.\.\.)\]")
_NO_LINE_FEED: Final = repr(NO_LINE_FEED)[1:-1]
"""The part of a pattern that nobody needs to read, as msgspec shows it."""
_GZIP: Final = 31
"""zlib's `wbits` for a gzip stream and nothing else."""

T = TypeVar("T")
Q = TypeVar("Q", bound=Query)


class Request(Generic[Q]):
    """One request that has been let in. `query` are its query parameters, as the route declares them."""

    __slots__ = ("_bearer", "_receive", "params", "query", "scope")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        bearer: TokenRecord | None,
        params: Mapping[str, str],
        query: Q,
    ) -> None:
        """`bearer` is None for public routes, and for those that a signed URL opens."""
        self.scope = scope
        self.params = params
        self.query = query
        self._receive = receive
        self._bearer = bearer

    @property
    def bearer(self) -> TokenRecord:
        assert self._bearer is not None, "a public endpoint asked who is asking"
        return self._bearer

    @property
    def is_authenticated(self) -> bool:
        """Whether a credential let it in; if not, a signed URL must."""
        return self._bearer is not None

    @property
    def tenant(self) -> str:
        return self.bearer.tenant

    @property
    def subject(self) -> str:
        """Who asks."""
        return self.bearer.subject

    @property
    def method(self) -> str:
        method: str = self.scope["method"]
        return method

    def header(self, name: bytes) -> str | None:
        """The value of a header, or None.

        Raises:
            Refused: the request has it twice.
        """
        found: str | None = None
        for key, value in self.scope["headers"]:
            if key == name:
                if found is not None:
                    raise Refused(
                        errors.REQUEST_INVALID,
                        f"the request has this header twice: {name.decode()}",
                    )
                found = value.decode("latin-1")
        return found

    def rest_of_path(self, prefix: str) -> str:
        """The end of the path: an id that may contain slashes, as it was sent."""
        rest: str = self.scope["path"].removeprefix(prefix)
        if not rest or len(rest) > MAX_DEEP_ID_CHARS:
            raise Refused(errors.REQUEST_INVALID, "the id in the path is missing or too long")
        return rest

    # -- body -------------------------------------------------------------------------------

    async def json_body(self, limit: int = PLAIN_BODY_BYTES) -> bytes:
        """The bytes of a JSON body, decompressed.

        Raises: Refused, when it is absent, too large, of another kind, or broken off.
        """
        body = await self.optional_body(limit)
        if body is None:
            raise Refused(errors.REQUEST_INVALID, "the request needs a body", pointer="")
        return body

    async def optional_body(self, limit: int = PLAIN_BODY_BYTES) -> bytes | None:
        """As `json_body`; None if there is no body."""
        said = self.header(b"content-length")
        if said is not None and said.isdigit() and int(said[:20]) > limit:
            raise _too_large(limit)
        encoding = self.header(b"content-encoding") or "identity"
        if encoding not in ("identity", "gzip"):
            raise Refused(
                errors.REQUEST_MEDIA_TYPE, f"bodies are read plain or as gzip: {encoding[:80]}"
            )
        gathered = _Inflated(limit) if encoding == "gzip" else _Gathered(limit)
        while await self._read_into(gathered):
            pass
        body = gathered.whole()
        if not body:
            return None
        self._check_media_type()
        return body

    async def _read_into(self, gathered: _Gathered) -> bool:
        body, more = await self._next_piece()
        gathered.add(body)
        return more

    async def _next_piece(self) -> tuple[bytes, bool]:
        """A piece of the body, and whether there is more."""
        has_body = (self.scope.get("extensions") or {}).get(HAS_BODY)
        try:
            if has_body is not None and has_body():
                message = await self._receive()  # at once
            else:
                async with asyncio.timeout(BODY_WAIT_S):
                    message = await self._receive()
        except TimeoutError as error:
            raise Refused(errors.REQUEST_INVALID, "timeout: the body did not arrive") from error
        if message["type"] != "http.request":
            raise Refused(
                errors.REQUEST_INVALID, "the connection was lost before the end of the request"
            )
        return message.get("body", b""), bool(message.get("more_body", False))

    async def stream_body(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes, of whatever kind, for who counts it.

        Raises: Refused, when its `Content-Length` is above `limit`, it is compressed, or the connection is lost.
        """
        said = self.header(b"content-length")
        if said is not None and said.isdigit() and int(said[:20]) > limit:
            raise _too_large(limit)
        if (self.header(b"content-encoding") or "identity") != "identity":
            raise Refused(errors.REQUEST_MEDIA_TYPE, "files are taken as they are, not compressed")
        more = True
        while more:
            body, more = await self._next_piece()
            yield body

    def _check_media_type(self) -> None:
        said = self.header(b"content-type") or ""
        kind, _, rest = said.partition(";")
        kind = kind.strip().lower()
        is_json = kind == "application/json" or (
            kind.startswith("application/") and kind.endswith("+json")
        )
        charset = rest.strip().lower()
        if not is_json or (charset.startswith("charset=") and charset.strip('"') not in _UTF_8):
            raise Refused(
                errors.REQUEST_MEDIA_TYPE, f"the body must be application/json: {said[:80]!r}"
            )


_UTF_8: Final = frozenset({"charset=utf-8", 'charset="utf-8', "charset=utf8"})


class _Gathered:
    """A body as it arrives, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise _too_large(self._limit)
        self._parts.append(part)

    def whole(self) -> bytes:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class _Inflated(_Gathered):
    """A gzip body: what it becomes counts."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._stream = zlib.decompressobj(_GZIP)
        self._has_begun = False

    def add(self, part: bytes) -> None:
        while part:
            self._has_begun = True
            if self._stream.eof:
                raise Refused(
                    errors.REQUEST_INVALID, "there is more after the end of the gzip stream"
                )
            try:
                # One byte more than may be: then the limit is seen to be passed.
                super().add(self._stream.decompress(part, self._limit - self._size + 1))
            except zlib.error as error:
                raise Refused(errors.REQUEST_INVALID, "the body is not a gzip stream") from error
            part = self._stream.unconsumed_tail or self._stream.unused_data

    def whole(self) -> bytes:
        if self._has_begun and not self._stream.eof:
            raise Refused(errors.REQUEST_INVALID, "the gzip stream is incomplete")
        return super().whole()


def _too_large(limit: int) -> Refused:
    return Refused(errors.REQUEST_TOO_LARGE, f"the body is larger than allowed, in bytes: {limit}")


def as_number(text: str, name: str) -> int:
    """A whole number of at least 0, written in digits. Raises: Refused."""
    if not _DIGITS.fullmatch(text):
        raise Refused(errors.REQUEST_INVALID, f"must be a whole number of at least 0: {name}")
    return int(text)


def decode_json(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a body into its type.

    Raises: Refused, with a pointer to what does not fit.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        text, pointer = pointed(str(error))
        raise Refused(errors.REQUEST_INVALID, text, pointer=pointer) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where = place_in(raw, str(error)[:200])
        raise Refused(
            errors.REQUEST_INVALID, f"the body is not JSON, {where}", pointer=""
        ) from error
    except RecursionError as error:
        raise Refused(errors.REQUEST_INVALID, "the body is nested too deep", pointer="") from error


def decode_strict(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """As `decode_json`, for what decides who may do what: a key that is there twice is an error, too. A proxy that
    looks at the first one must not be fooled by the second.

    Raises: Refused.
    """
    decoded = decode_json(raw, decoder)
    if has_duplicate_key(raw):
        key = duplicate_key(raw) or ""
        message = f"the body has this key twice: {key[:64]}"
        raise Refused(errors.REQUEST_INVALID, message, pointer="")
    return decoded


def check_values(raw: bytes, pointer: str) -> None:
    """Refuse what could not be carried to a worker: U+0000, lone surrogates, numbers out of range, deep nesting."""
    problem = problem_in(raw, 1)
    if problem is None:
        try:
            msgspec.json.decode(raw)
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"not JSON: {str(error)[:200]}"
        except RecursionError:
            problem = "it is nested too deep"
    raise Refused(errors.REQUEST_INVALID, problem, pointer=pointer)


def pointed(text: str) -> tuple[str, str]:
    """msgspec's words and its path as a JSON pointer."""
    found = _AT.search(text)
    path = found[1] if found else ""
    said = (text[: found.start()] if found else text).replace(_NO_LINE_FEED, "")
    steps = [(key or place).replace("~", "~0") for key, place in _KEY.findall(path)]
    pointer = "".join(f"/{step}" for step in steps)
    return said[:1].lower() + said[1:].replace("`", "'"), pointer
