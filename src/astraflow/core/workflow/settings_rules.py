"""What the optional settings of a node must keep, and which features they ask for.

Types and ranges are part of the shape and checked when the definition is decoded; here is what a
type cannot say: lengths, grammar, and settings that belong to certain node types only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from astraflow.core.errors import (
    WORKFLOW_BAD_PATH,
    WORKFLOW_BAD_TEXT,
    WORKFLOW_INVALID,
)
from astraflow.core.workflow.bindings import BadPath
from astraflow.core.workflow.core_manifest import (
    APPROVAL_TYPE,
    CALL_TYPE,
    CONTAINER_TYPE,
    IF_TYPE,
    SIGNAL_TYPE,
    SWITCH_TYPE,
    WAIT_TYPE,
)
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.limits import (
    MAX_DESCRIPTION_CHARS,
    MAX_EXPRESSION_CHARS,
    MAX_KEY_CHARS,
    MAX_LIST_ITEMS,
    MAX_MIDDLEWARES,
    MAX_RESOURCE_REFS,
)
from astraflow.core.workflow.maps import ERRORS, RESERVED, list_path
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.ports import DONE, ERROR
from astraflow.core.workflow.secret_refs import is_secret_name
from astraflow.core.workflow.versions import parse_version

if TYPE_CHECKING:
    from astraflow.core.workflow.definition import (
        Approval,
        MapOver,
        NodeSpec,
        Signal,
        WaitSpec,
        WorkerHints,
    )
    from astraflow.core.workflow.problems import Problems

_MAX_RESOURCE_ID_CHARS: Final = 1_024
_TAKEN: Final = frozenset({ERRORS, DONE.key, ERROR.key})
"""Outputs of a map beside what it collects."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})", re.ASCII
)

# The setting that a node type of the scheduler's own needs, and that no other type may have.
_CONTROLS: Final = (
    ("call", CALL_TYPE, Feature.CALL),
    ("wait", WAIT_TYPE, Feature.WAIT),
    ("approval", APPROVAL_TYPE, Feature.APPROVAL),
    ("signal", SIGNAL_TYPE, Feature.SIGNAL),
)
_CONTROL_TYPES: Final = frozenset(node_type for _, node_type, _ in _CONTROLS)
_OF_SCHEDULER: Final = _CONTROL_TYPES | {IF_TYPE, SWITCH_TYPE, CONTAINER_TYPE}
_WITH_BODY: Final = frozenset({CONTAINER_TYPE, CALL_TYPE})
_WITHOUT_WORKER: Final = _OF_SCHEDULER | {CONTAINER_TYPE}
_JOINS: Final = {"any": Feature.JOIN_ANY, "all_done": Feature.JOIN_ALL_DONE}


def is_signal_name(name: str) -> bool:
    """Whether a message can be sent under this name."""
    return 0 < len(name) <= MAX_KEY_CHARS and name.isprintable() and "/" not in name


