"""Who may do what: keys, tokens, roles and tenants. Pure: the wall clock is passed in."""

from __future__ import annotations
