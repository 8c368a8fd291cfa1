"""TLS of a worker: what it trusts, and the certificate that it signs in with.

The certificate names the worker: its id is the `CN`, its tenant the `O`. Files are read at every connection, so that a
renewed certificate needs no restart.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from astraflow.config import WorkerSettings
from astraflow.core import errors
from astraflow.tls.contexts import client_context


class WorkerTls:
    """From the settings. Raises: Refused, when a file cannot be used."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self.downloads = self._context() if settings.tls_ca_file is not None else None
        """For downloads and uploads; None: as the system trusts."""
        self.certificate = (
            _read(settings.tls_cert_file)
            if settings.auth_mode == "mtls" and settings.tls_cert_file is not None
            else None
        )

    def for_connection(self) -> ssl.SSLContext:
        """A context for one connection. Raises: Refused."""
        return self._context()

    def _context(self) -> ssl.SSLContext:
        settings = self._settings
        return client_context(settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file)


class OwnCertificate:
    """What a worker's own certificate says."""

    def __init__(self, worker_id: str, tenant: str) -> None:
        self.worker_id = worker_id
        self.tenant = tenant


def _read(path: Path) -> OwnCertificate:
    # Imported here: a worker with a token needs none of it.
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unusable(path, "it cannot be read") from error
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    tenants = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if len(names) != 1 or len(tenants) != 1:
        raise _unusable(path, "its subject must name one tenant (O) and one worker (CN)")
    return OwnCertificate(str(names[0].value), str(tenants[0].value))


def _unusable(path: Path, why: str) -> errors.Refused:
    return errors.Refused(
        errors.CONFIG_INVALID,
        f"Cannot use the certificate {path}: {why}",
        pointer="/tls_cert_file",
        detail={"hint": "make one with `astra ca worker NAME`"},
    )
