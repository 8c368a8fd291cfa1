"""Every setting: its name, type, default and meaning, once. Units are in the names.

A default that belongs to a part is the part's own: those of the engine are in `EngineSettings`, those of retention in
`Retention`, those of the wire in `core.protocol.limits`. docs/reference/settings.md is made from here.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from astraflow.config.secret import Secret
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol.limits import INLINE_RESULT_BYTES, MAX_CPU, MAX_PARALLEL
from astraflow.store.store import Retention

DEFAULT_DATA_DIR: Final = Path("var")
"""Beside the project, as the older documents have it (`var/worker_instance_id`): two folders on one machine never share
a store by accident, and what a trial run left is gone with its folder. An installed service names its own."""

ROW_BYTES: Final = 1_024
"""What an event or an audit row takes with its indexes, rounded up."""

_Port = Annotated[int, Meta(ge=0, le=65_535)]
_Ms = Annotated[int, Meta(ge=1, le=7 * 86_400_000)]
_Seconds = Annotated[int, Meta(ge=1, le=10 * 365 * 86_400)]
_Bytes = Annotated[int, Meta(ge=1, le=2**62)]
_Inline = Annotated[int, Meta(ge=1, le=INLINE_RESULT_BYTES)]
_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
_Text = Annotated[str, Meta(min_length=1, max_length=1_024)]
_Texts = tuple[_Text, ...]
_LogLevel = Literal["debug", "info", "warning", "error"]
WorkerAuth = Literal["any", "mtls"]
"""How workers may sign in."""
WorkerRouting = Literal["move", "relay"]
"""How workers come to the scheduler that serves their tenant."""
_Policy = Literal["off", "warn", "require"]

_ENGINE: Final = EngineSettings()
_RETENTION: Final = Retention()


def _says(text: str) -> Meta:
    return Meta(description=text)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `astra server` and `astra up`."""

    host: Annotated[
        _Text, _says("Address to listen on. An address beyond this machine needs a token")
    ] = "127.0.0.1"
    port: Annotated[_Port, _says("Port to listen on; 0 picks a free one")] = 8080
    data_dir: Annotated[Path, _says("Folder of the store, the secret and the token")] = (
        DEFAULT_DATA_DIR
    )
    database_url: Annotated[
        _Text | None,
        _says("`sqlite:///path` or `postgresql://…`. Unset: `astraflow.db` in the data folder"),
    ] = None
    bootstrap_token: Annotated[
        Secret | None,
        _says(
            "Token of an admin of tenant `default`. Unset: `astra up` makes one, `astra server` accepts no token"
        ),
    ] = None
    bootstrap_token_file: Annotated[
        Path | None, _says("File with the bootstrap token, readable by its owner alone")
    ] = None
    metrics_token: Annotated[
        Secret | None,
        _says("Token that reads `/metrics` with the samples of all tenants, and nothing else"),
    ] = None
    metrics_token_file: Annotated[
        Path | None, _says("File with the token for metrics, readable by its owner alone")
    ] = None
    secret: Annotated[
        Secret | None,
        _says(
            "Key that signs tokens, cursors and signed URLs, at least 16 bytes. "
            "Earlier ones may follow, one to a line. "
            "Unset: made and kept in the data folder (SQLite only)"
        ),
    ] = None
    secret_file: Annotated[
        Path | None, _says("File with the secret, readable by its owner alone")
    ] = None
    secrets_key: Annotated[
        Secret | None,
        _says(
            "Master key of the secrets: base64 of 32 bytes; older ones may follow after commas. "
            "Unset: made and kept in the data folder (SQLite only)"
        ),
    ] = None
    secrets_key_file: Annotated[
        Path | None, _says("File with the master key, readable by its owner alone")
    ] = None
    secrets_key_url: Annotated[
        _Text | None, _says("Key service that keeps the master key in place of the scheduler")
    ] = None
    secrets_key_token: Annotated[Secret | None, _says("Bearer token for the key service")] = None
    tls_cert_file: Annotated[
        Path | None, _says("Certificate of the server in PEM. Set: the scheduler speaks HTTPS only")
    ] = None
    tls_key_file: Annotated[
        Path | None, _says("Its private key in PEM, readable by its owner alone")
    ] = None
    tls_client_ca_file: Annotated[
        Path | None, _says("Authority whose certificates workers can sign in with")
    ] = None
    worker_auth: Annotated[
        WorkerAuth,
        _says("How workers sign in: with a token or a certificate (`any`), or with a certificate"),
    ] = "any"
    oidc_issuer_url: Annotated[
        _Text | None,
        _says(
            "OpenID Connect issuer at which people can log in. Unset: with passwords and links only"
        ),
    ] = None
    oidc_client_id: Annotated[_Text | None, _says("Id of this scheduler at the issuer")] = None
    oidc_client_secret: Annotated[
        Secret | None, _says("Its secret at the issuer. Unset: a public client, with PKCE alone")
    ] = None
    oidc_client_secret_file: Annotated[
        Path | None, _says("File with that secret, readable by its owner alone")
    ] = None
    oidc_groups_claim: Annotated[_Text, _says("Claim of the ID token that has the groups")] = (
        "groups"
    )
    oidc_roles: Annotated[
        dict[str, str],
        _says(
            "What a group may do: `ROLE` or `TENANT:ROLE`. The first one that a person has counts"
        ),
    ] = {}
    oidc_scopes: Annotated[_Texts, _says("Scopes that are asked for")] = (
        "openid",
        "profile",
        "email",
    )
    allowed_hosts: Annotated[_Texts, _says("Further names that a request's `Host` may have")] = ()
    heartbeat_interval_ms: Annotated[_Ms, _says("Heartbeat interval of the workers")] = _ms(
        _ENGINE.heartbeat_interval_s
    )
    lease_ttl_ms: Annotated[
        _Ms,
        _says(
            "Time to live of an attempt's lease without a heartbeat that names it. "
            "0.6 of it must cover two heartbeat intervals"
        ),
    ] = _ms(_ENGINE.lease_ttl_s)
    shard_lease_ms: Annotated[
        _Ms,
        _says(
            "PostgreSQL: how long a scheduler that does not answer keeps another from taking over. "
            "At most 0.58 x `lease_ttl_ms`"
        ),
    ] = 8_000
    dispatch_ack_timeout_ms: Annotated[
        _Ms, _says("Timeout after which a dispatch that is not acknowledged is withdrawn")
    ] = _ms(_ENGINE.dispatch_ack_timeout_s)
    cancel_grace_ms: Annotated[_Ms, _says("Time that cancelled work has to stop")] = (
        _ENGINE.cancel_grace_ms
    )
    inline_payload_limit_bytes: Annotated[
        _Inline, _says("Largest result that is sent by value")
    ] = _ENGINE.inline_limit_bytes
    forced_reference_types: Annotated[
        _Texts, _says("Artifact types that are always sent by reference")
    ] = ()
    resource_grace_seconds: Annotated[
        _Seconds, _says("Time that a task waits for the lost worker that holds its resource")
    ] = int(_ENGINE.resource_grace_s)
    resource_lost: Annotated[
        Literal["fail", "rebuild"],
        _says("What a node does whose resource is gone, unless the node says so itself"),
    ] = _ENGINE.resource_lost
    result_schema_policy: Annotated[
        Literal["off", "warn", "fail"],
        _says("What happens to a result that does not fit the schema of its node type"),
    ] = _ENGINE.result_schemas
    public_url: Annotated[
        _Text | None,
        _says("URL at which workers and browsers reach this scheduler, if not where it listens"),
    ] = None
    node_url: Annotated[
        _Text | None,
        _says(
            "PostgreSQL: URL at which the other schedulers of the same database, and workers that they send here, "
            "reach this one, if not where it listens"
        ),
    ] = None
    shards: Annotated[
        Annotated[int, Meta(ge=16, le=4_096)],
        _says(
            "PostgreSQL: shards that tenants and their lanes are divided among, at least as many as schedulers. More "
            "than there are adds some; there are never fewer again"
        ),
    ] = 16
    worker_routing: Annotated[
        WorkerRouting,
        _says(
            "PostgreSQL: what happens to a worker whose tenant another scheduler serves: it is sent there (`move`), or "
            "its connection is passed on (`relay`), for workers that do not reach each scheduler by its `node_url`"
        ),
    ] = "move"
    several_lanes: Annotated[
        bool,
        _says(
            "PostgreSQL: let an admin give a tenant several lanes, each with an engine of its own. On trial: set it on "
            "all schedulers, or on none"
        ),
    ] = False
    upgrade_wait_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=31_536_000)],
        _says(
            "PostgreSQL: how long all schedulers must have run a release before one of them writes what the release "
            "before cannot read. Until then they can go back to it"
        ),
    ] = 600
    node_watchdog_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=3_600)],
        _says(
            "PostgreSQL: a scheduler that owns shards ends when its event loop was blocked for so long, so that "
            "another can have them. 0: it does not"
        ),
    ] = 3
    node_ca_file: Annotated[
        Path | None,
        _says(
            "PostgreSQL: certificates (PEM) of the authority of the other schedulers' certificates, "
            "if the system does not know it"
        ),
    ] = None
    blobs_url: Annotated[
        _Text | None,
        _says(
            "Place of packages and exported artifacts: a folder or `s3://bucket/prefix`. "
            "Unset: in the data folder. Schedulers that share a database must share it"
        ),
    ] = None
    package_policy: Annotated[
        _Policy, _says("Signatures of packages: not checked, missing ones logged, or required")
    ] = "warn"
    trusted_keys: Annotated[
        _Texts, _says("Keys whose signatures count: `name=base64`, or a file with such lines")
    ] = ()
    shipped_packages: Annotated[
        bool, _says("Whether the packages that come with the installation are published")
    ] = True
    max_package_bytes: Annotated[_Bytes, _says("Largest package that can be published")] = (
        512 * 1024**2
    )
    max_artifact_bytes: Annotated[_Bytes, _says("Largest artifact that can be exported")] = (
        64 * 1024**3
    )
    max_active_tasks: Annotated[
        _Count, _says("Tasks of active runs beyond which new runs are refused")
    ] = _ENGINE.max_active_tasks
    max_sse_readers: Annotated[_Count, _says("Event streams open at once")] = 1_000
    retention_seconds: Annotated[_Seconds, _says("Age at which an ended run is removed")] = int(
        _RETENTION.finished_runs_s or 0
    )
    retention_runs: Annotated[_Count, _says("Ended runs that are kept")] = (
        _RETENTION.finished_runs or 0
    )
    retention_bytes: Annotated[_Bytes, _says("Size of the store above which ended runs go")] = (
        _RETENTION.max_bytes or 0
    )
    retention_events_seconds: Annotated[
        _Seconds, _says("Age at which an event of a tenant's stream is removed")
    ] = int(_RETENTION.tenant_events_s or 0)
    retention_audit_seconds: Annotated[_Seconds, _says("Age at which an audit row is removed")] = (
        int(_RETENTION.audit_s or 0)
    )
    retention_workflow_versions: Annotated[
        _Count, _says("Versions of a saved workflow that are kept")
    ] = _RETENTION.workflow_versions or 0
    retention_workers_seconds: Annotated[
        _Seconds, _says("Time since it was last seen after which a worker is forgotten")
    ] = int(_RETENTION.workers_s or 0)
    requests_per_second: Annotated[
        _Count | None,
        _says("Requests that one credential may send in a second. Unset: as many as it likes"),
    ] = None
    hook_requests_per_second: Annotated[
        _Count,
        _says(
            "Requests that the address of a webhook, or all those of a run, take in a second; twice as many at once"
        ),
    ] = 20
    session_ttl_seconds: Annotated[
        _Seconds, _says("Time after which a browser must log in again, whatever it did")
    ] = 7 * 24 * 3_600
    session_idle_seconds: Annotated[
        _Seconds, _says("Time without a request after which a browser must log in again")
    ] = 12 * 3_600
    log_level: Annotated[_LogLevel, _says("Least level that is logged")] = "info"
    otlp_endpoint: Annotated[
        _Text | None,
        _says(
            "Base URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces. "
            "`OTEL_EXPORTER_OTLP_ENDPOINT` does the same. Unset: no traces"
        ),
    ] = None

    @property
    def store_url(self) -> str:
        """The database that was named, else the SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'astraflow.db'}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def engine(self) -> EngineSettings:
        return EngineSettings(
            lease_ttl_s=self.lease_ttl_ms / 1000,
            heartbeat_interval_s=self.heartbeat_interval_ms / 1000,
            dispatch_ack_timeout_s=self.dispatch_ack_timeout_ms / 1000,
            cancel_grace_ms=self.cancel_grace_ms,
            resource_grace_s=float(self.resource_grace_seconds),
            affinity_grace_s=float(self.resource_grace_seconds),
            resource_lost=self.resource_lost,
            result_schemas=self.result_schema_policy,
            inline_limit_bytes=self.inline_payload_limit_bytes,
            forced_reference_types=frozenset(self.forced_reference_types),
            max_active_tasks=self.max_active_tasks,
        )

    def retention(self) -> Retention:
        # Events and audit rows get a tenth of the store each: so they never take the room of runs.
        rows = max(1_000, self.retention_bytes // 10 // ROW_BYTES)
        return Retention(
            finished_runs_s=float(self.retention_seconds),
            finished_runs=self.retention_runs,
            max_bytes=self.retention_bytes,
            tenant_events_s=float(self.retention_events_seconds),
            tenant_events=rows,
            audit_s=float(self.retention_audit_seconds),
            audits=rows,
            workflow_versions=self.retention_workflow_versions,
            workers_s=float(self.retention_workers_seconds),
        )


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `astra worker`."""

    scheduler_ws_url: Annotated[
        _Texts,
        _says(
            "URL of the scheduler. Several schedulers of one store, separated by commas, are tried in turn"
        ),
    ] = ("ws://127.0.0.1:8080/ws/worker",)
    auth_mode: Annotated[
        Literal["token", "mtls"],
        _says("How the worker signs in: with a token, or with the certificate in `tls_cert_file`"),
    ] = "token"
    tls_ca_file: Annotated[
        Path | None, _says("Authority of the scheduler's certificate, beside those of the system")
    ] = None
    tls_cert_file: Annotated[
        Path | None, _says("Certificate of the worker in PEM: it names its tenant and its id")
    ] = None
    tls_key_file: Annotated[
        Path | None, _says("Its private key in PEM, readable by its owner alone")
    ] = None
    auth_token: Annotated[Secret | None, _says("The worker's token")] = None
    auth_token_file: Annotated[
        Path | None, _says("File with the token, readable by its owner alone")
    ] = None
    tenant: Annotated[_Text, _says("Tenant of the worker")] = "default"
    name: Annotated[
        str, Meta(max_length=256), _says("Name for people. Unset: the name of the machine")
    ] = ""
    data_dir: Annotated[
        Path, _says("Folder of the worker's identity, its packages and resources")
    ] = DEFAULT_DATA_DIR
    concurrency_max_parallel: Annotated[
        int, Meta(ge=1, le=MAX_PARALLEL), _says("Attempts that run at once")
    ] = 64
    labels: Annotated[dict[str, str], _says("Labels that placement can ask for")] = {}
    capacity_cpu: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_CPU)] | None,
        _says("Processors for nodes that ask for some. Unset: those of the machine"),
    ] = None
    capacity_memory_bytes: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None,
        _says("Memory for nodes that ask for some. Unset: that of the machine"),
    ] = None
    capacity_gpu: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_CPU)] | None,
        _says("Graphics cards for nodes that ask for some. Unset: those that the machine shows"),
    ] = None
    runtime_names: Annotated[
        _Texts,
        _says("Runtimes that the worker offers, and no others. Unset: those of its packages"),
    ] = ()
    feature_flags: Annotated[_Texts, _says("Commands that the worker accepts")] = (
        "pkg.install",
        "pkg.uninstall",
        "resource.export",
    )
    resource_max_disk_bytes: Annotated[_Bytes, _says("Limit of the files that it keeps")] = (
        20 * 1024**3
    )
    resource_max_mem_bytes: Annotated[
        _Bytes, _says("Limit of the objects that it keeps in memory")
    ] = 8 * 1024**3
    resource_gc_interval_seconds: Annotated[
        _Seconds, _says("Interval at which expired resources are removed")
    ] = 60
    resource_default_ttl_seconds: Annotated[
        _Seconds, _says("Time to live of a resource that names none")
    ] = 3_600
    inline_result_limit_bytes: Annotated[_Inline, _says("Largest result that is sent by value")] = (
        INLINE_RESULT_BYTES
    )
    resource_max_sessions: Annotated[
        _Count, _says("Objects that it keeps in memory at once, whatever their size")
    ] = 1_000
    package_policy: Annotated[
        _Policy, _says("As the scheduler's: a worker checks signatures for itself")
    ] = "warn"
    trusted_keys: Annotated[_Texts, _says("As the scheduler's")] = ()
    package_hooks: Annotated[
        _Texts,
        _says(
            "Packages whose install hooks may run, `*` for all. A hook is code with the worker's rights"
        ),
    ] = ()
    package_unpinned: Annotated[
        bool, _says("Whether dependencies without an exact version are installed")
    ] = False
    packages_kept: Annotated[
        int,
        Meta(ge=0, le=1_000),
        _says("Versions of a package that stay installed beside the newest"),
    ] = 3
    package_install_timeout_seconds: Annotated[
        _Seconds, _says("Timeout of one install, downloads included")
    ] = 600
    package_hook_timeout_seconds: Annotated[_Seconds, _says("Timeout of one hook")] = 60
    host_max_mem_bytes: Annotated[
        _Bytes | None,
        _says(
            "Memory of a package host and all that it starts, above which it is killed (`E.RUNNER.OOM`). "
            "Unset: three quarters of the machine's memory"
        ),
    ] = None
    host_max_processes: Annotated[
        int,
        Meta(ge=1, le=100_000),
        _says("Processes of a package host above which it is killed (`E.RUNNER.LIMIT`)"),
    ] = 256
    host_environment: Annotated[
        _Texts,
        _says(
            "Names of environment variables that package code may see, beside those that all programs need "
            "(`PATH`, `HOME`, the language, proxies, certificates, graphics cards)"
        ),
    ] = ()
    metrics_host: Annotated[_Text, _says("Address of the worker's own `/metrics`")] = "127.0.0.1"
    metrics_port: Annotated[_Port | None, _says("Port of `/metrics`. Unset: no such page")] = None
    drain_timeout_seconds: Annotated[
        _Seconds, _says("Time that running work gets when the worker is told to stop")
    ] = 30
    log_level: Annotated[_LogLevel, _says("Least level that is logged")] = "info"
    otlp_endpoint: Annotated[
        _Text | None,
        _says(
            "Base URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces. "
            "`OTEL_EXPORTER_OTLP_ENDPOINT` does the same. Unset: no traces"
        ),
    ] = None
