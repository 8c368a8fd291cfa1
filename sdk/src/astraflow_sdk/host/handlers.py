"""Handlers: the functions that run node types, how they are called, and how they are found.

Rule 1: a handler gets its parameters by name. `ctx`, `context` or whatever is annotated `Context` gets the context.
Rule 2: a parameter that is missing and has no default is a `ConfigurationError` that names it; those that the function
        does not name are left out, unless it takes `**kwargs`.
        One whose hint is an Enum, a Path or a dataclass gets one (`values`).
Rule 3: `async_run` or `run` of an adapter runs what no method of its own is named for, and gets the context alone.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.errors import ConfigurationError
from astraflow_sdk.nodes import info_of

_ADAPTER_METHODS = ("async_run", "run")
_CONTEXT_NAMES = frozenset({"ctx", "context"})
_CODE_FOLDER = "adapters"
"""Modules lie beside the manifest, or in this folder (seed 002 §3)."""
_NO_CODE = frozenset({"conftest", "setup", "tests"})
"""Beside the code of a package in its author's folder, and no part of it."""
_WORD = re.compile(r"\w+")
_PLAIN_WORDS = frozenset(
    {
        *("str", "int", "float", "bool", "None", "NoneType", "dict", "list", "object"),
        *("Any", "Optional", "Union", "Mapping", "Dict", "List", "Context", "sdk", "astraflow_sdk"),
    }
)
"""Of hints that promise nothing that JSON does not have."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Handler:
    """A function that runs a node type."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        info = info_of(function)
        self.is_async = inspect.iscoroutinefunction(function)
        self.is_inline = info is not None and info.inline and not self.is_async
        self._context_name: str | None = None
        self._takes_all = False
        self._needed: set[str] = set()
        names: list[str] = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._takes_all = True
            elif is_context(name, parameter):
                self._context_name = name
            elif parameter.kind in _NAMED:
                names.append(name)
                if parameter.default is inspect.Parameter.empty:
                    self._needed.add(name)
        is_adapter = getattr(function, "__name__", "") in _ADAPTER_METHODS
        if is_adapter and self._context_name is None and len(names) == 1:
            self._context_name = names.pop()
            self._needed.clear()
        self._names = tuple(names)
        self._readers = _readers_of(function)

    def call(self, ctx: Context) -> Any:
        """Call the function: its value, or the coroutine of it.

        Raises:
            ConfigurationError: a parameter is missing.
        """
        given = ctx.parameters
        name = self._context_name
        if not self._names and not self._takes_all:
            return self.function() if name is None else self.function(**{name: ctx})
        missing = self._needed - given.keys()
        if missing:
            listed = ", ".join(sorted(missing))
            raise ConfigurationError(f"{ctx.node_type} needs a value for: {listed}")
        names = given if self._takes_all else self._names
        passed = {key: given[key] for key in names if key in given}
        for key, read in self._readers.items():
            if key in passed:
                passed[key] = read(passed[key])
        if name is not None:
            passed[name] = ctx
        return self.function(**passed)


def _readers_of(function: Callable[..., Any]) -> Mapping[str, Callable[[Any], Any]]:
    """Most handlers take what JSON has: for them nothing is imported, because hosts must start quickly."""
    hints = getattr(function, "__annotations__", None) or {}
    taken = [hint for name, hint in hints.items() if name != "return"]
    words = {word for hint in taken for word in _WORD.findall(_text_of(hint))}
    if words <= _PLAIN_WORDS:
        return {}
    from astraflow_sdk.values import readers_of

    return readers_of(function)


def _text_of(hint: Any) -> str:
    if isinstance(hint, str):
        return hint
    is_class = isinstance(hint, type) and not hasattr(hint, "__args__")
    return hint.__name__ if is_class else str(hint).replace("typing.", "")


def is_context(name: str, parameter: inspect.Parameter) -> bool:
    """Whether a parameter gets the context instead of a value."""
    annotation = parameter.annotation
    if annotation is Context or (isinstance(annotation, str) and annotation.endswith("Context")):
        return True
    return name in _CONTEXT_NAMES


