from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.security.bearer import (
    MAX_BEARER_CHARS,
    ApiTokens,
    CredentialKind,
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


def test_one_kind_of_credential_is_not_taken_for_another() -> None:
    tokens = ApiTokens([record(kind=CredentialKind.SESSION)])
    assert tokens.verify("good", NOW) is errors.AUTH_INVALID_TOKEN
    assert tokens.verify("good", NOW, CredentialKind.LINK) is errors.AUTH_INVALID_TOKEN
    assert isinstance(tokens.verify("good", NOW, CredentialKind.SESSION), TokenRecord)


def test_a_stored_token_is_found_by_its_id_until_it_is_removed() -> None:
    stored = record(token_id="t1", family="t1", user="ann")
    renewed = record("newer", token_id="t2", family="t1")
    tokens = ApiTokens([stored, renewed, record("kept")])
    assert tokens.family("acme", "t1") == [stored, renewed]
    assert tokens.family("other", "t1") == []
    assert tokens.of_user("acme", "ann") == [stored]
    assert tokens.is_good_id("t1", NOW)
    assert tokens.is_good(stored, NOW)
    tokens.remove("t1")
    tokens.remove("t1")
    assert not tokens.is_good_id("t1", NOW)
    assert not tokens.is_good(stored, NOW)
    assert tokens.verify("good", NOW) is errors.AUTH_INVALID_TOKEN
    tokens.replace_stored([record("third", token_id="t3")])
    assert tokens.verify("newer", NOW) is errors.AUTH_INVALID_TOKEN
    assert isinstance(tokens.verify("third", NOW), TokenRecord)
    assert isinstance(tokens.verify("kept", NOW), TokenRecord)


def test_no_token_of_a_suspended_tenant_is_good_until_it_is_resumed() -> None:
    stored = record(token_id="t1")
    tokens = ApiTokens([stored])
    tokens.suspend("acme")
    assert tokens.is_suspended("acme")
    assert tokens.verify("good", NOW) is errors.AUTH_INVALID_TOKEN
    assert not tokens.is_good(stored, NOW)
    tokens.resume("acme")
    assert tokens.verify("good", NOW) == stored


def test_a_token_that_is_not_used_for_too_long_is_over() -> None:
    stored = record(token_id="t1", created_at=NOW, idle_s=60.0)
    tokens = ApiTokens([stored])
    assert tokens.verify("good", NOW + 59) == stored
    assert tokens.verify("good", NOW + 118) == stored
    tokens.touch(stored, NOW + 120)
    assert tokens.is_good_id("t1", NOW + 179)
    assert tokens.take_used() == {"t1": NOW + 120}
    assert tokens.take_used() == {}
    assert tokens.is_good_id("t1", NOW + 179)
    assert tokens.verify("good", NOW + 180) is errors.AUTH_INVALID_TOKEN
    tokens.remove("t1")
    tokens.touch(stored, NOW)
    assert tokens.take_used() == {}


def test_the_tokens_whose_time_is_over_are_known() -> None:
    late = record(token_id="t1", expires_at=NOW)
    tokens = ApiTokens([late, record("b", token_id="t2"), record("c", expires_at=1.0)])
    assert tokens.expired(NOW - 1) == []
    assert tokens.expired(NOW) == [late]
