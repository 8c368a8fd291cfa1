"""Query parameters: from the text of a URL to the struct that the route declares.

1. A parameter that the route does not have is refused, with the name that was probably meant: a filter with a typing
   error must not show everything. It is ignored only where others write the URL.
2. A parameter that is there twice is refused. A text that is empty counts as left out.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec

from astraflow.api.requests import pointed
from astraflow.core import errors
from astraflow.core.contract.base import Query
from astraflow.core.errors import Refused

MAX_QUERY_FIELDS: Final = 32
_FREE: Final = (msgspec.inspect.StrType,)
_TEXTS: Final = (*_FREE, msgspec.inspect.LiteralType)
"""A word of a closed set is a text, too."""

Q = TypeVar("Q", bound=Query)


class QueryDecoder(Generic[Q]):
    """Decodes the query of one route."""

    def __init__(self, struct: type[Q]) -> None:
        self._struct = struct
        self._none = struct()
        fields = msgspec.inspect.type_info(struct).fields  # type: ignore[attr-defined]
        self._is_text = {one.encode_name: _is_any_of(one.type, _TEXTS) for one in fields}
        self._is_free = {one.encode_name: _is_any_of(one.type, _FREE) for one in fields}
        self._words = {one.encode_name: sorted(_words_of(one.type)) for one in fields}

    def decode(self, raw: bytes) -> Q:
        """
        Raises:
            Refused: `detail["parameter"]` names the parameter that is wrong.
        """
        if not raw:
            return self._none
        fields: dict[str, str] = {}
        for name, value in _parse(raw):
            is_text = self._is_text.get(name)
            if is_text is None and self._struct.IGNORES_OTHERS:
                continue
            if is_text is None:
                raise self._unknown(name)
            if name in fields:
                raise _refused(name, f"the query has this parameter twice: {name}")
            fields[name] = value
        may_be_blank = {name for name, is_one in self._is_text.items() if not is_one}
        may_be_blank |= self._struct.NOT_BLANK
        given = {name: text for name, text in fields.items() if text or name in may_be_blank}
        try:
            for name, text in given.items():
                self._check(name, text)
            return msgspec.convert(given, self._struct, strict=False)
        except msgspec.ValidationError as error:
            message, pointer = pointed(str(error))
            name = pointer.lstrip("/")
            raise _refused(
                name, f"the parameter must be {self._rule(name, message)}: {name}"
            ) from error

    def _rule(self, name: str, message: str) -> str:
        """What a parameter must be, in words: msgspec names the types of Python."""
        if self._words[name]:
            return f"one of {', '.join(self._words[name])}"
        if "'bool'" in message:
            return "true or false"
        bound = message.rpartition("= ")[2]
        if "of length <=" in message:
            return f"a text of at most {bound} characters"
        return f"a whole number of at least {bound}" if ">=" in message else "a whole number"

    def _check(self, name: str, text: str) -> None:
        """Refuse what msgspec would take for something else."""
        if "\0" in text:
            raise _refused(name, f"the parameter contains U+0000: {name}")
        if text.lower() == "null" and not self._is_free[name]:
            raise _refused(name, f"the parameter cannot be null: {name}")

    def _unknown(self, name: str) -> Refused:
        message = f"there is no query parameter of this name: {name[:80]}"
        near = get_close_matches(name[:80], self._is_text, n=1)
        if near:
            message += f"; did you mean {near[0]}?"
        elif self._is_text:
            message += f"; known are: {', '.join(self._is_text)}"
        return _refused(name[:80], message)


def _is_any_of(kind: msgspec.inspect.Type, wanted: tuple[type, ...]) -> bool:
    if isinstance(kind, msgspec.inspect.UnionType):
        return any(_is_any_of(one, wanted) for one in kind.types)
    if isinstance(kind, msgspec.inspect.Metadata):
        return _is_any_of(kind.type, wanted)
    return isinstance(kind, wanted)


def _words_of(kind: msgspec.inspect.Type) -> list[str]:
    """The words of a closed set."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return [word for one in kind.types for word in _words_of(one)]
    if isinstance(kind, msgspec.inspect.Metadata):
        return _words_of(kind.type)
    return (
        [str(one) for one in kind.values] if isinstance(kind, msgspec.inspect.LiteralType) else []
    )


def _parse(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except ValueError as error:
        raise Refused(errors.REQUEST_INVALID, "the query of the URL cannot be read") from error


def _refused(name: str, message: str) -> Refused:
    return Refused(errors.REQUEST_INVALID, message, detail={"parameter": name})