class SettingsRules:
    def __init__(self, problems: Problems, features: set[Feature]) -> None:
        self._problems = problems
        self._features = features

    def check(self, node: NodeSpec, place: int) -> None:
        """Check one node. The questions are ordered so that a plain node answers them quickly."""
        if node.when is not None:
            self.check_condition(node.when, f"/nodes/{place}/when")
        if node.join != "all":
            self._features.add(_JOINS[node.join])
        if node.concurrency_key is not None:
            self._check_key(node.concurrency_key, f"/nodes/{place}/concurrencyKey")
        if node.affinity is not None:
            self._check_key(node.affinity.key, f"/nodes/{place}/affinity/key")
        if node.runtime is not None:
            self._problems.check_key(f"/nodes/{place}/runtime", node.runtime, MAX_KEY_CHARS)
        if node.worker_hints is not None:
            self.check_hints(node.worker_hints, f"/nodes/{place}/workerHints")
        if node.resources is not None and node.type in _WITHOUT_WORKER:
            message = "a node that the scheduler carries out takes no resources of a worker"
            self._problems.add(f"/nodes/{place}/resources", WORKFLOW_INVALID, message)
        if node.resource_refs or node.middlewares:
            self._check_lists(node, f"/nodes/{place}")
        if node.map is not None:
            self._check_map(node.map, f"/nodes/{place}/map")
        if node.type in _WITH_BODY or node.container is not None:
            self._check_body(node, f"/nodes/{place}")
        if node.type in _CONTROL_TYPES or node.call or node.wait or node.approval or node.signal:
            self._check_controls(node, f"/nodes/{place}")

    def check_condition(self, text: str, pointer: str) -> None:
        """Check the `when` of a node or an edge: an expression, with or without a leading `=`."""
        self._problems.check_key(pointer, text, MAX_EXPRESSION_CHARS)
        self._features.add(Feature.CONDITION)

    def check_hints(self, hints: WorkerHints, pointer: str) -> None:
        if hints.package is not None:
            self._problems.check_key(f"{pointer}/package", hints.package, MAX_KEY_CHARS)
        if hints.min_version is not None and parse_version(hints.min_version) is None:
            message = f"not a version: {hints.min_version[:80]!r}"
            self._problems.add(f"{pointer}/minVersion", WORKFLOW_BAD_TEXT, message)
        here = f"{pointer}/labels"
        if not self._problems.check_count(here, hints.labels, MAX_LIST_ITEMS, "labels"):
            return
        for key, value in hints.labels.items():
            self._problems.check_key(here, key, MAX_KEY_CHARS)
            self._problems.check_text(here, value, MAX_KEY_CHARS)

    def _check_key(self, text: str, pointer: str) -> None:
        if is_expression(text):
            self._features.add(Feature.KEY_EXPRESSION)
            self._problems.check_key(pointer, text, MAX_EXPRESSION_CHARS)
        else:
            self._problems.check_key(pointer, text, MAX_KEY_CHARS)

    def _check_lists(self, node: NodeSpec, pointer: str) -> None:
        refs, middlewares = node.resource_refs, node.middlewares
        here = f"{pointer}/middlewares"
        if middlewares:
            self._features.add(Feature.MIDDLEWARE)
            if node.type in _OF_SCHEDULER:
                message = "a node that the scheduler carries out has no middlewares"
                self._problems.add(here, WORKFLOW_INVALID, message)
        self._problems.check_count(here, middlewares, MAX_MIDDLEWARES, "middlewares")
        here = f"{pointer}/resourceRefs"
        if self._problems.check_count(here, refs, MAX_RESOURCE_REFS, "resources"):
            for number, ref in enumerate(refs):
                place = f"{here}/{number}/resourceId"
                self._problems.check_key(place, ref.resource_id, _MAX_RESOURCE_ID_CHARS)

    def _check_map(self, over: MapOver, pointer: str) -> None:
        self._features.add(Feature.MAP)
        if is_expression(over.over):
            self._features.add(Feature.EXPRESSION)
            self._problems.check_text(f"{pointer}/over", over.over, MAX_EXPRESSION_CHARS)
        else:
            try:
                list_path(over.over)
            except BadPath as error:
                self._problems.add(f"{pointer}/over", WORKFLOW_BAD_PATH, str(error))
        if over.item is not None and (not _NAME.fullmatch(over.item) or over.item in RESERVED):
            message = f"an item cannot have this name: {over.item[:80]!r}"
            self._problems.add(f"{pointer}/item", WORKFLOW_BAD_TEXT, message)
        self._problems.check_key(f"{pointer}/collect", over.collect, MAX_KEY_CHARS)
        if over.collect in _TAKEN:
            message = f"another output of the node has this name: {over.collect}"
            self._problems.add(f"{pointer}/collect", WORKFLOW_BAD_TEXT, message)

    def _check_body(self, node: NodeSpec, pointer: str) -> None:
        if node.type == CONTAINER_TYPE:
            self._features.add(Feature.SUBGRAPH)
        elif node.container is not None:
            message = f"only a node of type {CONTAINER_TYPE} has this setting"
            self._problems.add(f"{pointer}/container", WORKFLOW_INVALID, message)
        if node.retry is not None and node.type in _WITH_BODY:
            message = "the nodes inside are retried, each by its own setting"
            self._problems.add(f"{pointer}/retry", WORKFLOW_INVALID, message)

    def _check_controls(self, node: NodeSpec, pointer: str) -> None:
        for name, node_type, feature in _CONTROLS:
            is_set = getattr(node, name) is not None
            if is_set and node.type != node_type:
                message = f"only a node of type {node_type} has this setting"
                self._problems.add(f"{pointer}/{name}", WORKFLOW_INVALID, message)
            if node.type == node_type:
                self._features.add(feature)
                if not is_set and name != "approval":
                    message = f"a node of type {node_type} needs the setting {name}"
                    self._problems.add(pointer, WORKFLOW_INVALID, message)
        if node.wait is not None:
            self._check_wait(node.wait, f"{pointer}/wait")
        if node.approval is not None:
            self._check_approval(node.approval, f"{pointer}/approval")
        if node.signal is not None:
            self._check_signal(node.signal.name, f"{pointer}/signal/name")
            self._check_address(node.signal, f"{pointer}/signal")
        if node.call is not None:
            here = f"{pointer}/call/workflowId"
            self._problems.check_key(here, node.call.workflow_id, MAX_KEY_CHARS)

    def _check_signal(self, name: str, pointer: str) -> None:
        if is_expression(name):
            self._features.add(Feature.EXPRESSION)
            self._problems.check_text(pointer, name, MAX_EXPRESSION_CHARS)
            return
        self._problems.check_key(pointer, name, MAX_KEY_CHARS)
        if "/" in name:
            message = "the name of a signal is part of a path: it has no slash"
            self._problems.add(pointer, WORKFLOW_BAD_TEXT, message)

    def _check_address(self, signal: Signal, pointer: str) -> None:
        if signal.webhook:
            self._features.add(Feature.SIGNAL_ADDRESS)
            if is_expression(signal.name):
                message = "the address is known from the start of a run: the name is no expression"
                self._problems.add(f"{pointer}/name", WORKFLOW_INVALID, message)
        secret = signal.secret_ref
        if secret is not None and not is_secret_name(secret):
            message = f"not the name of a secret: {secret[:80]!r}"
            self._problems.add(f"{pointer}/secretRef", WORKFLOW_BAD_TEXT, message)
        elif secret is not None and not signal.webhook:
            message = "only requests to an address are signed: set webhook"
            self._problems.add(f"{pointer}/secretRef", WORKFLOW_INVALID, message)

    def _check_wait(self, wait: WaitSpec, pointer: str) -> None:
        if (wait.seconds is None) == (wait.until is None):
            message = "a wait needs either seconds or until"
            self._problems.add(pointer, WORKFLOW_INVALID, message)
        if wait.until is None:
            return
        if is_expression(wait.until):
            self._features.add(Feature.EXPRESSION)
            self._problems.check_text(f"{pointer}/until", wait.until, MAX_EXPRESSION_CHARS)
        elif not _TIME.fullmatch(wait.until):
            message = "not a time as RFC 3339 writes it, nor an expression"
            self._problems.add(f"{pointer}/until", WORKFLOW_INVALID, message)

    def _check_approval(self, approval: Approval, pointer: str) -> None:
        if approval.message is not None:
            here = f"{pointer}/message"
            self._problems.check_text(here, approval.message, MAX_DESCRIPTION_CHARS)
        here = f"{pointer}/roles"
        if self._problems.check_count(here, approval.roles, MAX_LIST_ITEMS, "roles"):
            for number, role in enumerate(approval.roles):
                self._problems.check_key(f"{here}/{number}", role, MAX_KEY_CHARS)
