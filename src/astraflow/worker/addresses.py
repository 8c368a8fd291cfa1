"""The addresses of a worker's schedulers, and the URLs that they hand out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urljoin, urlsplit, urlunsplit

from astraflow.core import errors

Origin = Callable[[], str]
"""Where the scheduler answers HTTP that the worker is connected to now."""


def _none() -> tuple[str, ...]:
    """There are no others."""
    return ()


class Schedulers:
    """The addresses that a worker may connect to. Another is tried first after each that failed or was lost."""

    def __init__(self, urls: Sequence[str], others: Callable[[], tuple[str, ...]] = _none) -> None:
        """`others` are tried after these: any scheduler knows where a lane is served."""
        assert urls or others(), "a worker has a scheduler"
        self._urls = tuple(urls)
        self._others = others
        self._first = 0
        self._connected = self.in_turn()[0]

    @property
    def has_several(self) -> bool:
        return len(self.in_turn()) > 1

    def replace(self, urls: Sequence[str]) -> None:
        """They are elsewhere from now on."""
        if self._urls != tuple(urls):
            self._urls, self._first = tuple(urls), 0

    def in_turn(self) -> tuple[str, ...]:
        """All of them, in the order in which they are to be tried."""
        turned = self._urls[self._first :] + self._urls[: self._first]
        return tuple(dict.fromkeys((*turned, *self._others())))

    def known(self) -> tuple[str, ...]:
        """The one that the worker has reached last, and all others."""
        return tuple(dict.fromkeys((self._connected, *self.in_turn())))

    def connected(self, url: str) -> None:
        """It may be one that is not in the list: where a scheduler has sent us."""
        self._connected = url

    def lost(self, url: str) -> None:
        """It did not answer, or does not any more."""
        if url in self._urls:
            self._first = (self._urls.index(url) + 1) % len(self._urls)

    def lost_connection(self) -> None:
        self.lost(self._connected)

    def origin(self) -> str:
        return http_origin(self._connected)


def http_origin(ws_url: str) -> str:
    """The scheduler's HTTP address, from the one of its socket."""
    parts = urlsplit(ws_url)
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    return urlunsplit((scheme, parts.netloc.rpartition("@")[2], "", "", ""))


def absolute_url(url: str, origin: Origin, refusal: errors.Code) -> str:
    """Where a link leads; one without a host leads to the scheduler.

    Raises:
        Refused: with this code, when it is no address of http or https.
    """
    try:
        whole = urljoin(f"{origin()}/", url)
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
