"""Programs around the kit for workers without a session: an HTTP server, and a consumer of NATS JetStream."""

from __future__ import annotations
