"""The worker's pure half: what it holds, when it must stop, what it owes the scheduler."""

from __future__ import annotations
