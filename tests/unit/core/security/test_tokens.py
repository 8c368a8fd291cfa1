from __future__ import annotations

import itertools

import pytest

from astraflow.core import errors
from astraflow.core.ids import SessionId
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import (
    LEEWAY_S,
    SESSION_TTL_MAX_S,
    TASK_TTL_MAX_S,
    TASK_TTL_S,
    SessionClaims,
    SessionTokens,
    TaskClaims,
    TaskTokens,
    refuse_weak_heartbeat,
)
from tests.tables import each_row

RING = KeyRing({"k1": b"0123456789abcdef0123456789abcdef"}, "k1")
OTHER_RING = KeyRing({"k1": b"fedcba9876543210fedcba9876543210"}, "k1")
NOW = 1_800_000_000.5


def test_a_session_token_opens_its_session() -> None:
    token, expires_at = SessionTokens(RING, 600).mint(SessionId("s1"), "w1", "acme", "s1.1", NOW)
    assert expires_at == 1_800_000_600
    claims = SessionTokens(RING).verify(token, NOW)
    assert claims == SessionClaims("s1", "w1", "acme", expires_at, "s1.1")


def test_a_task_token_opens_its_attempt() -> None:
    tokens = TaskTokens(RING)
    token, expires_at = tokens.mint(
        tenant="acme", workspace="default", run="r1", task="t1", attempt=2, wall=NOW
    )
    assert expires_at == 1_800_000_000 + TASK_TTL_S
    assert tokens.verify(token, "t1", NOW) == TaskClaims(
        "acme", "default", "r1", "t1", 2, expires_at
    )


def test_each_task_token_opens_exactly_its_own_cell() -> None:
    tokens = TaskTokens(RING)
    cells = list(itertools.product(("a", "b"), ("w", "x"), ("r1", "r2"), ("t1", "t2"), (1, 2)))
    minted = {}
    for tenant, workspace, run, task, attempt in cells:
        token, _ = tokens.mint(
            tenant=tenant, workspace=workspace, run=run, task=task, attempt=attempt, wall=NOW
        )
        minted[token] = (tenant, workspace, run, task, attempt)
    assert len(minted) == len(cells)
    for token, cell in minted.items():
        claims = tokens.verify(token, cell[3], NOW)
        assert isinstance(claims, TaskClaims)
        assert (claims.tenant, claims.workspace, claims.run, claims.task, claims.attempt) == cell
        other = "t2" if cell[3] == "t1" else "t1"
        assert tokens.verify(token, other, NOW) is errors.INVALID_TOKEN


def test_an_expired_token_counts_for_the_leeway_and_no_longer() -> None:
    session_token, expires_at = SessionTokens(RING, 600).mint(
        SessionId("s1"), "w1", "acme", "s1.1", NOW
    )
    task_token, _ = TaskTokens(RING, 600).mint(
        tenant="acme", workspace="default", run="r1", task="t1", attempt=1, wall=NOW
    )
    just_before = expires_at + LEEWAY_S - 0.001
    assert isinstance(SessionTokens(RING).verify(session_token, just_before), SessionClaims)
    assert isinstance(TaskTokens(RING).verify(task_token, "t1", just_before), TaskClaims)
    after = expires_at + LEEWAY_S
    assert SessionTokens(RING).verify(session_token, after) is errors.AUTH_INVALID_TOKEN
    assert TaskTokens(RING).verify(task_token, "t1", after) is errors.INVALID_TOKEN


def test_a_wall_clock_that_jumps_back_opens_nothing_more() -> None:
    token, _ = SessionTokens(RING, 600).mint(SessionId("s1"), "w1", "acme", "s1.1", NOW)
    assert isinstance(SessionTokens(RING).verify(token, NOW - 86_400), SessionClaims)
    assert SessionTokens(OTHER_RING).verify(token, NOW - 86_400) is errors.AUTH_INVALID_TOKEN


def test_a_foreign_signature_is_refused() -> None:
    session_token, _ = SessionTokens(OTHER_RING).mint(SessionId("s1"), "w1", "acme", "s1.1", NOW)
    task_token, _ = TaskTokens(OTHER_RING).mint(
        tenant="acme", workspace="default", run="r1", task="t1", attempt=1, wall=NOW
    )
    assert SessionTokens(RING).verify(session_token, NOW) is errors.AUTH_INVALID_TOKEN
    assert TaskTokens(RING).verify(task_token, "t1", NOW) is errors.INVALID_TOKEN


def test_one_kind_of_token_cannot_be_used_as_the_other() -> None:
    session_token, _ = SessionTokens(RING).mint(SessionId("s1"), "w1", "acme", "s1.1", NOW)
    task_token, _ = TaskTokens(RING).mint(
        tenant="acme", workspace="default", run="r1", task="t1", attempt=1, wall=NOW
    )
    assert SessionTokens(RING).verify(task_token, NOW) is errors.AUTH_INVALID_TOKEN
    assert TaskTokens(RING).verify(session_token, "t1", NOW) is errors.INVALID_TOKEN


@each_row("body", [b"", b"[]", b"{}", b"\xff", b'{"sid":1}'])
def test_signed_nonsense_is_refused(body: bytes) -> None:
    assert SessionTokens(RING).verify(RING.sign(body), NOW) is errors.AUTH_INVALID_TOKEN
    assert TaskTokens(RING).verify(RING.sign(body), "t1", NOW) is errors.INVALID_TOKEN


def test_a_token_is_renewed_at_half_of_its_life() -> None:
    _, expires_at = SessionTokens(RING, 600).mint(SessionId("s1"), "w1", "acme", "s1.1", NOW)
    for tokens in (SessionTokens(RING, 600), TaskTokens(RING, 600)):
        assert not tokens.needs_renewal(expires_at, NOW)
        assert not tokens.needs_renewal(expires_at, expires_at - 301)
        assert tokens.needs_renewal(expires_at, expires_at - 300)


@pytest.mark.parametrize("ttl_s", [0, -1, TASK_TTL_MAX_S + 1])
def test_a_task_lifetime_out_of_bounds_is_refused(ttl_s: int) -> None:
    with pytest.raises(errors.Refused) as caught:
        TaskTokens(RING, ttl_s)
    assert caught.value.code is errors.AUTH_WEAK_CONFIG


@pytest.mark.parametrize("ttl_s", [0, SESSION_TTL_MAX_S + 1])
def test_a_session_lifetime_out_of_bounds_is_refused(ttl_s: int) -> None:
    with pytest.raises(errors.Refused):
        SessionTokens(RING, ttl_s)


@pytest.mark.parametrize(("interval_s", "timeout_s"), [(30, 59.9), (0, 10), (-1, 10)])
def test_a_heartbeat_timeout_below_two_intervals_is_refused(
    interval_s: float, timeout_s: float
) -> None:
    with pytest.raises(errors.Refused):
        refuse_weak_heartbeat(interval_s, timeout_s)


def test_a_heartbeat_timeout_of_two_intervals_is_accepted() -> None:
    refuse_weak_heartbeat(30, 60)  # raises when refused
    with pytest.raises(errors.Refused, match="59 s at 30 s"):
        refuse_weak_heartbeat(30, 59)
