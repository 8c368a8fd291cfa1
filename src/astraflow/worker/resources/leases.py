"""Resource leases, counted per registration (its token) and per attempt."""

from __future__ import annotations

from collections.abc import Collection

from astraflow.worker.resources.resource import Lessee


class Leases:
    """All leases of a worker. They end with the process: attempts do too."""

    def __init__(self) -> None:
        self._by_token: dict[str, dict[Lessee, int]] = {}
        self._by_lessee: dict[Lessee, set[str]] = {}

    def count(self, token: str) -> int:
        return sum(self._by_token.get(token, {}).values())

    def lessees(self, token: str) -> Collection[Lessee]:
        return self._by_token.get(token, {}).keys()

    def take(self, token: str, lessee: Lessee) -> None:
        held = self._by_token.setdefault(token, {})
        held[lessee] = held.get(lessee, 0) + 1
        self._by_lessee.setdefault(lessee, set()).add(token)

    def give(self, token: str, lessee: Lessee) -> bool:
        """Give one back; False if there is none."""
        held = self._by_token.get(token, {})
        if lessee not in held:
            return False
        held[lessee] -= 1
        if not held[lessee]:
            self._end(token, lessee)
        return True

    def give_all(self, lessee: Lessee) -> list[str]:
        """Give all back that an attempt has; the tokens of what it had leased."""
        tokens = sorted(self._by_lessee.get(lessee, ()))
        for token in tokens:
            self._end(token, lessee)
        return tokens

    def drop(self, token: str) -> None:
        """What was leased is gone."""
        for lessee in list(self._by_token.get(token, ())):
            self._end(token, lessee)

    def check(self, tokens: Collection[str]) -> None:
        """Assert that both views agree and that only these are leased."""
        assert all(count > 0 for held in self._by_token.values() for count in held.values())
        assert self._by_token.keys() <= set(tokens)
        there = {(one, token) for token, held in self._by_token.items() for one in held}
        back = {(one, token) for one, held in self._by_lessee.items() for token in held}
        assert there == back

    def _end(self, token: str, lessee: Lessee) -> None:
        del self._by_token[token][lessee]
        if not self._by_token[token]:
            del self._by_token[token]
        self._by_lessee[lessee].discard(token)
        if not self._by_lessee[lessee]:
            del self._by_lessee[lessee]
