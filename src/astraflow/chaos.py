"""Named points at which a test ends this process, as if the power had gone just there.

`ASTRA_CHAOS_POINT=after-commit:3` kills the process with SIGKILL when it passes the point for the third time;
`after-commit:3:block` blocks the thread there for ever instead, and with `fail` it fails there from then on. The points
`restoring` and `placing` are those of a shard: `placing/7:1:block` blocks before the first task of shard 7 is placed.
Without the variable there is nothing at these points but a call that does nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Final

from astraflow.core import errors

VARIABLE: Final = "ASTRA_CHAOS_POINT"
POINTS: Final = (
    "before-commit",
    "after-commit",
    "before-send",
    "after-send",
    "restoring",
    "placing",
    "package-ordered",
    "package-downloaded",
    "package-unpacked",
    "package-equipped",
    "package-probed",
    "package-placed",
    "package-installed",
    "package-taken-away",
    "package-removed",
)
ACTS: Final = ("", "block", "fail")


def reached_from(environ: Mapping[str, str]) -> Callable[[str], None]:
    """What to call at each point.

    Raises:
        Refused: the variable names no point.
    """
    wanted = environ.get(VARIABLE)
    if not wanted:
        return _pass_by
    point, times, act = [*wanted.split(":", 2), "", ""][:3]
    is_known = point.partition("/")[0] in POINTS and act in ACTS
    if not is_known or not (times or "1").isdecimal():
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"{VARIABLE} is POINT:TIMES, POINT:TIMES:block or POINT:TIMES:fail with one of "
            f"{', '.join(POINTS)}: {wanted}",
        )
    left = int(times or "1")

    def reached(passed: str) -> None:
        nonlocal left
        if passed == point:
            left -= 1
            if left == 0 and act == "block":
                threading.Event().wait()
            elif left <= 0 and act == "fail":
                raise RuntimeError(f"planted: {wanted}")
            elif left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _pass_by(point: str) -> None:
    pass
