"""The ports of a node, compiled: what an edge into or out of each of them means.

Rules (WORKFLOWS "Edges and ports"):
1. Every node has the control ports `trigger` (in) and `done` (out), declared or not: "order only,
   any number of edges, nothing written, `done` reads true".
2. Every node has the output `error`, unless it declares a port of that name: an edge from it is
   followed when the node fails, and reads the error.
3. Any other port is a data port. An input writes below `parameters`, an output reads at or below
   `results`; without a binding it is the parameter or result of the port's own name.
4. An input takes one edge, or with `multiple` any number, whose values become a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from astraflow.core.errors import (
    WORKFLOW_BAD_PATH,
    WORKFLOW_DUPLICATE_ID,
    WORKFLOW_INVALID,
)
from astraflow.core.workflow.bindings import BadPath, Path, compile_path
from astraflow.core.workflow.limits import MAX_KEY_CHARS, MAX_LABEL_CHARS, MAX_LIST_ITEMS, MAX_PORTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from astraflow.core.workflow.definition import Binding, PortDefinition, Ui, Widget
    from astraflow.core.workflow.problems import Problems

Kind = Literal["data", "control", "error"]
Side = Literal["inputPorts", "outputPorts"]

_ROOTS: Final = {"inputPorts": "parameters", "outputPorts": "results"}
_MODES: Final = {"inputPorts": "write", "outputPorts": "read"}
_WIDGET_ROOTS: Final = ("parameters", "results")


class PortSpec(Struct, frozen=True, gc=False):
    key: str
    kind: Kind
    path: Path = ()
    """Below `parameters` or `results`; empty for control and for the whole."""
    multiple: bool = False
    unwrap: str | None = None
    case: str | None = None
    """Of a node that chooses: the case whose edges this port is for."""
    is_collected: bool = False
    """Of a map: it reads what was collected, not each of the results."""


TRIGGER: Final = PortSpec("trigger", "control")
DONE: Final = PortSpec("done", "control")
ERROR: Final = PortSpec("error", "error")


class Ports(Struct, frozen=True, gc=False):
    """Both sides of a node; a side is None where the document does not declare it."""

    inputs: Mapping[str, PortSpec] | None
    outputs: Mapping[str, PortSpec] | None


NO_PORTS: Final = Ports(None, None)


class PortCompiler:
    """Compiles ports and reports what is wrong with them.

    The nodes of a document have few different ports between them, so what was found sound once is
    not looked at again.
    """

    __slots__ = ("_paths", "_problems", "_sound", "_sound_widgets")

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._paths: dict[str, Path | BadPath] = {}
        self._sound: dict[Side, dict[PortDefinition, PortSpec]] = {
            "inputPorts": {},
            "outputPorts": {},
        }
        self._sound_widgets: set[str] = set()

    def compile(self, ui: Ui, pointer: str) -> Ports:
        inputs = outputs = None
        if ui.input_ports is not None:
            inputs = self._side(ui.input_ports, "inputPorts", pointer)
            inputs["trigger"] = TRIGGER
        if ui.output_ports is not None:
            outputs = self._side(ui.output_ports, "outputPorts", pointer)
            outputs["done"] = DONE
            outputs.setdefault("error", ERROR)
        if ui.widgets is not None:
            self._widgets(ui.widgets, f"{pointer}/widgets")
        return Ports(inputs, outputs)

    def _side(self, ports: list[PortDefinition], side: Side, pointer: str) -> dict[str, PortSpec]:
        specs: dict[str, PortSpec] = {}
        if not self._problems.check_count(f"{pointer}/{side}", ports, MAX_PORTS, "ports"):
            return specs
        sound = self._sound[side]
        for place, port in enumerate(ports):
            spec = sound.get(port)
            if spec is None:
                before = self._problems.count
                spec = self._port(port, side, f"{pointer}/{side}/{place}")
                if self._problems.count == before:
                    sound[port] = spec
            if port.key in specs:
                message = f"two ports have the same key: {port.key[:80]}"
                self._problems.add(f"{pointer}/{side}/{place}/key", WORKFLOW_DUPLICATE_ID, message)
            specs[port.key] = spec
        return specs

    def _port(self, port: PortDefinition, side: Side, pointer: str) -> PortSpec:
        self._problems.check_key(f"{pointer}/key", port.key, MAX_KEY_CHARS)
        if port.label is not None:
            self._problems.check_text(f"{pointer}/label", port.label, MAX_LABEL_CHARS)
        kind = port.kind or "data"
        if kind == "error" and side == "inputPorts":
            message = "an input cannot be an error port"
            self._problems.add(f"{pointer}/kind", WORKFLOW_INVALID, message)
        binding = port.binding
        if binding is None:
            path = self._path(port.key, f"{pointer}/key") if kind == "data" else ()
            return PortSpec(port.key, kind, path, port.multiple)
        path = self._bound(binding, side, kind, f"{pointer}/binding")
        return PortSpec(port.key, kind, path, port.multiple, binding.unwrap)

    def _bound(self, binding: Binding, side: Side, kind: Kind, pointer: str) -> Path:
        if binding.mode not in (None, "two_way", _MODES[side]):
            message = f"this side of a node has bindings to {_MODES[side]}, not to {binding.mode}"
            self._problems.add(f"{pointer}/mode", WORKFLOW_INVALID, message)
        path = self._path(binding.path, f"{pointer}/path")
        if not path:
            return path
        root = "error" if kind == "error" else _ROOTS[side]
        if path[0] != root:
            message = f"the path must begin with {root}: {binding.path}"
            self._problems.add(f"{pointer}/path", WORKFLOW_BAD_PATH, message)
        elif side == "inputPorts" and len(path) == 1:
            message = "an input must name a parameter, not all of them"
            self._problems.add(f"{pointer}/path", WORKFLOW_BAD_PATH, message)
        return path[1:]

    def _widgets(self, widgets: list[Widget], pointer: str) -> None:
        if not self._problems.check_count(pointer, widgets, MAX_LIST_ITEMS, "widgets"):
            return
        for place, widget in enumerate(widgets):
            if widget.component == "code" and not _is_text((widget.options or {}).get("language")):
                here, message = f"{pointer}/{place}/options/language", "the language must be a text"
                self._problems.add(here, WORKFLOW_INVALID, message)
            if widget.binding is None or widget.binding.path in self._sound_widgets:
                continue
            text = widget.binding.path
            here = f"{pointer}/{place}/binding/path"
            path = self._path(text, here)
            if path and path[0] in _WIDGET_ROOTS:
                self._sound_widgets.add(text)
            elif path:
                message = f"the path must begin with parameters or results: {text[:80]}"
                self._problems.add(here, WORKFLOW_BAD_PATH, message)

    def _path(self, text: str, pointer: str) -> Path:
        path = self._paths.get(text)
        if path is None:
            try:
                path = compile_path(text)
            except BadPath as error:
                path = error
            self._paths[text] = path
        if isinstance(path, BadPath):
            self._problems.add(pointer, WORKFLOW_BAD_PATH, str(path))
            return ()
        return path


def _is_text(value: Raw | None) -> bool:
    """Whether a member is a text, or missing."""
    return value is None or bytes(value).lstrip()[:1] == b'"'
