"""What must hold of settings together. Each rule yields a sentence for each problem."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from astraflow.config.secret import OTHERS, Secret
from astraflow.config.settings import SchedulerSettings, WorkerSettings
from astraflow.core.protocol.limits import FENCE_RATIO
from astraflow.core.security.keys import MAX_SECRETS, MIN_SECRET_BYTES
from astraflow.core.security.oidc import GroupRoles

SHARD_LEASE_RATIO: Final = 0.58
"""Of the attempt's lease. A scheduler that was replaced may answer heartbeats for 0.6 of its shard lease, and a worker
so answered works for 0.6 of the attempt's; both must be over when the new owner gives the attempt away, on clocks that
run 5 % apart: 0.6 x shard + 0.6 x attempt <= 0.95 x attempt (ADR 25)."""
_MIN_TOKEN_CHARS: Final = 16
"""What a token must have once others than this machine can try to guess it."""


def scheduler_rules(settings: SchedulerSettings) -> Iterator[str]:
    fence_ms = settings.lease_ttl_ms * FENCE_RATIO
    if fence_ms < 2 * settings.heartbeat_interval_ms:
        # R14. The lease is the heartbeat's timeout: this is stricter than "timeout >= 2 x interval".
        yield (
            f"lease_ttl_ms: the fence, {FENCE_RATIO} x lease_ttl_ms, must cover two heartbeat intervals of "
            f"{settings.heartbeat_interval_ms} ms: {settings.lease_ttl_ms}"
        )
    token = settings.bootstrap_token
    if token is not None and not token.reveal().strip():
        yield "bootstrap_token: is blank; unset it to start closed"
    if not settings.is_loopback:
        if token is None:
            yield f"host: others could connect, but no bootstrap_token is configured: {settings.host}"
        elif len(token.reveal()) < _MIN_TOKEN_CHARS:
            yield f"bootstrap_token: others could guess it; use at least {_MIN_TOKEN_CHARS} characters"
    yield from _metrics_token_rules(settings)
    yield from _secret_rules(settings.secret)
    yield from _tls_rules(settings)
    yield from _oidc_rules(settings)
    yield from _database_rules(settings)
    yield from _node_rules(settings.node_url)
    yield from _folder_rules(settings.data_dir)


def _metrics_token_rules(settings: SchedulerSettings) -> Iterator[str]:
    token = settings.metrics_token
    if token is None:
        return
    if not token.reveal().strip():
        yield "metrics_token: is blank; unset it to have none"
    elif token == settings.bootstrap_token:
        yield "metrics_token: is the bootstrap_token, which may do everything; use another one"
    elif not settings.is_loopback and len(token.reveal()) < _MIN_TOKEN_CHARS:
        yield f"metrics_token: others could guess it; use at least {_MIN_TOKEN_CHARS} characters"


def _secret_rules(secret: Secret | None) -> Iterator[str]:
    if secret is None:
        return
    lines = secret.lines()
    if not lines or any(len(line.encode()) < MIN_SECRET_BYTES for line in lines):
        yield f"secret: can be guessed; use at least {MIN_SECRET_BYTES} bytes in each line"
    if len(lines) > MAX_SECRETS:
        yield f"secret: has {len(lines)} lines; keep the newest {MAX_SECRETS} at most"


def _tls_rules(settings: SchedulerSettings) -> Iterator[str]:
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield "tls_cert_file and tls_key_file: set both of them, or none"
    if settings.tls_client_ca_file is not None and settings.tls_cert_file is None:
        yield "tls_client_ca_file: needs tls_cert_file and tls_key_file"
    if settings.worker_auth == "mtls" and settings.tls_client_ca_file is None:
        yield "worker_auth: mtls needs tls_client_ca_file"
    yield from _key_rules(settings.tls_key_file)


def _oidc_rules(settings: SchedulerSettings) -> Iterator[str]:
    url = settings.oidc_issuer_url
    if url is None:
        return
    if not is_private_url(url):
        yield f"oidc_issuer_url: must begin with https://, but for this machine: {url}"
    if settings.oidc_client_id is None:
        yield "oidc_client_id: must be set with oidc_issuer_url"
    if "openid" not in settings.oidc_scopes:
        yield "oidc_scopes: must have openid"
    if settings.public_url is None and not settings.is_loopback:
        yield "public_url: must be set with oidc_issuer_url: the issuer sends browsers back to it"
    if not settings.oidc_roles:
        yield "oidc_roles: nobody could log in; give a role to a group"
    try:
        GroupRoles(settings.oidc_roles)
    except ValueError as error:
        yield f"oidc_roles: {error}"


def is_private_url(url: str) -> bool:
    """Whether nobody can listen: with TLS, or on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_here = host in ("127.0.0.1", "::1", "localhost")
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_here))


def _key_rules(key: Path | None) -> Iterator[str]:
    if key is not None and key.is_file() and key.stat().st_mode & OTHERS:
        yield f"tls_key_file: others can read it; run: chmod 600 {key}"


def _node_rules(url: str | None) -> Iterator[str]:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_good = is_good and not (parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        is_good = False
    if not is_good:
        yield f"node_url: must be http:// or https://, a host, and a port if needed: {url}"


def _database_rules(settings: SchedulerSettings) -> Iterator[str]:
    url = settings.store_url
    if not url.startswith(("sqlite:", "memory:", "postgresql:", "postgres:")):
        scheme = url.partition(":")[0]  # the rest may hold a password
        yield f"database_url: must begin with sqlite:/// or postgresql://: {scheme}"
    elif url.startswith("postgres") and settings.secret is None:
        yield "secret: must be set with PostgreSQL, the same for every scheduler"
    if url.startswith("postgres"):
        most_ms = int(SHARD_LEASE_RATIO * settings.lease_ttl_ms)
        if settings.shard_lease_ms > most_ms:
            yield (
                f"shard_lease_ms: must not be above {SHARD_LEASE_RATIO} x lease_ttl_ms, which is {most_ms} ms: "
                f"{settings.shard_lease_ms}"
            )


def worker_rules(settings: WorkerSettings) -> Iterator[str]:
    if not settings.scheduler_ws_url:
        yield "scheduler_ws_url: must not be empty"
    for url in settings.scheduler_ws_url:
        if not url.startswith(("ws://", "wss://")):
            yield f"scheduler_ws_url: must begin with ws:// or wss://: {url}"
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield "tls_cert_file and tls_key_file: set both of them, or none"
    if settings.auth_mode == "mtls":
        if settings.tls_cert_file is None:
            yield "auth_mode: mtls needs tls_cert_file and tls_key_file"
        if any(url.startswith("ws://") for url in settings.scheduler_ws_url):
            yield "auth_mode: mtls needs a scheduler_ws_url that begins with wss://"
    yield from _key_rules(settings.tls_key_file)
    if settings.auth_token is not None and not settings.auth_token.reveal().strip():
        yield "auth_token: is blank"
    yield from _folder_rules(settings.data_dir)


def _folder_rules(folder: Path) -> Iterator[str]:
    """It must be writable, or be possible to make. Nothing is made here: a check leaves no trace."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        yield f"data_dir: not a folder: {nearest}"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        yield f"data_dir: not writable: {nearest}"
