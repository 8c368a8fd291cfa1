from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.security.bearer import (
    MAX_BEARER_CHARS,
    ApiTokens,
    TokenRecord,
    digest_of,
    token_text,
)
from astraflow.core.security.policy import Role
from tests.tables import each_row

NOW = 1_800_000_000.0


def record(token: str = "good", **changes: object) -> TokenRecord:
    fields: dict[str, object] = {"tenant": "acme", "subject": "ann", "role": Role.EDITOR}
    return TokenRecord(digest=digest_of(token), **(fields | changes))  # type: ignore[arg-type]


def test_a_known_token_gives_its_record() -> None:
    wanted = record()
    assert ApiTokens([wanted, record("other", subject="bob")]).verify("good", NOW) == wanted


def test_without_tokens_nobody_gets_in() -> None:
    tokens = ApiTokens()
    for token in ("", "good", "\x00", "astra_x"):
        assert tokens.verify(token, NOW) is errors.AUTH_INVALID_TOKEN


@each_row("token", ["", "goo", "good ", "GOOD", "go\udc80d", "x" * 5_000])
def test_an_unknown_token_is_refused(token: str) -> None:
    assert ApiTokens([record()]).verify(token, NOW) is errors.AUTH_INVALID_TOKEN


def test_a_long_token_is_not_taken_for_its_beginning() -> None:
    longest = "x" * MAX_BEARER_CHARS
    tokens = ApiTokens([record(longest)])
    assert isinstance(tokens.verify(longest, NOW), TokenRecord)
    assert tokens.verify(longest + "y", NOW) is errors.AUTH_INVALID_TOKEN


def test_a_token_ends_at_its_expiry() -> None:
    tokens = ApiTokens([record(expires_at=NOW)])
    assert isinstance(tokens.verify("good", NOW - 0.001), TokenRecord)
    assert tokens.verify("good", NOW) is errors.AUTH_INVALID_TOKEN


def test_a_token_that_is_put_back_revoked_is_refused() -> None:
    tokens = ApiTokens([record()])
    tokens.put(record(is_revoked=True))
    assert tokens.verify("good", NOW) is errors.AUTH_INVALID_TOKEN
    tokens.put(record("new"))
    assert isinstance(tokens.verify("new", NOW), TokenRecord)


@pytest.mark.parametrize("token", ["", "  \n", "x" * (MAX_BEARER_CHARS + 1)])
def test_a_blank_or_endless_token_cannot_be_recorded(token: str) -> None:
    with pytest.raises(errors.Refused):
        digest_of(token)


def test_a_token_is_made_of_enough_random_bytes() -> None:
    text = token_text(bytes(range(32)))
    assert text.startswith("astra_")
    assert len(text) == len("astra_") + 43
    assert text != token_text(bytes(32))
    with pytest.raises(errors.Refused):
        token_text(bytes(15))
