"""The one error of wrong settings."""

from __future__ import annotations

from collections.abc import Sequence

from astraflow.core import errors


class ConfigError(errors.Refused):
    """The settings cannot be used; `problems` says all that is wrong. Nothing was started."""

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(errors.CONFIG_INVALID, f"{count} in the settings{lines}")
        self.problems = tuple(problems)
