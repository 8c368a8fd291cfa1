"""The scheduler's pure half: inputs in, facts and effects out; commit, then speak."""

from __future__ import annotations
