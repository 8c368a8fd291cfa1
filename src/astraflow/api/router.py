"""The router: from a path to the methods that it takes, prepared once.

1. A path without parameters is found by one look-up; others are walked segment by segment.
2. A fixed segment wins over a parameter, also if it then leads nowhere: `/workflows/validate` is never a workflow.
3. Slashes at the end of a path, and several where one would do, change nothing.
4. The parameter of a deep path is all the rest of it, slashes included.
"""

from __future__ import annotations

import re
from typing import Final, Generic, TypeVar

Target = TypeVar("Target")
_SLASHES: Final = re.compile("//+")
Methods = dict[str, Target]
"""What is done at a path, by method."""


class _Node(Generic[Target]):
    __slots__ = ("fixed", "methods", "names", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[Target]] = {}
        self.parameter: _Node[Target] | None = None
        self.methods: Methods[Target] = {}
        self.names: dict[str, tuple[str, ...]] = {}
        """By method: the names of the parameters on the way here."""


class Router(Generic[Target]):
    """Finds the target of a path and a method."""

    def __init__(self) -> None:
        self._exact: dict[str, Methods[Target]] = {}
        self._root: _Node[Target] = _Node()
        self._deep: dict[str, Methods[Target]] = {}

    def add(self, method: str, template: str, target: Target, *, is_deep: bool = False) -> None:
        """`template` is a path with parameters, as `/api/v1/runs/{runId}`."""
        if is_deep:
            prefix = template[: template.index("{")]
            self._deep.setdefault(prefix, {})[method] = target
        elif "{" not in template:
            self._exact.setdefault(template, {})[method] = target
            self._put(method, template, target)
        else:
            self._put(method, template, target)

    def _put(self, method: str, template: str, target: Target) -> None:
        node, names = self._root, []
        for segment in template.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.fixed.setdefault(segment, _Node())
        node.methods[method] = target
        node.names[method] = tuple(names)

    def methods(self, path: str) -> Methods[Target]:
        """What can be done at a path; nothing if it is no path of ours."""
        return self._find(path)[0]

    def find(self, path: str, method: str) -> tuple[Target, dict[str, str]] | None:
        """The target, and the parameters in the path; None if there is none."""
        exact = self._exact.get(path)
        if exact is not None and method in exact:
            return exact[method], {}
        methods, names, values = self._find(path)
        if method not in methods:
            return None
        return methods[method], dict(zip(names.get(method, ()), values, strict=False))

    def _find(self, path: str) -> tuple[Methods[Target], dict[str, tuple[str, ...]], list[str]]:
        plain = _SLASHES.sub("/", path).rstrip("/") or "/"
        for prefix, methods in self._deep.items():
            if plain.startswith(prefix):
                return methods, {}, []
        node: _Node[Target] | None = self._root
        values: list[str] = []
        for segment in plain.split("/")[1:]:
            assert node is not None
            fixed = node.fixed.get(segment)
            if fixed is None and node.parameter is not None and segment:
                values.append(segment)
                fixed = node.parameter
            if fixed is None:
                return {}, {}, []
            node = fixed
        assert node is not None
        return node.methods, node.names, values
