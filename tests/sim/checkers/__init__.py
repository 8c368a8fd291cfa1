"""The checkers: what must hold in every world, each in a file of its own (docs/rules.md)."""

from __future__ import annotations

from tests.sim.checkers.all import Checkers

__all__ = ["Checkers"]
