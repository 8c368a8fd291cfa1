"""A table in one test: every row is tried, and all that fail are reported."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["each_row"]

Test = Callable[..., None]


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, for data that needs no test of its own for each row."""
    wanted = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    table = [row if len(wanted) > 1 else (row,) for row in rows]
    assert table, "a table without a row tests nothing"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in wanted]

        @functools.wraps(test)
        def walk(*self: object, **others: object) -> None:
            failed: list[BaseException] = []
            for row in table:
                try:
                    test(*self, **others, **dict(zip(wanted, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"row: {row!r:.500}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows failed", failed)

        walk.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return walk

    return decorate
