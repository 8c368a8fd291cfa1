"""TLS contexts: of the scheduler's listener and of what connects to it.

Certificates and authorities are read again when their files change, so that renewed ones need no restart: new
connections get them, open ones go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from pathlib import Path
from typing import Any, Final

from astraflow.core import errors
from astraflow.core.security.certificates import PeerCertificate

RELOAD_S: Final = 5.0
_log: Final = logging.getLogger(__name__)


class ServerTls:
    """The context of a listener. With a CA for clients a certificate may be presented, and is verified then.

    A context cannot be told to trust an authority no longer. So a change makes a new one, and each connection gets the
    newest at its first message.
    """

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        """Raises: Refused, when a file cannot be used."""
        self._files = [one for one in (certificate, key, client_ca) if one is not None]
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._stamps = self._look()
        self._newest = self.context = self._load()
        self.context.sni_callback = self._take_newest

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            _load_ca(context, self._client_ca)
        load_pair(context, self._certificate, self._key)
        return context

    def _take_newest(self, connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        """OpenSSL calls it for each connection, also for one that names no server."""
        connection.context = self._newest

    def _look(self) -> list[tuple[int, int] | None]:
        return [_stamp_of(one) for one in self._files]

    async def watch(self) -> None:
        """Read the files again when they have changed; endless. Files that cannot be used are logged and left."""
        while True:
            await asyncio.sleep(RELOAD_S)
            stamps = await asyncio.to_thread(self._look)
            if stamps == self._stamps:
                continue
            self._stamps = stamps
            try:
                self._newest = await asyncio.to_thread(self._load)
                _log.info("the TLS files of the server were read again")
            except errors.Refused as error:
                _log.warning("the TLS files of the server could not be read again: %s", error)


def _stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def client_context(
    ca: Path | None, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """What a worker or a client connects with. `ca`: trusted beside the authorities of the system.

    Raises: Refused, when a file cannot be used.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is not None:
        _load_ca(context, ca)
    if certificate is not None and key is not None:
        load_pair(context, certificate, key)
    return context


def load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Raises: Refused."""
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(f"{certificate} and {key}", error) from error


def _load_ca(context: ssl.SSLContext, ca: Path) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(str(ca), error) from error


def _unusable(what: str, error: OSError) -> errors.Refused:
    reason = error.strerror or getattr(error, "reason", "") or "not a certificate"
    return errors.Refused(
        errors.CONFIG_INVALID,
        f"Cannot use the TLS files {what}: {reason}",
        detail={"hint": "make them with `astra ca`, or check the paths"},
    )


def peer_certificate(ssl_object: Any) -> PeerCertificate | None:
    """The identity in the certificate that a client presented and TLS verified; None if there is none.

    A certificate without exactly one tenant and one name is none. One that comes with a TLS session from before is
    none, either: it was verified by the authorities of then.
    """
    if ssl_object is None or ssl_object.session_reused:
        return None
    raw = ssl_object.getpeercert(binary_form=True)
    said = ssl_object.getpeercert()
    if not raw or not said:
        return None
    names: dict[str, list[str]] = {}
    for part in said.get("subject", ()):
        for name, value in part:
            names.setdefault(name, []).append(value)
    tenants, workers = names.get("organizationName", []), names.get("commonName", [])
    if len(tenants) != 1 or len(workers) != 1:
        return None
    expires_at = float(ssl.cert_time_to_seconds(said["notAfter"]))
    return PeerCertificate(tenants[0], workers[0], hashlib.sha256(raw).hexdigest(), expires_at)
