"""Every limit of a workflow definition and of a manifest, each with its reason."""

from __future__ import annotations

from typing import Final

MAX_DEFINITION_BYTES: Final = 64 * 1024 * 1024
"""What the API takes for a definition; 50,000 nodes as an editor saves them fit."""

MAX_NODES: Final = 65_536
"""A run of 50,000 nodes works; 100,000 is a mistake or an attack."""

MAX_EDGES: Final = 4 * MAX_NODES
"""Four edges a node on average: a dense layered graph, not a complete one."""

MAX_PARAMETERS_BYTES: Final = 1024 * 1024
"""A dispatch must fit a frame of 4 MiB with room for what the edges bring."""

MAX_PARAMETERS_DEPTH: Final = 48
"""A frame may nest 64 deep, and the envelope and what edges bring need some of it."""

MAX_LABEL_CHARS: Final = 256
"""Labels, names, tags: what a canvas can show."""

MAX_KEY_CHARS: Final = 128
"""Port keys, node types, runtime names, affinity and concurrency keys."""

MAX_DESCRIPTION_CHARS: Final = 16_384
"""A page of prose."""

MAX_EXPRESSION_CHARS: Final = 4_096
"""A condition is a line, not a program."""

MAX_PORTS: Final = 256
"""Ports of one side of one node."""

MAX_LIST_ITEMS: Final = 1_024
"""Widgets, tags, triggers, run inputs and outputs: lists that a person fills."""

MAX_MIDDLEWARES: Final = 16
"""Each wraps the next; every call through the chain is a task of its own."""

MAX_CONTAINER_DEPTH: Final = 64
"""Containers in containers: each is a plan of its own inside of the next."""

MAX_RESOURCE_REFS: Final = 64
"""Each is leased before the attempt starts."""

MAX_PATH_CHARS: Final = 512
MAX_PATH_SEGMENTS: Final = 32
MAX_PATH_INDEX: Final = 9_999
"""A write at an index may have to fill the list up to it."""

MAX_PROBLEMS: Final = 100
"""Longer lists help nobody; the last entry then says how many more there are."""

MAX_MEMBERS_NAMED: Final = 20
"""Members of a cycle that a message names."""

MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024
"""One manifest travels in one frame."""

MAX_MANIFEST_NODES: Final = 2_048
MAX_DEPENDENCIES: Final = 512
MAX_HOOKS: Final = 16

MAX_INPUTS_BYTES: Final = 1024 * 1024
"""Of all inputs of a run: they are kept with it and given to its nodes."""

MAX_SCHEMA_BYTES: Final = 64 * 1024
"""A schema that describes the parameters of one node; compiled it takes some ten times that."""

MAX_SCHEMA_DEPTH: Final = 64
MAX_SCHEMA_EVALUATIONS: Final = 20_000
"""Subschemas that one place of a value may meet: some milliseconds."""

MAX_VIOLATIONS: Final = 20
"""Of one value; the first ones say enough."""

MAX_VIOLATION_CHARS: Final = 300
