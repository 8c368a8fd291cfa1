"""The settings of a host, passed by the worker as JSON in the first argument."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class HostSettings:
    """`…_fd`: inherited descriptors. `folder` has the manifest and goes on `sys.path`."""

    read_fd: int
    write_fd: int
    life_fd: int
    folder: str
    worker_id: str
    result_bytes: int
    max_threads: int
    open_files: int
    memory_bytes: int | None
    output_bytes: int
    output_bytes_per_s: int
    tenant: str
    resources_dir: str | None
    """Where files are put to be registered; None: this worker keeps no resources."""
    keeps_objects: bool

    @staticmethod
    def parse(text: str) -> HostSettings:
        return HostSettings(**json.loads(text))
