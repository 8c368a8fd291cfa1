"""The workflow definition: the JSON that the editor writes and the scheduler plans.

Seed 002 §4: "The UI persists the JSON, and the Scheduler consumes the same payload to orchestrate
tasks." The document belongs to its author. So:

- A `WorkflowDocument` keeps the authored bytes beside the typed view, and the bytes are what is stored
  and given back. Fields that we do not know survive at every level because nothing rewrites them.
- The typed view holds what validation and planning read, and it is read-only. To change a
  definition, change `document()` and decode again.
- Decoding is one pass into structs. Parameters stay raw: "Per-node parameters are passed through
  exactly as authored in the workflow JSON."

Whatever may be left out may also be null, which means the same.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from astraflow.core.categories import RetryCategory
from astraflow.core.workflow.amounts import MAX_CPU

ABSENT: Final = Raw()
"""In place of raw JSON that was left out. (A struct cannot hold `Raw | None`.)"""

Seconds = Annotated[float, Meta(gt=0, le=366 * 86_400)]
Priority = Annotated[int, Meta(ge=-100, le=100)]
Objects = dict[str, Raw]
Join = Literal["all", "any", "all_done"]


def is_expression(text: str) -> bool:
    """WORKFLOWS: "a string that begins with `=` is one"; all other strings pass verbatim."""
    return text.startswith("=")


# gc=False: a decoded document is a tree, nothing in it can refer back to its holder, and the
# collector need not walk 50,000 nodes again and again.
class _DefinitionPart(Struct, frozen=True, gc=False, rename="camel"):
    pass


class PackageRef(_DefinitionPart, frozen=True):
    """Which package provides the node; no version means the newest, pinned in the plan."""

    name: str
    version: str | None = None


class Position(_DefinitionPart, frozen=True):
    x: float
    y: float


class Binding(_DefinitionPart, frozen=True):
    """What a port or a widget reads or writes.

    `unwrap`: an object that holds this key alone is read as that key's value.
    """

    path: str
    mode: Literal["read", "write", "two_way"] | None = None
    unwrap: str | None = None


class PortDefinition(_DefinitionPart, frozen=True):
    key: str
    label: str | None = None
    binding: Binding | None = None
    multiple: bool = False
    kind: Literal["data", "control", "error"] | None = None


class Widget(_DefinitionPart, frozen=True):
    key: str
    label: str | None = None
    component: str | None = None
    binding: Binding | None = None
    options: Objects | None = None


class Ui(_DefinitionPart, frozen=True):
    input_ports: list[PortDefinition] | None = None
    output_ports: list[PortDefinition] | None = None
    widgets: list[Widget] | None = None


class BackoffSpec(_DefinitionPart, frozen=True):
    initial_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 1.0
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    max_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.2
    """The share of each delay that is drawn at random."""


class Retry(_DefinitionPart, frozen=True):
    max_attempts: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """How many failures end the task; losses are counted apart."""
    backoff: BackoffSpec | None = None
    categories: list[RetryCategory] | None = None
    """None: the table of PROTOCOL §9."""


class Affinity(_DefinitionPart, frozen=True):
    key: str
    mode: Literal["sticky", "preferred"] = "sticky"


class ResourceRef(_DefinitionPart, frozen=True):
    resource_id: str
    worker_id: str | None = None
    type: str | None = None
    scope: str | None = None


class MapOver(_DefinitionPart, frozen=True):
    """Run the node (or the container) once for each item of a list.

    `over` is a path into the parameters or an expression. The results are collected under `collect`, in the order of
    the items.
    """

    over: str
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many items may be under way at once."""
    item: str | None = None
    """The parameter that is given the item, and the name of the item in expressions. None: the item takes the place
    of the list, and expressions call it `item`."""
    collect: str = "items"
    failure_policy: Literal["stop", "finish", "collect"] = "stop"
    """What the failure of an item means: `stop` ends the others, `finish` lets them end, and then the node fails.
    With `collect` the node succeeds: the result of the item is null, and its error is listed under `errors`."""


class CallSpec(_DefinitionPart, frozen=True):
    """Run another workflow and take its outputs as results."""

    workflow_id: str
    version: Annotated[int, Meta(ge=1)] | None = None
    """None: the newest published one when the run is accepted."""
    failure_policy: Literal["stop", "finish"] = "finish"
    """What the failure of a node inside means for the others: they are stopped, or they end."""


class ContainerSpec(_DefinitionPart, frozen=True):
    """How a container deals with what is inside."""

    failure_policy: Literal["stop", "finish"] = "finish"


class WaitSpec(_DefinitionPart, frozen=True):
    """Wait for a time: either `seconds`, or `until` (an RFC 3339 time or an expression)."""

    seconds: Annotated[float, Meta(ge=0, le=366 * 86_400)] | None = None
    until: str | None = None


class Approval(_DefinitionPart, frozen=True):
    """Wait for a person."""

    message: str | None = None
    roles: list[str] = []
    form: Objects | None = None
    """A JSON Schema of what the person fills in."""
    timeout_seconds: Seconds | None = None
    default: Literal["approve", "reject"] | None = None
    """What the deadline decides; None: the node fails."""


class Signal(_DefinitionPart, frozen=True):
    """Wait for a message from outside, sent to `name`."""

    name: str
    timeout_seconds: Seconds | None = None
    webhook: bool = False
    """Whether it has an address of its own, at which no token is needed."""
    secret_ref: str | None = None
    """The name of the secret that requests to the address are signed with."""


class WorkerHints(_DefinitionPart, frozen=True):
    package: str | None = None
    min_version: str | None = None
    labels: dict[str, str] = {}


