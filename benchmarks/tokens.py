"""Signed and bearer tokens: what a resume and a request pay before anything else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from astraflow.core.ids import SessionId
from astraflow.core.security.bearer import ApiTokens, TokenRecord, digest_of
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.policy import Role
from astraflow.core.security.tokens import SessionTokens
from benchmarks.figures import Figure, operation_figures

NOW = 1_800_000_000.0


def figures() -> list[Figure]:
    return operation_figures(operations())


def operations() -> dict[str, Callable[[], object]]:
    tokens = SessionTokens(KeyRing({"k1": b"0123456789abcdef0123456789abcdef"}, "k1"))
    token, _ = tokens.mint(
        SessionId("01J8ZQ5T9GQ4X7V2N3M1K0HABC"), "w-1", "acme", "01J8ZQ5T9GQ4X7V2N3M1K0HABC.1", NOW
    )
    records = [
        TokenRecord(digest_of(f"token {number}"), "acme", "ann", Role.VIEWER)
        for number in range(1_000)
    ]
    bearers = ApiTokens(records)
    return {
        "mint a session token": partial(tokens.mint, SessionId("s"), "w", "acme", "t", NOW),
        "verify a session token": partial(tokens.verify, token, NOW),
        "verify one of 1,000 bearer tokens": partial(bearers.verify, "token 500", NOW),
        "refuse an unknown bearer token": partial(bearers.verify, "no such token", NOW),
    }
