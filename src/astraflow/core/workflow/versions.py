"""Versions of packages: PEP 440, which calendar versions such as `2025.10.0` are too.

`2025.10` and `2025.10.0` are the same version. A final release is newer than its pre-releases.
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = (
    r"v?(?:(?P<epoch>[0-9]{1,9})!)?(?P<release>[0-9]{1,9}(?:\.[0-9]{1,9}){0,9})"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>[0-9]{0,9}))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>[0-9]{0,9}))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>[0-9]{0,9}))?"
    r"(?:\+(?P<local>[a-z0-9]{1,32}(?:[-_.][a-z0-9]{1,32}){0,9}))?"
)
_PATTERN: Final = re.compile(_VERSION, re.ASCII | re.IGNORECASE)
_MAX_CHARS: Final = 64
_PRE_RANK: Final = {"a": 0, "alpha": 0, "b": 1, "beta": 1}
_RC_RANK: Final = 2
_FINAL_RANK: Final = 3
_DEV_ONLY_RANK: Final = -1

_CLAUSE: Final = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*([0-9A-Za-z.!+_-]+?)(\.\*)?\s*", re.ASCII)

VersionKey = tuple[
    int, tuple[int, ...], tuple[int, int], int, tuple[int, int], tuple[tuple[int, int, str], ...]
]
"""Compares as PEP 440 orders versions."""


def parse_version(text: str) -> VersionKey | None:
    """The sort key of a version, or None when the text is not a version."""
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = -1 if match["post"] is None else int(match["post_n"] or 0)
    dev = (1, 0) if match["dev"] is None else (0, int(match["dev_n"] or 0))
    return (
        int(match["epoch"] or 0),
        tuple(release),
        _pre_key(match),
        post,
        dev,
        _local_key(match["local"]),
    )


def _pre_key(match: re.Match[str]) -> tuple[int, int]:
    if match["pre"] is not None:
        return (_PRE_RANK.get(match["pre"].lower(), _RC_RANK), int(match["pre_n"] or 0))
    # PEP 440: developmental releases of a final release come before its pre-releases.
    if match["dev"] is not None and match["post"] is None:
        return (_DEV_ONLY_RANK, 0)
    return (_FINAL_RANK, 0)


def _local_key(local: str | None) -> tuple[tuple[int, int, str], ...]:
    parts = re.split(r"[-_.]", local.lower()) if local else []
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)


def is_prerelease(key: VersionKey) -> bool:
    return key[2][0] != _FINAL_RANK or key[4][0] == 0


def is_specifier_set(text: str) -> bool:
    """Whether the text is a list of version clauses, such as `>=3.10,<3.12`."""
    for clause in text.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None or parse_version(match[2]) is None:
            return False
        if match[3] and match[1] not in ("==", "!="):
            return False
    return True