def read_manifest(folder: str) -> dict[str, Any]:
    """Raises OSError or ValueError when there is none that can be read."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest: dict[str, Any] = json.load(file)
    return manifest


def load_handlers(folder: str, manifest: Mapping[str, Any] | None = None) -> dict[str, Handler]:
    """Import a package's code and find what runs each node type of its manifest.

    Raises:
        ConfigurationError: the manifest and the code do not fit together.
    """
    use_folder(folder)
    manifest = read_manifest(folder) if manifest is None else manifest
    adapters = manifest.get("adapters") or []
    objects: dict[str, Any] = {}
    marked: dict[str, Callable[..., Any]] | None = None
    found: dict[str, Handler] = {}
    for node in manifest.get("nodes") or []:
        if node.get("executedBy", "worker") != "worker":
            continue
        function = _named_handler(node, adapters, objects)
        if function is None:
            marked = _by_type(folder) if marked is None else marked
            function = marked.get(node["type"])
        if function is None:
            raise ConfigurationError(
                f"the package has no handler for the node type: {node['type']}"
            )
        found[node["type"]] = Handler(function)
    return found


def _named_handler(
    node: Mapping[str, Any], adapters: list[dict[str, Any]], objects: dict[str, Any]
) -> Callable[..., Any] | None:
    """The function that the manifest names: `module:function`, or a method of the runtime's adapter."""
    for runtime, settings in (node.get("runtimes") or {}).items():
        name = (settings or {}).get("handler")
        if name and ":" in name:
            return _function(_resolve(name), name)
        for adapter in adapters:
            if adapter["runtime"] != runtime or not _is_capable(adapter, node["type"]):
                continue
            entrypoint = adapter["entrypoint"]
            if entrypoint not in objects:
                objects[entrypoint] = _adapter(entrypoint)
            found = _method(objects[entrypoint], name)
            if name or found is not None:
                return _function(found, f"{entrypoint}.{name or _ADAPTER_METHODS[0]}")
    return None


def _is_capable(adapter: Mapping[str, Any], node_type: str) -> bool:
    return node_type in adapter.get("capabilities", [node_type])


def _method(adapter: Any, name: str | None) -> Any:
    """The method of that name, else the one that runs everything."""
    for candidate in (name, *_ADAPTER_METHODS):
        found = getattr(adapter, candidate, None) if candidate else None
        if found is not None:
            return found
    return None


def _adapter(entrypoint: str) -> Any:
    target = _resolve(entrypoint)
    return target() if inspect.isclass(target) else target


def _resolve(name: str) -> Any:
    module, _, path = name.partition(":")
    target: Any = importlib.import_module(module)
    for part in filter(None, path.split(".")):
        target = getattr(target, part, None)
    return target


def _function(target: object, name: str) -> Callable[..., Any]:
    if not callable(target):
        raise ConfigurationError(f"the manifest names a handler that is not there: {name}")
    return target


def use_folder(folder: str) -> list[str]:
    """Let the modules of a package be imported; the folders that they lie in."""
    folders = [folder]
    inner = os.path.join(folder, _CODE_FOLDER)
    if os.path.isdir(inner) and not os.path.exists(os.path.join(inner, "__init__.py")):
        folders.append(inner)
    for place in reversed(folders):
        if place not in sys.path:
            sys.path.insert(0, place)
    return folders


def _by_type(folder: str) -> dict[str, Callable[..., Any]]:
    found = ((info_of(one), one) for _, one in marked_functions(folder))
    return {info.type: one for info, one in found if info is not None}


def marked_functions(folder: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions with `@node` in the modules of a package, each once, with `module:name`."""
    modules = list(_module_names(use_folder(folder)))
    seen: set[int] = set()
    for module in modules:
        for name, value in list(vars(importlib.import_module(module)).items()):
            if info_of(value) is None or id(value) in seen:
                continue
            home = getattr(value, "__module__", module)
            if home != module and home in modules and _has(home, value):
                continue  # imported from there, and found there
            seen.add(id(value))
            yield f"{module}:{name}", value


def _has(module: str, function: Callable[..., Any]) -> bool:
    return getattr(importlib.import_module(module), function.__name__, None) is function


def _module_names(folders: list[str]) -> Iterator[str]:
    for folder in folders:
        for module in pkgutil.iter_modules([folder]):
            if module.name in _NO_CODE or module.name.startswith("test_"):
                continue
            yield module.name
            if module.ispkg:
                inner = os.path.join(folder, module.name)
                parts = pkgutil.walk_packages([inner], f"{module.name}.")
                yield from (one.name for one in parts if not one.name.endswith(".__main__"))
