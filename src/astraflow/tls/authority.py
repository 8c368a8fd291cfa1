"""A small certificate authority, for people without one: a root, a certificate of the scheduler, those of workers.

Everything lies in one folder: `ca.pem` and `ca.key`, and a pair for each name. Keys are readable by their owner alone.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from astraflow.clock import Clock
from astraflow.core import errors

CA_DAYS: Final = 3_650
LEAF_DAYS: Final = 90
SKEW: Final = timedelta(minutes=5)
"""A certificate is good from a little before it was made: clocks differ."""
_NAME: Final = "AstraFlow workers"


class Authority:
    """The authority in a folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock
        self.certificate_file = folder / "ca.pem"
        self.key_file = folder / "ca.key"

    def create(self, days: int = CA_DAYS) -> None:
        """Make the root. Raises: Conflict, when there is one; Refused, when the folder cannot be written."""
        if self.certificate_file.exists() or self.key_file.exists():
            raise errors.Conflict(
                errors.CONFIG_INVALID, f"There is an authority already: {self.folder}"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
        built = (
            _builder(name, name, key.public_key(), self._now(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(is_ca=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write(self.key_file, _key_bytes(key), 0o600)
        _write(self.certificate_file, _pem(built), 0o644)

    def issue_server(self, hosts: list[str], days: int = LEAF_DAYS) -> tuple[Path, Path]:
        """A certificate for the scheduler at these names and addresses. Raises: Refused."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
        names = x509.SubjectAlternativeName([_host(one) for one in hosts])
        return self._issue("server", name, ExtendedKeyUsageOID.SERVER_AUTH, days, names)

    def issue_worker(self, worker_id: str, tenant: str, days: int = LEAF_DAYS) -> tuple[Path, Path]:
        """A certificate that names a worker and its tenant. Raises: Refused."""
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, tenant),
                x509.NameAttribute(NameOID.COMMON_NAME, worker_id),
            ]
        )
        return self._issue(worker_id, name, ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def _issue(
        self,
        file: str,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        days: int,
        names: x509.SubjectAlternativeName | None = None,
    ) -> tuple[Path, Path]:
        issuer, issuer_key = self._open()
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, issuer.subject, key.public_key(), self._now(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
                critical=False,
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(issuer_key, hashes.SHA256())
        certificate, place = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        _write(place, _key_bytes(key), 0o600)
        _write(certificate, _pem(signed), 0o644)
        return certificate, place

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)

    def _open(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
            key = serialization.load_pem_private_key(self.key_file.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"There is no authority in {self.folder}",
                detail={"hint": "make one with `astra ca init`"},
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise errors.Refused(errors.CONFIG_INVALID, f"Not a key of ours: {self.key_file}")
        return certificate, key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, raw: bytes, mode: int) -> None:
    """Whole or not at all. Raises: Refused."""
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        raise errors.Refused(
            errors.CONFIG_INVALID, f"Cannot write {path}: {error.strerror}"
        ) from error
