"""What the roles may do. Which route needs which role is declared at the route: `tests/api/test_access.py`."""

from __future__ import annotations

from astraflow.core.security import policy
from astraflow.core.security.policy import Access, Role
from tests.tables import each_row

R = Role
EXPECTED = {
    "ADMIN": {R.ADMIN},
    "OPERATE": {R.ADMIN, R.OPERATOR},
    "EDIT": {R.ADMIN, R.EDITOR},
    "START": {R.ADMIN, R.OPERATOR, R.EDITOR},
    "READ": {R.ADMIN, R.OPERATOR, R.EDITOR, R.VIEWER},
    "READ_OR_SIGNED": {R.ADMIN, R.OPERATOR, R.EDITOR, R.VIEWER},
    "SIGNED": set(),
    "SITE": {R.ADMIN},
    "OWN": {R.ADMIN, R.OPERATOR, R.EDITOR, R.VIEWER},
    "SELF": set(R) - {R.METRICS},
    "SCRAPE": {R.ADMIN, R.OPERATOR, R.EDITOR, R.VIEWER, R.METRICS},
    "RENEW": {R.WORKER},
    "PUBLIC": set(R),
    "TASK": set(),
    "WORKER_SESSION": {R.ADMIN, R.WORKER},
}
ALL = {name: value for name, value in vars(policy).items() if isinstance(value, Access)}


@each_row("name", EXPECTED)
def test_an_access_allows_its_roles_and_no_other(name: str) -> None:
    assert {role for role in Role if ALL[name].allows(role)} == EXPECTED[name]


def test_there_is_no_other_access() -> None:
    assert ALL.keys() == EXPECTED.keys()


def test_only_public_needs_nothing_and_only_the_signed_ones_take_a_signed_url() -> None:
    assert [name for name, access in ALL.items() if access.is_public] == ["PUBLIC"]
    signed = {name for name, access in ALL.items() if access.is_signed}
    assert signed == {"READ_OR_SIGNED", "SIGNED"}
    assert [name for name, access in ALL.items() if access.is_task] == ["TASK"]


def test_nobody_hands_on_more_than_they_have() -> None:
    routes = [access for access in ALL.values() if not access.is_public]
    for role in Role:
        for granted in policy.grants_of(role) - {Role.WORKER}:
            of_people = [access for access in routes if access != policy.RENEW]
            assert all(access.allows(role) for access in of_people if access.allows(granted))
    assert [role for role in Role if Role.WORKER in policy.grants_of(role)] == [Role.ADMIN]
    assert [role for role in Role if Role.METRICS in policy.grants_of(role)] == [Role.ADMIN]
    for role in (Role.WORKER, Role.METRICS):
        assert policy.grants_of(role) == frozenset()


def test_only_a_metrics_credential_of_the_site_sees_the_metrics_of_all_tenants() -> None:
    seeing = [
        (tenant, role)
        for tenant in (policy.SITE_TENANT, "acme")
        for role in Role
        if policy.sees_all_metrics(tenant, role)
    ]
    assert seeing == [(policy.SITE_TENANT, Role.METRICS)]
