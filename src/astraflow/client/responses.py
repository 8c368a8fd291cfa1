"""What a response means: success, or one of our errors with what the server said."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from astraflow.core import errors

_BY_STATUS: Final = {
    401: errors.AUTH_INVALID_TOKEN,
    403: errors.AUTH_FORBIDDEN,
    404: errors.REQUEST_NO_ROUTE,
    405: errors.REQUEST_METHOD,
    413: errors.REQUEST_TOO_LARGE,
    415: errors.REQUEST_MEDIA_TYPE,
    429: errors.OVERLOADED,
    503: errors.OVERLOADED,
}
_KINDS: Final[dict[int, type[errors.AstraflowError]]] = {
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Conflict,
    429: errors.Unavailable,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
    507: errors.Unavailable,
}


def raise_problem(status: int, body: bytes) -> None:
    """Raise the error of a response, if it is one."""
    if status < 400:
        return
    problem = _decode(body)
    said = problem.get("code")
    code = errors.CATALOGUE.get(said) if isinstance(said, str) else None
    code = code or _BY_STATUS.get(status) or (errors.INTERNAL if status >= 500 else None)
    kind = _KINDS.get(status, errors.AstraflowError if status >= 500 else errors.Refused)
    message = str(problem.get("detail") or f"the server responded with status {status}")
    raise kind(code or errors.REQUEST_INVALID, message, detail=problem)


def unreachable(url: str, why: str) -> errors.Unavailable:
    return errors.Unavailable(errors.SERVER_UNREACHABLE, f"cannot connect to {url}: {why}")


def no_response(url: str, why: str) -> errors.Unavailable:
    """It was sent; `detail["sent"]` says so to a caller that can send it again."""
    message = f"no response from {url}, so it is unknown whether the request arrived: {why}"
    return errors.Unavailable(errors.SERVER_UNREACHABLE, message, detail={"sent": True})


def foreign(url: str) -> errors.Unavailable:
    return errors.Unavailable(
        errors.SERVER_FOREIGN, f"the server there is not a scheduler of AstraFlow: {url}"
    )


def _decode(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
