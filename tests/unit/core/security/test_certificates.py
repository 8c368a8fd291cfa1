from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.security.certificates import (
    PeerCertificate,
    normal_fingerprint,
    refusal_of,
)

PRINT = "ab" * 32
OURS = PeerCertificate("default", "w-1", PRINT, 1_000.0)


def refused(
    certificate: PeerCertificate | None = OURS,
    tenant: str = "default",
    worker_id: str = "w-1",
    fingerprint: str | None = None,
    wall: float = 999.0,
) -> errors.Code | None:
    return refusal_of(certificate, tenant, worker_id, fingerprint, wall)


def test_the_worker_that_the_certificate_names_is_let_in() -> None:
    assert refused() is None


@pytest.mark.parametrize(
    "told", [PRINT, PRINT.upper(), f"SHA256:{PRINT}", ":".join(["AB"] * 32), f" {PRINT}\n"]
)
def test_its_own_fingerprint_may_be_told_in_any_spelling(told: str) -> None:
    assert refused(fingerprint=told) is None
    assert normal_fingerprint(told) == PRINT


@pytest.mark.parametrize("told", ["", "cd" * 32, PRINT[:-2], PRINT + "ab", "sha1:" + PRINT])
def test_another_fingerprint_is_refused(told: str) -> None:
    assert refused(fingerprint=told) is errors.AUTH_INVALID_TOKEN


def test_without_a_certificate_a_fingerprint_proves_nothing() -> None:
    assert refused(None) is errors.AUTH_MTLS_REQUIRED
    assert refused(None, fingerprint=PRINT) is errors.AUTH_MTLS_REQUIRED


@pytest.mark.parametrize(("tenant", "worker"), [("umbrella", "w-1"), ("default", "w-2"), ("", "")])
def test_another_tenant_and_another_worker_are_refused(tenant: str, worker: str) -> None:
    assert refused(tenant=tenant, worker_id=worker) is errors.AUTH_INVALID_TOKEN


def test_a_certificate_counts_until_the_second_in_which_it_expires() -> None:
    assert refused(wall=999.999) is None
    assert refused(wall=1_000.0) is errors.AUTH_INVALID_TOKEN
    assert refused(wall=2_000.0, fingerprint=PRINT) is errors.AUTH_INVALID_TOKEN
