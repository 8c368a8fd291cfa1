"""Where a worker's scheduler answers HTTP, and where the links that it hands out lead."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit, urlunsplit

from astraflow import errors

__all__ = ["absolute_url", "http_origin", "shown_url"]


def http_origin(ws_url: str) -> str:
    """The scheduler's HTTP address, from the one of its socket."""
    parts = urlsplit(ws_url)
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    return urlunsplit((scheme, parts.netloc.rpartition("@")[2], "", "", ""))


def absolute_url(url: str, origin: str, refusal: errors.Code) -> str:
    """Where a link leads; one without a host leads to the scheduler.

    Raises:
        Refused: with this code, when it is no address of http or https.
    """
    try:
        whole = urljoin(f"{origin}/", url)
        parts = urlsplit(whole)
        is_right = parts.scheme in ("http", "https") and parts.username is None
        if is_right and parts.hostname and parts.port != 0 and whole.isprintable():
            return whole
    except ValueError:
        pass  # such as half an IPv6 address, or a port that is none
    raise errors.Refused(refusal, f"not an address of http or https: {shown_url(url)}")


def shown_url(url: str) -> str:
    """Without its query, which may be what lets one read it."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, netloc, parts.path, "", ""))[:500]
    except ValueError:
        return "(unreadable)"
