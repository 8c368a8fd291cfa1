"""What a package needs of Python: the version, and how its dependencies are named.

`core.workflow.manifest_rules` wants every dependency pinned. Where the operator allows it, a dependency may leave its
version open; options, URLs and paths stay refused, because they lead past the configured index.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from astraflow.core import errors
from astraflow.core.workflow.manifest import Manifest
from astraflow.core.workflow.problems import DefinitionProblem
from astraflow.core.workflow.versions import is_specifier_set, parse_version

_NAME: Final = re.compile(
    r"\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._, -]+\])?\s*", re.ASCII
)
_CLAUSE: Final = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*([0-9A-Za-z.!+_-]+?)(\.\*)?\s*", re.ASCII)
_RELEASE: Final = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+)*")
_DEPENDENCIES: Final = "/python/dependencies/"
_ORDER: Final[dict[str, Callable[[object, object], bool]]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def check_python(manifest: Manifest, version: str) -> None:
    """Whether a Python of this version (`3.11.7`) may run the package.

    Raises:
        Refused: it asks for another.
    """
    python = manifest.body.python
    if python is None or python.requires is None or is_met(python.requires, version):
        return
    raise errors.Refused(
        errors.PKG_INCOMPATIBLE,
        f"{manifest.name} {manifest.version} needs Python {python.requires}, here is: {version}",
        pointer="/python/requires",
    )


def is_met(requires: str, version: str) -> bool:
    """Whether a final release keeps all clauses (PEP 440) of a specifier set."""
    return all(_keeps(clause, version) for clause in requires.split(","))


def _keeps(clause: str, version: str) -> bool:
    match = _CLAUSE.fullmatch(clause)
    assert match is not None, "the manifest's rules have checked it"
    operator, wanted, has_star = match[1], match[2], bool(match[3])
    if has_star:
        is_inside = _is_below(version, _release(wanted))
        return is_inside if operator == "==" else not is_inside
    key, limit = parse_version(version), parse_version(wanted)
    assert key is not None
    assert limit is not None
    if operator == "~=":
        return key >= limit and _is_below(version, _release(wanted)[:-1])
    if operator == "<" and _release(version) == _release(wanted):
        return False  # PEP 440: `<3.12` leaves the pre-releases of 3.12 out, too
    return _ORDER[operator](key, limit)


def _release(version: str) -> list[int]:
    match = _RELEASE.match(version.rpartition("!")[2])
    assert match is not None, "the manifest's rules have checked it"
    return [int(part) for part in match[0].lstrip("vV").split(".")]


def _is_below(version: str, prefix: list[int]) -> bool:
    release = _release(version)
    padded = release + [0] * (len(prefix) - len(release))
    return padded[: len(prefix)] == prefix


def without_unpinned(
    problems: list[DefinitionProblem], dependencies: list[str]
) -> list[DefinitionProblem]:
    """The problems that are left when dependencies may leave their version open."""
    left: list[DefinitionProblem] = []
    for problem in problems:
        place = problem.pointer.removeprefix(_DEPENDENCIES)
        is_about_one = problem.pointer.startswith(_DEPENDENCIES) and place.isdecimal()
        if not (is_about_one and _is_open(dependencies[int(place)])):
            left.append(problem)
    return left


def _is_open(text: str) -> bool:
    """`name[extras]`, clauses or none, a marker or none."""
    requirement, _, marker = text.partition(";")
    name = _NAME.match(requirement)
    if name is None or any(sign in marker for sign in ("@", ";", "--")):
        return False
    clauses = requirement[name.end() :].strip()
    return not clauses or is_specifier_set(clauses)


def has_hashes(dependency: str) -> bool:
    return "--hash=" in dependency
