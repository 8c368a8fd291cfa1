"""The identity in a certificate that TLS has verified.

1. The subject names the tenant (`O`) and the worker (`CN`, its instance id). One of each, no more: a certificate that
   could be read in two ways is none.
2. A fingerprint that a worker tells must be that of its certificate, and proves nothing by itself (PROTOCOL §6).
3. A certificate that has run out since the connection was opened counts no more: it is checked at every resume and
   every renewal.
"""

from __future__ import annotations

import msgspec

from astraflow.core import errors


class PeerCertificate(msgspec.Struct, frozen=True):
    """What a verified certificate says. `expires_at` is wall time; the fingerprint is SHA-256 in lower-case hex."""

    tenant: str
    worker_id: str
    fingerprint: str
    expires_at: float


def refusal_of(
    certificate: PeerCertificate | None,
    tenant: str,
    worker_id: str,
    fingerprint: str | None,
    wall: float,
) -> errors.Code | None:
    """Why a worker that names itself so is not let in with this certificate; None if it is."""
    if certificate is None:
        return errors.AUTH_MTLS_REQUIRED
    if fingerprint is not None and normal_fingerprint(fingerprint) != certificate.fingerprint:
        return errors.AUTH_INVALID_TOKEN
    is_own = certificate.tenant == tenant and certificate.worker_id == worker_id
    return None if is_own and wall < certificate.expires_at else errors.AUTH_INVALID_TOKEN


def normal_fingerprint(text: str) -> str:
    """A fingerprint however it was written: with colons, in capitals, with its algorithm."""
    return text.lower().removeprefix("sha256:").replace(":", "").strip()
