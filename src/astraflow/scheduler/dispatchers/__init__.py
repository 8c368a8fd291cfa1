"""Dispatchers: how a task gets to the workers of an HTTP pool."""

from __future__ import annotations