class ResourcesSpec(_DefinitionPart, frozen=True):
    """What an attempt of the node takes of its worker's machine."""

    cpu: Annotated[float, Meta(ge=0, le=MAX_CPU)] = 0.0
    memory_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    gpu: Annotated[int, Meta(ge=0, le=MAX_CPU)] = 0


class NodeSpec(_DefinitionPart, frozen=True):
    id: str
    type: str
    package: PackageRef | None = None
    label: str | None = None
    position: Position | None = None
    parameters: Raw = ABSENT
    results: Objects | None = None
    schema: Objects | None = None
    ui: Ui | None = None
    runtime: str | None = None
    worker_hints: WorkerHints | None = None
    resources: ResourcesSpec | None = None
    retry: Retry | None = None
    timeout_seconds: Seconds | None = None
    concurrency_key: str | None = None
    affinity: Affinity | None = None
    resource_refs: tuple[ResourceRef, ...] = ()
    on_resource_lost: Literal["fail", "rebuild"] | None = None
    """What becomes of the node when a resource that it refers to is gone; None: as the scheduler is set."""
    middlewares: tuple[str, ...] = ()
    """Ids of the nodes that wrap this one, outermost first (seed 000: `middlewares: string[]`)."""
    on_failure: str | None = None
    """The first node of the branch that undoes this one, if its run fails after it has succeeded."""
    on_cancel: str | None = None
    """The same for a run that is cancelled."""
    when: str | None = None
    disabled: bool = False
    join: Join = "all"
    priority: Priority | None = None
    parent: str | None = None
    """The container that this node is inside of."""
    map: MapOver | None = None
    container: ContainerSpec | None = None
    call: CallSpec | None = None
    wait: WaitSpec | None = None
    approval: Approval | None = None
    signal: Signal | None = None


class End(_DefinitionPart, frozen=True):
    """One end of an edge. Without a port: `done` at the source, `trigger` at the target."""

    node: str
    port: str | None = None


class Edge(_DefinitionPart, frozen=True):
    source: End
    target: End
    id: str | None = None
    when: str | None = None


class Runtime(_DefinitionPart, frozen=True):
    worker_hints: WorkerHints | None = None


class Metadata(_DefinitionPart, frozen=True):
    name: str | None = None
    description: str | None = None
    tags: list[str] = []
    environment: str | None = None


class RunInput(_DefinitionPart, frozen=True):
    """An input of the run. `schema` and `default` are JSON that the run's start checks and uses."""

    schema: Objects | None = None
    default: Raw = ABSENT
    required: bool = False
    description: str | None = None


class RunOutput(_DefinitionPart, frozen=True):
    """An output of the run: what a node's output port reads when the run has ended."""

    source: End
    schema: Objects | None = None
    description: str | None = None


class ManualTrigger(_DefinitionPart, frozen=True, tag="manual", tag_field="type"):
    id: str | None = None
    disabled: bool = False


class CronTrigger(_DefinitionPart, frozen=True, tag="cron", tag_field="type"):
    """A run at each time of a schedule: five fields, or six with the seconds first.

    `catchUp` says what happens to times that passed while nothing could run, `overlap` what happens
    at a time when the run of an earlier one is still active.
    """

    expression: str
    time_zone: str = "UTC"
    jitter_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    """Each run starts up to so much later, always as much for the same time."""
    overlap: Literal["allow", "skip", "queue"] = "allow"
    """`queue`: one run waits for the end of the one before; what is beyond that is skipped."""
    catch_up: Literal["none", "last", "all"] = "last"
    max_catch_up: Annotated[int, Meta(ge=1, le=1_000)] = 100
    id: str | None = None
    disabled: bool = False
    inputs: dict[str, str] = {}
    values: Objects = {}
    """Inputs that are the same for each run."""


class WebhookTrigger(_DefinitionPart, frozen=True, tag="webhook", tag_field="type"):
    """A run for each request to an address of its own."""

    path: str | None = None
    methods: list[Literal["GET", "POST", "PUT", "PATCH", "DELETE"]] | None = None
    """None: POST alone."""
    secret_ref: str | None = None
    """The name of the secret that requests are signed with. None: whoever knows the address may use it."""
    id: str | None = None
    disabled: bool = False
    inputs: dict[str, str] = {}
    """From the name of an input to a path into `{body, headers, query, method}`."""
    values: Objects = {}


class WorkflowTrigger(_DefinitionPart, frozen=True, tag="workflow", tag_field="type"):
    """A run when a run of another workflow has ended."""

    workflow_id: str
    on: tuple[Literal["succeeded", "failed"], ...] = ("succeeded",)
    id: str | None = None
    disabled: bool = False
    inputs: dict[str, str] = {}
    """From the name of an input to a path into `{runId, workflowId, status, outputs}`."""
    values: Objects = {}


TriggerSpec = ManualTrigger | CronTrigger | WebhookTrigger | WorkflowTrigger


class WorkflowSpec(_DefinitionPart, frozen=True):
    """The typed view of a definition."""

    id: str
    nodes: list[NodeSpec]
    edges: list[Edge] = []
    schema_version: Literal["2025-10"] | None = None
    metadata: Metadata | None = None
    runtimes: dict[str, Runtime] = {}
    tags: list[str] = []
    inputs: dict[str, RunInput] = {}
    outputs: dict[str, RunOutput] = {}
    triggers: list[TriggerSpec] = []
    priority: Priority = 0
    timeout_seconds: Seconds | None = None


class WorkflowDocument(Struct, frozen=True, gc=False):
    """A definition as authored, and the typed view of it. Made by `decode_definition`."""

    raw: bytes
    workflow: WorkflowSpec

    def document(self) -> dict[str, Any]:
        """The whole document as plain JSON values, unknown fields included; yours to change."""
        document: dict[str, Any] = msgspec.json.decode(self.raw)
        return document
