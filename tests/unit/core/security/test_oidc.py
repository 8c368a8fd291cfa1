from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from astraflow.core.contract.users import UserName
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.oidc import (
    GroupRoles,
    OidcFlow,
    OidcFlows,
    claims_problem,
    groups_of,
    other_user_name_of,
    user_name_of,
)
from astraflow.core.security.policy import Role

RING = KeyRing.of_secrets([b"0123456789abcdef0123456789abcdef"])
FLOW = OidcFlow("a state", "a nonce", "a verifier", 1_600)
GOOD: dict[str, Any] = {
    "iss": "https://id.example",
    "aud": "astra",
    "sub": "alice",
    "exp": 2_000,
    "iat": 1_000,
    "nonce": "a nonce",
}


def problem(wall: float = 1_000.0, **changed: Any) -> str | None:
    claims = {name: value for name, value in {**GOOD, **changed}.items() if value is not ...}
    return claims_problem(
        claims, issuer="https://id.example", client_id="astra", nonce="a nonce", wall=wall
    )


class TestFlows:
    def test_a_login_is_taken_once(self) -> None:
        flows = OidcFlows(RING)
        text = flows.sign(FLOW)
        assert flows.take(text, "a state", 1_000) == FLOW
        assert flows.take(text, "a state", 1_001) is None

    def test_another_state_takes_nothing_and_leaves_the_login(self) -> None:
        flows = OidcFlows(RING)
        text = flows.sign(FLOW)
        for state in ("", "a", "a statE", "\udc80"):
            assert flows.take(text, state, 1_000) is None
        assert flows.take(text, "a state", 1_000) == FLOW

    def test_it_counts_until_it_expires(self) -> None:
        assert OidcFlows(RING).take(OidcFlows(RING).sign(FLOW), "a state", 1_599) == FLOW
        assert OidcFlows(RING).take(OidcFlows(RING).sign(FLOW), "a state", 1_600) is None

    def test_what_we_did_not_sign_as_a_login_is_none(self) -> None:
        flows = OidcFlows(RING)
        other = OidcFlows(KeyRing.of_secrets([b"fedcba9876543210fedcba9876543210"]))
        for text in ("", "x", other.sign(FLOW), RING.sign(b"{}"), RING.sign(b"no json")):
            assert flows.take(text, "a state", 1_000) is None

    def test_states_are_forgotten_when_no_cookie_can_have_them(self) -> None:
        flows = OidcFlows(RING)
        flows.take(flows.sign(FLOW), "a state", 1_000)
        later = OidcFlow("another", "n", "v", 9_000)
        assert flows.take(flows.sign(later), "another", 8_000) == later
        assert flows.take(flows.sign(FLOW), "a state", 8_000) is None

    def test_the_challenge_is_the_hash_of_the_verifier(self) -> None:
        raw = base64.urlsafe_b64decode(FLOW.challenge + "=")
        assert raw == hashlib.sha256(b"a verifier").digest()


class TestClaims:
    def test_those_of_this_login_are_good(self) -> None:
        assert problem() is None
        assert problem(aud=["astra"]) is None
        assert problem(aud=["astra", "other"], azp="astra") is None
        assert problem(nbf=1_000, exp=1_001.5) is None

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"iss": "https://evil.example"}, "another issuer"),
            ({"iss": "https://id.example/"}, "another issuer"),
            ({"iss": ...}, "another issuer"),
            ({"aud": "other"}, "another client"),
            ({"aud": ["other"]}, "another client"),
            ({"aud": []}, "another client"),
            ({"aud": {"astra": 1}}, "another client"),
            ({"aud": ...}, "another client"),
            ({"aud": ["astra", "other"]}, "given to another client"),
            ({"azp": "other"}, "given to another client"),
            ({"exp": ...}, "when it counts"),
            ({"exp": "2000"}, "when it counts"),
            ({"exp": True}, "when it counts"),
            ({"exp": float("inf")}, "when it counts"),
            ({"exp": float("nan")}, "when it counts"),
            ({"iat": ...}, "when it counts"),
            ({"nbf": "x"}, "when it counts"),
            ({"exp": 940}, "expired"),
            ({"iat": 1_061}, "future"),
            ({"nbf": 1_061}, "future"),
            ({"nonce": ...}, "another nonce"),
            ({"nonce": "another"}, "another nonce"),
            ({"nonce": 1}, "another nonce"),
            ({"sub": ...}, "names nobody"),
            ({"sub": ""}, "names nobody"),
            ({"sub": "a" * 256}, "names nobody"),
            ({"sub": 7}, "names nobody"),
        ],
    )
    def test_those_of_another_are_not(self, changed: dict[str, Any], said: str) -> None:
        found = problem(**changed)
        assert found is not None and said in found

    def test_clocks_may_differ_by_a_minute(self) -> None:
        assert problem(exp=941) is None
        assert problem(iat=1_060, nbf=1_060) is None


def test_each_subject_has_a_user_name_of_its_own() -> None:
    subjects = [
        "alice",
        "Alice",
        "a b",
        "ä",
        "sha256-x",
        "x" * 100,
        "x" * 101,
        "a|b",
        "A|b",
        "\ud800",
    ]
    names = [user_name_of(one) for one in subjects]
    assert len(set(names)) == len(names)
    pattern = re.compile(UserName.__metadata__[0].pattern)  # type: ignore[attr-defined]
    assert all(pattern.fullmatch(name) for name in names)
    assert names[0] == "oidc-alice"
    others = [
        other_user_name_of(one, issuer) for one in subjects for issuer in ("https://a", "https://b")
    ]
    assert len({*names, *others}) == len(names) + len(others)
    assert all(pattern.fullmatch(name) for name in others)


def test_groups_are_a_list_of_texts_or_one_text() -> None:
    assert groups_of({"groups": ["a", "b", 1, None]}, "groups") == {"a", "b"}
    assert groups_of({"groups": "a"}, "groups") == {"a"}
    for value in ({"a": 1}, 7, None):
        assert groups_of({"groups": value}, "groups") == frozenset()
    assert groups_of({}, "groups") == frozenset()


def test_the_first_group_of_the_settings_counts() -> None:
    roles = GroupRoles({"ops": "operator", "all": "umbrella:viewer", "root": "admin"})
    assert roles.granted(frozenset({"all", "ops"})) == ("default", Role.OPERATOR)
    assert roles.granted(frozenset({"root", "all"})) == ("umbrella", Role.VIEWER)
    assert roles.granted(frozenset({"OPS", "other"})) is None
    assert roles.granted(frozenset()) is None


@pytest.mark.parametrize("text", ["", "root", "worker", "default:worker", ":admin", "a:", "Admin"])
def test_what_is_no_role_of_a_person_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ROLE or TENANT:ROLE"):
        GroupRoles({"ops": text})
