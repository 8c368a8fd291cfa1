"""Log lines: one JSON object each, with the fields of the older documents, and no secret in them.

A line has `ts`, `level`, `logger`, `message`, and of `FIELDS` those that were given as `extra`::

    log.warning("the lease ended", extra={"tenant": t, "run": r, "task": k, "attempt": 3})

A line that is written while a request is handled has its id, as `request`.

Two nets keep secrets out: what was registered with `Redaction.hide` never appears, wherever it came from, and what
looks like a credential (`Bearer …`, `astra_…`, a signed token, a password in a URL) is cut even if nobody registered
it.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import IO, Any, Final

import msgspec

from astraflow.observe.request_ids import current_request_id

FIELDS: Final = (
    "tenant",
    "sender",
    "type",
    "id",
    "corr",
    "code",
    "seq",
    "run",
    "task",
    "attempt",
    "worker",
    "request",
    "pid",
)
"""In this order, after the message. Any other `extra` is refused nowhere and shown nowhere."""

MAX_MESSAGE_CHARS: Final = 8_192
MAX_STACK_CHARS: Final = 32_768
MIN_HIDDEN_CHARS: Final = 6
"""A shorter text would blot out half of every line; the settings refuse such a secret elsewhere."""

_MASK: Final = "***"
_CREDENTIAL: Final = re.compile(
    r"(?i)(?P<bearer>\bbearer\s+)[^\s\"',;]+"
    r"|\bastra_[A-Za-z0-9_-]{16,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"
    r"|(?P<user>://[^\s/@:]*:)[^\s@/]+(?=@)"
    r"|(?P<query>[?&](?:token|access_token|key|secret)=)[^\s&\"']+"
)

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class Redaction:
    """What must not be written. Shared by every formatter of a process."""

    def __init__(self) -> None:
        self._hidden: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def hide(self, *texts: str) -> None:
        """From now on these are written as `***`."""
        self._hidden.update(text for text in texts if len(text) >= MIN_HIDDEN_CHARS)
        # The longest first: one secret may be the beginning of another.
        ordered = sorted(self._hidden, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def clean(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(_MASK, text)
        return _CREDENTIAL.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    kept = match["bearer"] or match["user"] or match["query"] or ""
    return kept + _MASK


class JsonFormatter(logging.Formatter):
    """For machines."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_MESSAGE_CHARS],
        }
        line.update(_fields(record))
        if record.exc_info and record.exc_info[0] is not None:
            line["stack"] = "".join(traceback.format_exception(*record.exc_info))[-MAX_STACK_CHARS:]
        return self._redaction.clean(_as_json(line))


class TextFormatter(logging.Formatter):
    """For people at a terminal: the same, without the braces."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {field}={value}" for field, value in _fields(record).items())
        text = f"{_timestamp(record)[11:23]} {record.levelname.lower():7} {record.getMessage()}{fields}"
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return self._redaction.clean(text)


def set_up_logging(
    level: str, *, redaction: Redaction, stream: IO[str] | None = None, as_text: bool | None = None
) -> logging.Handler:
    """Write the log of this process to `stream` (stderr), as JSON, or as text at a terminal. Call it once."""
    stream = sys.stderr if stream is None else stream
    if as_text is None:
        as_text = stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter(redaction) if as_text else JsonFormatter(redaction))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The server's own lines say "127.0.0.1:5 - GET / 200": our counters say it better.
    logging.getLogger("uvicorn.access").disabled = True
    # A line for each push to a pool, with a URL that may hold a key.
    for chatty in ("uvicorn.error", "picows", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return handler


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Those of `FIELDS` that are known. The request is known from the context."""
    given = record.__dict__
    fields = {field: given[field] for field in FIELDS if given.get(field) is not None}
    request_id = current_request_id()
    if request_id and "request" not in fields:
        fields["request"] = request_id
    return fields


def _timestamp(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(record.msecs):03d}Z"


def _as_json(line: dict[str, Any]) -> str:
    try:
        return _encode(line).decode()
    except (
        UnicodeEncodeError,
        ValueError,
        TypeError,
    ):  # a lone surrogate, an integer beyond 64 bits
        plain = {key: str(value).encode("utf-8", "replace").decode() for key, value in line.items()}
        return _encode(plain).decode()
