from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping

import pytest

from astraflow.core import errors
from astraflow.core.security.keys import (
    MAX_KID_CHARS,
    MAX_TOKEN_BYTES,
    KeyRing,
    derived_keys,
    key_id,
)
from tests.tables import each_row

SECRET = b"0123456789abcdef0123456789abcdef"
OTHER = b"fedcba9876543210fedcba9876543210"


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forge(header: Mapping[str, object], body: bytes, secret: bytes) -> str:
    signed = f"{encode(json.dumps(header, separators=(',', ':')).encode())}.{encode(body)}"
    return f"{signed}.{encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


@pytest.fixture
def ring() -> KeyRing:
    return KeyRing({"k1": SECRET}, "k1")


def test_what_was_signed_is_verified(ring: KeyRing) -> None:
    assert ring.verify(ring.sign(b'{"a":1}')) == b'{"a":1}'


def test_the_token_is_a_jwt_that_names_its_key(ring: KeyRing) -> None:
    head, body, signature = ring.sign(b"{}").split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {
        "alg": "HS256",
        "kid": "k1",
        "typ": "JWT",
    }
    wanted = hmac.new(SECRET, f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert signature == encode(wanted)


def test_a_token_of_the_former_key_is_accepted_while_the_key_is_in_the_ring() -> None:
    old = KeyRing({"k1": SECRET}, "k1").sign(b"{}")
    assert KeyRing({"k1": SECRET, "k2": OTHER}, "k2").verify(old) == b"{}"
    assert KeyRing({"k2": OTHER}, "k2").verify(old) is None


def test_the_active_key_signs() -> None:
    token = KeyRing({"k1": SECRET, "k2": OTHER}, "k2").sign(b"{}")
    assert KeyRing({"k2": OTHER}, "k2").verify(token) == b"{}"


def test_a_token_with_the_key_id_of_another_key_is_refused() -> None:
    ring = KeyRing({"k1": SECRET, "k2": OTHER}, "k1")
    header = {"alg": "HS256", "kid": "k1", "typ": "JWT"}
    assert ring.verify(forge(header, b"{}", SECRET)) == b"{}"
    assert ring.verify(forge(header, b"{}", OTHER)) is None


@each_row(
    "header",
    [
        {"alg": "none", "kid": "k1", "typ": "JWT"},
        {"alg": "HS512", "kid": "k1", "typ": "JWT"},
        {"alg": "HS256", "kid": "k9", "typ": "JWT"},
        {"alg": "HS256", "typ": "JWT"},
        {"alg": "HS256", "kid": "k1", "typ": "JWT", "crit": ["x"]},
    ],
)
def test_the_algorithm_is_never_read_from_the_token(
    ring: KeyRing, header: dict[str, object]
) -> None:
    assert ring.verify(forge(header, b"{}", SECRET)) is None


def test_an_unknown_key_is_compared_with_a_decoy_and_still_refused(ring: KeyRing) -> None:
    decoy = hashlib.sha256(b"astraflow: no such key").digest()
    assert ring.verify(forge({"alg": "HS256", "kid": "k9", "typ": "JWT"}, b"{}", decoy)) is None


@each_row(
    "token",
    ["", ".", "..", "...", "a.b", "a.b.c", "\udc80.\u00e9.x", "a" * (MAX_TOKEN_BYTES + 1)],
)
def test_what_is_no_token_is_refused(ring: KeyRing, token: str) -> None:
    assert ring.verify(token) is None


def test_no_single_changed_character_goes_unnoticed(ring: KeyRing) -> None:
    token = ring.sign(b'{"sid":"s"}')
    for index, character in enumerate(token):
        changed = token[:index] + ("A" if character != "A" else "B") + token[index + 1 :]
        assert ring.verify(changed) is None, index


def test_a_signed_body_that_is_not_base64_is_refused(ring: KeyRing) -> None:
    head = ring.sign(b"{}").split(".")[0]
    signed = f"{head}.a"
    signature = encode(hmac.new(SECRET, signed.encode(), hashlib.sha256).digest())
    assert ring.verify(f"{signed}.{signature}") is None


@pytest.mark.parametrize("secret", [b"", b" " * 40, b"short", b"fifteen bytes!!" + b" " * 10])
def test_a_weak_secret_is_refused(secret: bytes) -> None:
    with pytest.raises(errors.Refused) as caught:
        KeyRing({"k1": SECRET, "k2": secret}, "k1")
    assert caught.value.code is errors.AUTH_WEAK_CONFIG
    assert secret.decode().strip() == "" or secret.decode().strip() not in str(caught.value)


@pytest.mark.parametrize("kid", ["", "\u00e9", "a\nb", "k" * (MAX_KID_CHARS + 1)])
def test_a_key_id_that_cannot_travel_is_refused(kid: str) -> None:
    with pytest.raises(errors.Refused):
        KeyRing({kid: SECRET}, kid)


def test_a_ring_without_its_active_key_is_refused() -> None:
    with pytest.raises(errors.Refused):
        KeyRing({"k1": SECRET}, "k2")
    with pytest.raises(errors.Refused):
        KeyRing({}, "k1")


def header_of(token: str) -> dict[str, object]:
    first = token.partition(".")[0]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    return found


def test_the_first_of_several_secrets_signs_and_all_are_accepted() -> None:
    before, after = KeyRing.of_secrets([SECRET]), KeyRing.of_secrets([OTHER, SECRET])
    old, new = before.sign(b"{}"), after.sign(b"{}")
    assert header_of(new)["kid"] == key_id(OTHER) != header_of(old)["kid"] == key_id(SECRET)
    assert after.verify(old) == after.verify(new) == b"{}"
    assert before.verify(new) is None
    last = KeyRing.of_secrets([OTHER])
    assert last.verify(new) == b"{}"
    assert last.verify(old) is None


def test_a_scheduler_that_knows_the_next_secret_accepts_it_before_it_signs_with_it() -> None:
    early = KeyRing.of_secrets([SECRET, OTHER])
    assert header_of(early.sign(b"{}"))["kid"] == key_id(SECRET)
    assert early.verify(KeyRing.of_secrets([OTHER, SECRET]).sign(b"{}")) == b"{}"


def test_a_token_with_the_id_of_all_early_secrets_is_accepted_of_the_first_alone() -> None:
    early = KeyRing({"k1": SECRET}, "k1").sign(b"{}")
    assert KeyRing.of_secrets([SECRET, OTHER]).verify(early) == b"{}"
    assert KeyRing.of_secrets([OTHER]).verify(early) is None


def test_a_secret_that_stands_twice_is_one() -> None:
    ring = KeyRing.of_secrets([SECRET, SECRET])
    assert ring.verify(ring.sign(b"{}")) == b"{}"


@pytest.mark.parametrize("secrets", [[], [b""], [SECRET, b"short"], [b"short", SECRET]])
def test_no_secret_or_a_short_one_is_refused(secrets: list[bytes]) -> None:
    with pytest.raises(errors.Refused) as caught:
        KeyRing.of_secrets(secrets)
    assert caught.value.code is errors.AUTH_WEAK_CONFIG


def test_a_derived_key_is_of_one_secret_and_one_purpose() -> None:
    keys = [*derived_keys([SECRET, OTHER], b"a"), *derived_keys([SECRET, OTHER], b"b")]
    assert len({*keys, SECRET, OTHER}) == 6
    assert derived_keys([SECRET], b"a") == (keys[0],)
