"""Install intents: which version of a package a worker is to have, or to remove, and how far it has come.

Rule 1: an intent stays until its worker confirms it, over restarts of both (PROTOCOL §5.7).
Rule 2: an install that failed for a cause that may pass is retried, `INSTALL_TRIES` times in all; then it rests until
        somebody requests it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows

InstallKey = tuple[str, str, str, str]
"""Tenant, worker id, package name, version."""
InstallTarget = Literal["installed", "removed"]
InstallState = Literal["wanted", "downloading", "installing", "installed", "failed", "removed"]
OPEN: Final = ("wanted", "downloading", "installing")
ENDED: Final = ("installed", "failed", "removed")

INSTALL_TRIES: Final = 3
"""A cut network passes; an archive that three tries could not install will not be installed by the fourth."""


class InstallProblem(msgspec.Struct, frozen=True):
    """Why the last try failed."""

    code: str
    message: str = ""


class InstallIntent(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a package on one worker. `why`: `command`, `demand`, or the id of a rollout."""

    tenant: str
    worker_id: str
    name: str
    version: str
    target: InstallTarget
    state: InstallState = "wanted"
    why: str = ""
    tries: int = 0
    error: InstallProblem | None = None
    progress: float | None = None
    updated_at: int

    @property
    def key(self) -> InstallKey:
        return self.tenant, self.worker_id, self.name, self.version

    @property
    def is_open(self) -> bool:
        """Whether its worker has not confirmed it, and may still."""
        return self.state in OPEN

    @property
    def is_installing(self) -> bool:
        return self.target == "installed" and self.is_open


# -- facts ---------------------------------------------------------------------------------------


class InstallFact(FleetFact, frozen=True):
    """The base of all facts about one intent."""

    worker_id: str
    name: str
    version: str

    @property
    def key(self) -> InstallKey:
        return self.tenant, self.worker_id, self.name, self.version


class InstallRequested(InstallFact, frozen=True):
    """A worker is to install a version, or to remove it."""

    target: InstallTarget
    why: str


class InstallAdvanced(InstallFact, frozen=True):
    """The worker downloads or installs."""

    state: Literal["downloading", "installing"]
    progress: float | None = None


class InstallConfirmed(InstallFact, frozen=True):
    """The worker has the version, or has removed it, as intended."""


class InstallFailed(InstallFact, frozen=True):
    """A try failed. `is_final`: no other try follows."""

    error: InstallProblem
    is_final: bool


class InstallReopened(InstallFact, frozen=True):
    """The worker no longer is as intended: it is told again."""


class InstallWithdrawn(InstallFact, frozen=True):
    """The worker removed an old version by itself: it was installed, and need not be installed for ever."""


class InstallForgotten(InstallFact, frozen=True):
    """Its worker is not expected back."""


class PackageReported(InstallFact, frozen=True):
    """A worker tells of one of its packages: for those who watch, whether there is an intent or not."""

    status: str
    progress: float | None = None
    details: bytes = b"{}"


# -- transitions -----------------------------------------------------------------------------------


def _requested(_: InstallIntent | None, fact: InstallRequested) -> InstallIntent:
    return InstallIntent(
        tenant=fact.tenant,
        worker_id=fact.worker_id,
        name=fact.name,
        version=fact.version,
        target=fact.target,
        why=fact.why,
        updated_at=fact.at,
    )


def _advanced(intent: InstallIntent, fact: InstallAdvanced) -> InstallIntent:
    return msgspec.structs.replace(
        intent, state=fact.state, progress=fact.progress, updated_at=fact.at
    )


def _confirmed(intent: InstallIntent, fact: InstallConfirmed) -> InstallIntent:
    return msgspec.structs.replace(
        intent, state=intent.target, error=None, progress=None, updated_at=fact.at
    )


def _failed(intent: InstallIntent, fact: InstallFailed) -> InstallIntent:
    return msgspec.structs.replace(
        intent,
        state="failed" if fact.is_final else "wanted",
        tries=intent.tries + 1,
        error=fact.error,
        progress=None,
        updated_at=fact.at,
    )


def _reopened(intent: InstallIntent, fact: InstallReopened) -> InstallIntent:
    return msgspec.structs.replace(intent, state="wanted", progress=None, updated_at=fact.at)


def _withdrawn(intent: InstallIntent, fact: InstallWithdrawn) -> InstallIntent:
    return msgspec.structs.replace(
        intent, target="removed", state="removed", error=None, progress=None, updated_at=fact.at
    )


def _forgotten(_: InstallIntent, __: InstallForgotten) -> None:
    return None


TRANSITIONS: Final[Table] = {
    **rows((ABSENT, *OPEN, *ENDED), InstallRequested, _requested, "wanted"),
    **rows(OPEN, InstallAdvanced, _advanced, "downloading", "installing"),
    **rows((*OPEN, *ENDED), InstallConfirmed, _confirmed, "installed", "removed"),
    **rows((*OPEN, *ENDED), InstallFailed, _failed, "wanted", "failed"),
    **rows((*OPEN, "installed", "removed"), InstallReopened, _reopened, "wanted"),
    **rows(("installed",), InstallWithdrawn, _withdrawn, "removed"),
    **rows((*OPEN, *ENDED), InstallForgotten, _forgotten, ABSENT),
}


def fold(intent: InstallIntent | None, fact: InstallFact) -> InstallIntent | None:
    """The intent after a fact; None: there is none. Raises: NoTransition."""
    state = ABSENT if intent is None else intent.state
    move = find_move(TRANSITIONS, state, fact)
    after: InstallIntent | None = move.apply(intent, fact)
    assert (ABSENT if after is None else after.state) in move.to
    return after


# -- the index -------------------------------------------------------------------------------------


class InstallTable:
    """All intents, by worker."""

    def __init__(self) -> None:
        self._by_worker: dict[tuple[str, str], dict[tuple[str, str], InstallIntent]] = {}

    def __iter__(self) -> Iterator[InstallIntent]:
        return (intent for group in self._by_worker.values() for intent in group.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_worker.values()))

    def apply(self, fact: InstallFact) -> InstallIntent | None:
        """Fold a fact; returns the intent after it."""
        after = fold(self.find(fact.key), fact)
        if after is not None:
            self.put(after)
            return after
        group = self._by_worker[fact.tenant, fact.worker_id]
        del group[fact.name, fact.version]
        if not group:
            del self._by_worker[fact.tenant, fact.worker_id]
        return None

    def put(self, intent: InstallIntent) -> None:
        group = self._by_worker.setdefault((intent.tenant, intent.worker_id), {})
        group[intent.name, intent.version] = intent

    def find(self, key: InstallKey) -> InstallIntent | None:
        tenant, worker_id, name, version = key
        return self._by_worker.get((tenant, worker_id), {}).get((name, version))

    def of_worker(self, tenant: str, worker_id: str) -> list[InstallIntent]:
        return list(self._by_worker.get((tenant, worker_id), {}).values())
