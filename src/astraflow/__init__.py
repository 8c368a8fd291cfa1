"""AstraFlow: durable workflows of nodes, executed by workers on any number of machines."""

from __future__ import annotations

__version__ = "0.1.0"
