"""Reports about packages to the scheduler: `biz.pkg.event` and `biz.pkg.catalog`."""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import Wire
from astraflow.worker.packages.index import Installed

PROGRESS_S: Final = 0.5
"""Between two words about one step: a person watches, not a machine."""
MESSAGE_CHARS: Final = 4_000

Key = tuple[str, str]


class Tell(Protocol):
    def __call__(
        self, key: str, frame_type: str, payload: Wire, corr: str | None = None
    ) -> None: ...


class PackageNotices:
    """Reports the state of each package version; the newest report replaces older ones."""

    def __init__(self, tell: Tell, clock: Clock) -> None:
        self._tell = tell
        self._clock = clock
        self._told: tuple[Key, str, float] | None = None

    def said(
        self, key: Key, status: Literal["installed", "removed"], **details: str | None
    ) -> None:
        self._event(key, status, None, {k: v for k, v in details.items() if v is not None})

    def failed(
        self, key: Key, code: errors.Code, message: str, step: str, pointer: str | None
    ) -> None:
        details = {"code": code.code, "message": message[:MESSAGE_CHARS], "step": step}
        if pointer is not None:
            details["pointer"] = pointer
        self._event(key, "failed", None, details)

    def progress(self, key: Key, step: str, part: float | None) -> None:
        """A step has begun (`part` is None), or has come so far. Not every word is told."""
        now = self._clock.now()
        if self._told is not None and part is not None:
            told_key, told_step, told_at = self._told
            if (told_key, told_step) == (key, step) and now < told_at + PROGRESS_S:
                return
        self._told = (key, step, now)
        if step == "download":
            self._event(key, "downloading", part or 0.0, {})
        else:
            self._event(key, "installing", part, {"step": step})

    def catalog(self, installed: Installed, manifest: bytes) -> None:
        """The manifest, for a scheduler that has never seen it."""
        payload = business.PkgCatalog(
            installed.name, installed.version, installed.manifest_sha256, msgspec.Raw(manifest)
        )
        key = f"catalog/{installed.name}/{installed.version}"
        self._tell(key, business.PKG_CATALOG, payload)

    def _event(
        self,
        key: Key,
        status: Literal["downloading", "installing", "installed", "failed", "removed"],
        progress: float | None,
        details: dict[str, Any],
    ) -> None:
        raw = msgspec.Raw(msgspec.json.encode(details))
        payload = business.PkgEvent(*key, status, progress, raw)
        self._tell(f"pkg/{key[0]}/{key[1]}", business.PKG_EVENT, payload)
