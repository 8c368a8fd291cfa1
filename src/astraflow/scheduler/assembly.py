"""A scheduler put together from its settings: keys, tokens, the catalog, the store."""

from __future__ import annotations

import os
import socket
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.config import SchedulerSettings, Secret, WorkerAuth
from astraflow.core import errors
from astraflow.core.protocol.control import Handshake
from astraflow.core.protocol.events import Authenticate, GatewaySettings, Principal
from astraflow.core.security.bearer import ApiTokens, TokenRecord, digest_of
from astraflow.core.security.certificates import PeerCertificate, refusal_of
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.oidc import GroupRoles, OidcFlows
from astraflow.core.security.policy import SITE_TENANT, WORKER_SESSION, Role
from astraflow.core.security.tokens import SessionTokens
from astraflow.core.workflow import core_manifest
from astraflow.observe.metrics import Metrics
from astraflow.observe.spans import SpanExport
from astraflow.scheduler.blob_services import open_blob_services
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.scheduler.gauges import SchedulerGauge
from astraflow.scheduler.master_keys import open_master_keys
from astraflow.scheduler.oidc_terms import OidcTerms
from astraflow.scheduler.other_shards import NO_OTHER_SHARDS, OtherShards
from astraflow.scheduler.pool_services import open_pool_services
from astraflow.scheduler.run_traces import RunTraces
from astraflow.scheduler.service import Scheduler
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.shard_lanes import ONLY_LANES, ShardLanes
from astraflow.scheduler.shard_turns import ShardTurns
from astraflow.scheduler.writer import Reached, pass_by
from astraflow.store.store import Store
from astraflow.ulids import Ulids

if TYPE_CHECKING:
    from astraflow.store.cluster import StoredCluster

FIRST_SUBJECT: Final = "bootstrap"


def bootstrap_tokens(
    token: Secret | None, worker_token: Secret | None = None, metrics_token: Secret | None = None
) -> ApiTokens:
    """The tokens that open this scheduler: the configured one, "admin of tenant `default`", one for workers that
    were started with it, and the configured one for metrics. All have one subject: the identity of a worker is bound
    to it."""
    tokens = ApiTokens()
    given = ((metrics_token, Role.METRICS), (worker_token, Role.WORKER), (token, Role.ADMIN))
    for secret, role in given:
        if secret is not None:
            digest = digest_of(secret.reveal())
            tokens.put(TokenRecord(digest, SITE_TENANT, FIRST_SUBJECT, role))
    return tokens


def authenticator(tokens: ApiTokens, worker_auth: WorkerAuth = "any") -> Authenticate:
    """Who may open a worker's session: a token of the tenant whose role allows it, or a certificate that TLS has
    verified and that names the tenant and the worker."""

    def authenticate(
        handshake: Handshake, tenant: str, certificate: object, wall: float
    ) -> Principal | errors.Code:
        auth = handshake.auth
        if auth.mode == "mtls":
            return _prove_certificate(handshake, tenant, certificate, wall)
        if worker_auth == "mtls":
            return errors.AUTH_MTLS_REQUIRED
        if auth.token is None:
            return errors.AUTH_INVALID_TOKEN
        record = tokens.verify(auth.token, wall)
        if isinstance(record, errors.Code):
            return record
        if record.tenant != tenant or not WORKER_SESSION.allows(record.role):
            return errors.AUTH_INVALID_TOKEN
        return Principal(
            record.subject, record.tenant, record.role, record.expires_at, record.token_id
        )

    return authenticate


def _prove_certificate(
    handshake: Handshake, tenant: str, certificate: object, wall: float
) -> Principal | errors.Code:
    known = certificate if isinstance(certificate, PeerCertificate) else None
    worker_id = handshake.worker.worker_instance_id
    refusal = refusal_of(known, tenant, worker_id, handshake.auth.fingerprint, wall)
    if refusal is not None or known is None:
        return refusal or errors.AUTH_MTLS_REQUIRED
    return Principal(f"certificate:{worker_id}", tenant, Role.WORKER, known.expires_at)


def _oidc_terms(
    settings: SchedulerSettings, ring: KeyRing, origin: str, clock: Clock
) -> OidcTerms | None:
    if settings.oidc_issuer_url is None or settings.oidc_client_id is None:
        return None
    # Imported here: a site without an issuer needs neither an HTTP client nor JSON Web Keys.
    from astraflow.scheduler.oidc_issuer import OidcIssuer

    base = (settings.public_url or origin).rstrip("/")
    issuer = OidcIssuer(
        settings.oidc_issuer_url,
        settings.oidc_client_id,
        settings.oidc_client_secret,
        settings.oidc_scopes,
        f"{base}/api/v1/auth/oidc/callback",
        clock,
    )
    roles = GroupRoles(settings.oidc_roles)
    return OidcTerms(issuer, roles, settings.oidc_groups_claim, OidcFlows(ring))


def new_scheduler_id() -> str:
    """Two containers may have one host name and one pid: the claim on the store must not be taken for its own."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"


def assemble(
    settings: SchedulerSettings,
    *,
    store: Store,
    clock: Clock,
    secret: Secret,
    tokens: ApiTokens,
    metrics: Metrics,
    origin: str = "",
    reached: Reached = pass_by,
    rng: Random | None = None,
    spans: SpanExport | None = None,
    scheduler_id: str | None = None,
    turns: ShardTurns | None = None,
    lanes: ShardLanes = ONLY_LANES,
    cluster: StoredCluster | None = None,
    others: OtherShards = NO_OTHER_SHARDS,
) -> Scheduler:
    """Make a scheduler; nothing runs yet. `origin`: where it can be reached, unless `public_url` says so. `turns`: when
    it may claim its shard; without, always. `lanes`: which live in that shard.

    Raises:
        Refused: a setting about packages, blobs or secrets cannot be used.
    """
    engine = msgspec.structs.replace(settings.engine(), keeps_copies=True)
    rng = rng or Random(os.urandom(32))  # noqa: S311 - jitter only; ids and keys have their own source
    secrets = [line.encode() for line in secret.lines()]
    ring = KeyRing.of_secrets(secrets)
    base_url = (settings.public_url or origin).rstrip("/")
    current = Current()
    parts = Parts(
        scheduler_id=scheduler_id or new_scheduler_id(),
        store=store,
        clock=clock,
        ids=Ulids(clock),
        rng=rng,
        engine=engine,
        gateway=GatewaySettings(
            inline_bytes=settings.inline_payload_limit_bytes,
            heartbeat_interval_s=engine.heartbeat_interval_s,
            lease_ttl_s=engine.lease_ttl_s,
        ),
        retention=settings.retention(),
        authenticate=authenticator(tokens, settings.worker_auth),
        tokens=SessionTokens(ring),
        gauge=SchedulerGauge(metrics, current, is_alone=turns is None),
        reached=reached,
        session_ttl_s=settings.session_ttl_seconds,
        session_idle_s=settings.session_idle_seconds,
        requests_per_second=settings.requests_per_second,
        oidc=_oidc_terms(settings, ring, origin, clock),
        base_url=base_url,
        traces=RunTraces(spans),
        lanes=lanes,
        several_lanes=settings.several_lanes,
        cluster=cluster,
        others=others,
    )
    catalogs = Catalogs([core_manifest()])
    blobs = open_blob_services(settings, store, secrets, clock, catalogs, current, origin)
    pools = open_pool_services(
        current,
        ring=ring,
        secrets=secrets,
        clock=clock,
        rng=rng,
        base_url=base_url,
    )
    masters = open_master_keys(settings)
    return Scheduler(parts, catalogs, current, blobs, pools, tokens, masters, turns)
