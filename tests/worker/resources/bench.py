"""A registry on a clock that a test turns, and hosts that only remember what they were asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.resources import (
    Lessee,
    LocalResource,
    LocalResourceRegistry,
    Maker,
    ResourceLimits,
    Terms,
)

WORKER = "w-1"


class Clock:
    """Both clocks stand still until they are turned."""

    def __init__(self) -> None:
        self.s = 1_000_000.0

    def now(self) -> float:
        return self.s

    def wall_ms(self) -> int:
        return int(self.s * 1000)

    def turn(self, seconds: float) -> None:
        self.s += seconds


class FakeHolder:
    def __init__(self) -> None:
        self.is_ending = False
        self.kept: set[str] = set()
        self.asked: list[str] = []

    def keep(self, token: str) -> None:
        self.kept.add(token)

    def close_object(self, token: str) -> None:
        self.asked.append(token)

    def let_go(self, token: str) -> None:
        self.kept.discard(token)


def take_in(
    registry: LocalResourceRegistry, resource_id: str, path: Path, **how: Any
) -> LocalResource:
    """Register a file that is in the folder of the tests."""
    return registry.adopt(resource_id, registry.files.take(path), **how)


class Bench:
    """One worker's registry, and what it has told."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.folder = folder
        self.source = folder / "data"
        self.source.mkdir(exist_ok=True)
        self.clock = Clock()
        self.host = FakeHolder()
        self.events: list[business.ResourceEvent] = []
        self.lanes_told: list[int] = []
        self._limits = ResourceLimits(**limits)
        self._tokens = 0
        self.registry = self._open()

    def _open(self) -> LocalResourceRegistry:
        return LocalResourceRegistry(
            self.folder,
            self.source,
            worker_id=WORKER,
            clock=self.clock,
            limits=self._limits,
            tell=self._told,
        )

    def _told(self, event: business.ResourceEvent, lane: int) -> None:
        self.events.append(event)
        self.lanes_told.append(lane)

    def restart(self) -> None:
        """As after a crash: nothing but the disk is left."""
        self.registry.close()
        self.events.clear()
        self.lanes_told.clear()
        self.registry = self._open()

    def file(
        self, resource_id: str, content: bytes | str = b"x", by: Maker | None = None, **terms: Any
    ) -> LocalResource:
        path = self.source / f"file-{self._token()}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return take_in(self.registry, resource_id, path, maker=by or maker(), terms=Terms(**terms))

    def object(self, resource_id: str, by: Maker | None = None, **terms: Any) -> LocalResource:
        return self.registry.register(
            resource_id,
            "model",
            token=self._token(),
            holder=self.host,
            maker=by or maker(),
            shares=terms.pop("shares", None),
            terms=Terms(**terms),
        )

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:032x}"

    def end(self, *lessees: Lessee) -> None:
        for one in lessees or (lessee(),):
            self.registry.release_attempt(one)

    def states(self) -> list[tuple[str, str]]:
        return [(event.resource_id, event.state) for event in self.events]

    def files(self) -> list[Path]:
        """All files on disk that are not in the trash."""
        root = self.registry.files.root
        return [
            path
            for path in root.rglob("*")
            if path.is_file() and not path.is_relative_to(root / "trash")
        ]


def lessee(run: str = "run-1", task: str = "t-1", attempt: int = 1) -> Lessee:
    return Lessee(RunId(run), TaskId(task), attempt)


def maker(run: str = "run-1", task: str = "t-1", attempt: int = 1) -> Maker:
    return Maker(lessee(run, task, attempt), "node-1", business.PackageId("keeping", "1.0.0"))


def code_of(problem: errors.AstraflowError) -> str:
    return problem.code.code
