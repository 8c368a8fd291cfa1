"""How many tasks wait, by tenant and package. Counted as tasks come and go: reading it looks at no task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from astraflow.core.dispatch.demand import Demand

KEPT: Final = 1_000
"""From so many on, what nobody waits for is forgotten when another package is first waited for."""

Bundle = tuple[str, str]
"""A tenant and a package, in any version: what a pool of workers is started for."""


class Depths:
    """A package that nobody waits for any more stays at 0: who scales a pool by it must see it fall."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Bundle, int] = {}

    def add(self, demand: Demand, count: int = 1) -> None:
        """So many more tasks of this demand wait, or fewer."""
        bundle = (demand.tenant, demand.package_name)
        known = self._counts.get(bundle)
        if known is None:
            self._make_room()
            known = 0
        self._counts[bundle] = known + count

    def _make_room(self) -> None:
        if len(self._counts) >= KEPT:
            self._counts = {bundle: count for bundle, count in self._counts.items() if count}

    def by_bundle(self) -> Mapping[Bundle, int]:
        return self._counts

    def check(self, waiting: Iterable[tuple[Demand, int]]) -> None:
        """Assert that it has counted just these."""
        counted: dict[Bundle, int] = {}
        for demand, count in waiting:
            bundle = (demand.tenant, demand.package_name)
            counted[bundle] = counted.get(bundle, 0) + count
        assert counted == {bundle: count for bundle, count in self._counts.items() if count}
