"""Settings of a process: read once, checked together, each value with the place it came from.

1. The later wins: defaults, the file (`astraflow.toml`), the environment (`ASTRA_SCHEDULER_*`, `ASTRA_WORKER_*`),
   flags.
2. Nothing is silently ignored. An unknown name is a problem that names the nearest known one; a name of the older
   documents that has no meaning any more is told in `notes`.
3. All problems are reported in one error, and nothing has been started or written by then.
4. What must not be read by others is a `Secret`, which prints as `***`.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from astraflow.core import errors
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol.limits import FENCE_RATIO, INLINE_RESULT_BYTES, MAX_PARALLEL
from astraflow.core.security.bearer import token_text
from astraflow.core.security.keys import MIN_SECRET_BYTES
from astraflow.store.store import Retention

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_DATA_DIR",
    "ConfigError",
    "Loaded",
    "SchedulerSettings",
    "Secret",
    "WorkerSettings",
    "keep_secret",
    "keep_token",
    "load_scheduler",
    "load_worker",
]

CONFIG_FILE: Final = "astraflow.toml"
DEFAULT_DATA_DIR: Final = Path("var")
"""Beside the project, as the older documents have it (`var/worker_instance_id`): two folders on one machine never share
a store by accident, and what a trial run left is gone with its folder. An installed service names its own."""

SHARD_LEASE_RATIO: Final = 0.58
"""Of the attempt's lease. A scheduler that was replaced may answer heartbeats for 0.6 of its shard lease, and a worker
so answered works for 0.6 of the attempt's; both must be over when the new owner gives the attempt away, on clocks that
run 5 % apart: 0.6 x shard + 0.6 x attempt <= 0.95 x attempt (ADR 25)."""

ROW_BYTES: Final = 1_024
"""What an event or an audit row takes with its indexes, rounded up."""

_PASSWORD: Final = re.compile(r"(://[^/@:]*:)[^@]*(@)")
_SECRET_BYTES: Final = 32
_MIN_TOKEN_CHARS: Final = 16
"""What a token must have once others than this machine can try to guess it."""


class Secret:
    """A text that shows itself only when asked for by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and secrets.compare_digest(
            self._text.encode("utf-8", "replace"), other._text.encode("utf-8", "replace")
        )

    def __hash__(self) -> int:
        return hash(self._text)


_Port = Annotated[int, Meta(ge=0, le=65_535)]
_Ms = Annotated[int, Meta(ge=1, le=7 * 86_400_000)]
_Seconds = Annotated[int, Meta(ge=1, le=10 * 365 * 86_400)]
_Bytes = Annotated[int, Meta(ge=1, le=2**62)]
_Inline = Annotated[int, Meta(ge=1, le=INLINE_RESULT_BYTES)]
_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
_Text = Annotated[str, Meta(min_length=1, max_length=1_024)]
_LogLevel = Literal["debug", "info", "warning", "error"]
_Policy = Literal["off", "warn", "require"]
"""Signatures of packages: not looked at, missed aloud, or demanded."""


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `astra server` and `astra up` run with. Units are in the names."""

    host: _Text = "127.0.0.1"
    port: _Port = 8080
    data_dir: Path = DEFAULT_DATA_DIR
    database_url: _Text | None = None
    bootstrap_token: Secret | None = None
    bootstrap_token_file: Path | None = None
    secret: Secret | None = None
    secret_file: Path | None = None
    allowed_hosts: tuple[_Text, ...] = ()
    heartbeat_interval_ms: _Ms = 5_000
    lease_ttl_ms: _Ms = 30_000
    shard_lease_ms: _Ms = 8_000
    """How long a scheduler that does not answer keeps others from taking over. PostgreSQL only."""
    dispatch_ack_timeout_ms: _Ms = 5_000
    cancel_grace_ms: _Ms = 30_000
    inline_payload_limit_bytes: _Inline = INLINE_RESULT_BYTES
    forced_reference_types: tuple[_Text, ...] = ()
    default_resource_ttl_seconds: _Seconds = 3_600
    resource_grace_seconds: _Seconds = 30
    """How long a task waits for the lost worker that holds its resource."""
    resource_lost: Literal["fail", "rebuild"] = "fail"
    """What a node does whose resource is gone, unless it says so itself."""
    public_url: _Text | None = None
    """Where workers and browsers reach this scheduler, if not where it listens (`https://…`)."""
    blobs_url: _Text | None = None
    """Where packages and exported artifacts are: a folder, or `s3://bucket/prefix`. Unset: in the data folder."""
    package_policy: _Policy = "warn"
    trusted_keys: tuple[_Text, ...] = ()
    """Keys whose signatures count, each `name=base64`, or the path of a file with such lines."""
    shipped_packages: bool = True
    """Whether the packages that come with the installation are published, unless they are there."""
    max_package_bytes: _Bytes = 512 * 1024**2
    max_artifact_bytes: _Bytes = 64 * 1024**3
    max_active_tasks: _Count = 1_000_000
    max_sse_readers: _Count = 1_000
    retention_seconds: _Seconds = 30 * 86_400
    retention_runs: _Count = 100_000
    retention_bytes: _Bytes = 10 * 1024**3
    retention_events_seconds: _Seconds = 7 * 86_400
    retention_audit_seconds: _Seconds = 365 * 86_400
    retention_workflow_versions: _Count = 100
    retention_workers_seconds: _Seconds = 30 * 86_400
    log_level: _LogLevel = "info"

    @property
    def store_url(self) -> str:
        """The database that was named, else the SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'astraflow.db'}"

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    def engine(self) -> EngineSettings:
        return EngineSettings(
            lease_ttl_s=self.lease_ttl_ms / 1000,
            heartbeat_interval_s=self.heartbeat_interval_ms / 1000,
            dispatch_ack_timeout_s=self.dispatch_ack_timeout_ms / 1000,
            cancel_grace_ms=self.cancel_grace_ms,
            resource_grace_s=float(self.resource_grace_seconds),
            affinity_grace_s=float(self.resource_grace_seconds),
            resource_lost=self.resource_lost,
            inline_limit_bytes=self.inline_payload_limit_bytes,
            forced_reference_types=frozenset(self.forced_reference_types),
            max_active_tasks=self.max_active_tasks,
        )

    def retention(self) -> Retention:
        return Retention(
            finished_runs_s=float(self.retention_seconds),
            finished_runs=self.retention_runs,
            max_bytes=self.retention_bytes,
            tenant_events_s=float(self.retention_events_seconds),
            tenant_events=_rows(self.retention_bytes),
            audit_s=float(self.retention_audit_seconds),
            audits=_rows(self.retention_bytes),
            workflow_versions=self.retention_workflow_versions,
            workers_s=float(self.retention_workers_seconds),
        )


def _rows(max_bytes: int) -> int:
    """Tenant events, and audit rows, that fit into a tenth of the store each: so they never take the room of runs."""
    return max(1_000, max_bytes // 10 // ROW_BYTES)


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `astra worker` runs with. Units are in the names."""

    scheduler_ws_url: tuple[_Text, ...] = ("ws://127.0.0.1:8080/ws/worker",)
    """Schedulers of one store, tried in turn: one of them serves."""
    auth_mode: Literal["token", "mtls"] = "token"
    auth_token: Secret | None = None
    auth_token_file: Path | None = None
    tenant: _Text = "default"
    name: Annotated[str, Meta(max_length=256)] = ""
    data_dir: Path = DEFAULT_DATA_DIR
    concurrency_max_parallel: Annotated[int, Meta(ge=1, le=MAX_PARALLEL)] = 64
    labels: dict[str, str] = {}
    runtime_names: tuple[_Text, ...] = ()
    """Runtimes that this machine can do, and no others. Empty: whatever the packages on it bring."""
    feature_flags: tuple[_Text, ...] = ("pkg.install", "pkg.uninstall", "resource.export")
    resource_max_disk_bytes: _Bytes = 20 * 1024**3
    resource_max_mem_bytes: _Bytes = 8 * 1024**3
    resource_gc_interval_seconds: _Seconds = 60
    resource_default_ttl_seconds: _Seconds = 3_600
    inline_result_limit_bytes: _Inline = INLINE_RESULT_BYTES
    resource_max_sessions: _Count = 1_000
    """Things kept in memory at once, whatever their size."""
    package_policy: _Policy = "warn"
    trusted_keys: tuple[_Text, ...] = ()
    """As the scheduler's: a worker does not take its scheduler's word for what it runs."""
    package_hooks: tuple[_Text, ...] = ()
    """Packages whose install hooks may run, `*` for all; a hook is code with the worker's rights."""
    package_unpinned: bool = False
    """Whether packages may name dependencies without an exact version."""
    packages_kept: Annotated[int, Meta(ge=0, le=1_000)] = 3
    """Versions of a package that stay installed beside the newest, so that going back is quick."""
    package_install_timeout_seconds: _Seconds = 600
    package_hook_timeout_seconds: _Seconds = 60
    host_max_mem_bytes: _Bytes | None = None
    """What one package host and all below it may hold; one that holds more is killed. None: three quarters of the
    machine's memory."""
    host_max_processes: Annotated[int, Meta(ge=1, le=100_000)] = 256
    """What one package host may start; one that starts more is killed."""
    host_environment: tuple[_Text, ...] = ()
    """Names of environment variables that package code may see beside those that all programs need."""
    metrics_host: _Text = "127.0.0.1"
    metrics_port: _Port | None = None
    """Where the worker's own `/metrics` is; nowhere unless it is set."""
    drain_timeout_seconds: _Seconds = 30
    """How long a worker that is told to stop lets its work go on."""
    log_level: _LogLevel = "info"


_RETIRED: Final[Mapping[str, str]] = {
    "ASTRA_WORKER_TRANSPORT": "there is one transport, the WebSocket",
    "ASTRA_WORKER_WORKER_VERSION": "a worker reports the version that is installed",
    "ASTRA_WORKER_HANDSHAKE_PROTOCOL_VERSION": "a worker speaks the newest protocol of its scheduler",
}
"""Names of the older documents that have no effect any more, and why."""

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


class ConfigError(errors.Refused):
    """The settings cannot be used; `problems` says all that is wrong. Nothing was started."""

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(errors.CONFIG_INVALID, f"{count} in the settings{lines}")
        self.problems = tuple(problems)


class Loaded(msgspec.Struct, Generic[_Settings], frozen=True):
    """Settings, and where each value came from."""

    settings: _Settings
    sources: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def shown(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of every setting, fit for people to read: secrets are `***`."""
        return [
            (name, _as_text(getattr(self.settings, name)), self.sources[name])
            for name in self.settings.__struct_fields__
        ]


def load_scheduler(
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded[SchedulerSettings]:
    """Read the scheduler's settings. `flags`: by setting name, None where a flag was not given.

    Raises:
        ConfigError: with everything that is wrong.
    """
    reader = _Reader("scheduler", SchedulerSettings, file)
    return reader.read(flags or {}, _environ(environ), _scheduler_rules)


def load_worker(
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded[WorkerSettings]:
    """Read a worker's settings, as `load_scheduler`."""
    reader = _Reader("worker", WorkerSettings, file)
    return reader.read(flags or {}, _environ(environ), _worker_rules)


def keep_secret(settings: SchedulerSettings) -> Secret:
    """The secret that signs tokens: the configured one, else the one kept in the data folder, made if need be.

    Raises:
        ConfigError: the kept one is readable by others or cannot be written.
    """
    return settings.secret or _kept(settings.data_dir / "secret", secrets.token_urlsafe)


def keep_token(settings: SchedulerSettings) -> Secret:
    """The first admin's token, as `keep_secret`. Only `astra up` makes one; `astra server` starts closed."""
    return settings.bootstrap_token or _kept(
        settings.data_dir / "token", lambda count: token_text(secrets.token_bytes(count))
    )


def _kept(path: Path, make: Callable[[int], str]) -> Secret:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # O_EXCL: two processes that start at once must not each believe in their own.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return _read_secret(path, str(path))
        with os.fdopen(descriptor, "w") as stream:
            text = make(_SECRET_BYTES)
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        return Secret(text)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be kept: {error.strerror}"]) from error


def _read_secret(path: Path, source: str) -> Secret:
    """Raises: ConfigError, when the file is missing, empty, or readable by others than its owner."""
    try:
        mode = path.stat().st_mode
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{source}: cannot be read: {path}"]) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError([f"{source}: others can read it; run: chmod 600 {path}"])
    if not text:
        raise ConfigError([f"{source}: the file is empty: {path}"])
    return Secret(text)


class _Reader(Generic[_Settings]):
    """Gathers the values of one process from all places, and the problems with them."""

    def __init__(self, table: str, kind: type[_Settings], file: Path | None) -> None:
        self.table = table
        self.kind: type[_Settings] = kind
        self.file = file
        self.types = _types(kind)
        self.prefix = f"ASTRA_{table.upper()}_"
        self.values: dict[str, Any] = {}
        self.sources = dict.fromkeys(kind.__struct_fields__, "default")
        self.problems: list[str] = []
        self.notes: list[str] = []

    def read(
        self,
        flags: Mapping[str, object],
        environ: Mapping[str, str],
        rules: Callable[[_Settings], Iterator[str]],
    ) -> Loaded[_Settings]:
        self._take_file()
        self._take_environment(environ)
        for name, value in flags.items():
            if value is not None:
                self._take(name, value, f"--{name.replace('_', '-')}", "flag")
        self._take_secret_files()
        settings = self.kind(**self.values)
        # A value that could not be read has its default here: then a rule may say too much, never too little.
        self.problems.extend(rules(settings))
        if self.problems:
            raise ConfigError(self.problems)
        return Loaded(settings, self.sources, tuple(self.notes))

    def _take_file(self) -> None:
        path = self.file or Path(CONFIG_FILE)
        if self.file is None and not path.is_file():
            return
        try:
            tables = tomllib.loads(path.read_text())
        except OSError as error:
            self.problems.append(f"{path}: cannot be read: {error.strerror}")
            return
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.problems.append(f"{path}: not a TOML file: {error}")
            return
        known: dict[str, type[Any]] = {"scheduler": SchedulerSettings, "worker": WorkerSettings}
        for table, values in tables.items():
            if table not in known:
                self.problems.append(f"{path}: unknown table {table!r}{_nearest(table, known)}")
            elif not isinstance(values, dict):
                self.problems.append(f"{path}: must be a table: [{table}]")
            elif table == self.table:
                for name, value in values.items():
                    self._take(name, value, f"{path}: [{table}] {name}", str(path))
            else:
                self._refuse_unknown(path, table, values, known[table].__struct_fields__)
        self._refuse_open_file(path)

    def _refuse_unknown(
        self, path: Path, table: str, values: Mapping[str, object], known: Sequence[str]
    ) -> None:
        """The other process reads its own table; a name that is wrong in it is told at once all the same."""
        for name in values:
            if name not in known:
                nearest = _nearest(name, known)
                self.problems.append(f"{path}: [{table}] {name}: unknown setting{nearest}")

    def _refuse_open_file(self, path: Path) -> None:
        holds_secret = any(
            isinstance(self.values.get(name), Secret) and source == str(path)
            for name, source in self.sources.items()
        )
        if holds_secret and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            self.problems.append(f"{path}: holds a secret; run: chmod 600 {path}")

    def _take_environment(self, environ: Mapping[str, str]) -> None:
        for name in sorted(environ):
            if not name.startswith(self.prefix):
                continue
            if name in _RETIRED:
                self.notes.append(f"{name} has no effect: {_RETIRED[name]}")
                continue
            self._take(name.removeprefix(self.prefix).lower(), environ[name], name, name)

    def _take(self, name: str, value: object, where: str, source: str) -> None:
        if name not in self.types:
            known = list(self.types)
            if where.startswith(self.prefix):
                known = [self.prefix + one.upper() for one in known]
            nearest = _nearest(where if where.startswith(self.prefix) else name, known)
            self.problems.append(f"{where}: unknown setting{nearest}")
            return
        try:
            self.values[name] = _convert(value, self.types[name])
        except ValueError as error:
            shown = "***" if _is_secret(self.types[name]) else repr(value)
            self.problems.append(f"{where}: {_sentence(error, name)}: {shown}")
            return
        self.sources[name] = source

    def _take_secret_files(self) -> None:
        """`x_file` names the file that holds `x`; to give both is to be unsure which one counts."""
        for name in self.types:
            path = self.values.get(f"{name}_file")
            if path is None:
                continue
            if self.values.get(name) is not None:
                self.problems.append(f"{name} and {name}_file are both set; keep one of them")
                continue
            try:
                self.values[name] = _read_secret(path, f"{name}_file")
                self.sources[name] = str(path)
            except ConfigError as error:
                self.problems.extend(error.problems)


def _scheduler_rules(settings: SchedulerSettings) -> Iterator[str]:
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
    if settings.secret is not None and len(settings.secret.reveal().encode()) < MIN_SECRET_BYTES:
        yield f"secret: can be guessed; use at least {MIN_SECRET_BYTES} bytes"
    yield from _database_rules(settings)
    yield from _folder_rules(settings.data_dir)


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


def _worker_rules(settings: WorkerSettings) -> Iterator[str]:
    if not settings.scheduler_ws_url:
        yield "scheduler_ws_url: must not be empty"
    for url in settings.scheduler_ws_url:
        if not url.startswith(("ws://", "wss://")):
            yield f"scheduler_ws_url: must begin with ws:// or wss://: {url}"
    if settings.auth_mode == "mtls":
        yield "auth_mode: this version connects with a token only: mtls"
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


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _types(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__}


def _convert(value: object, kind: Any) -> Any:
    if isinstance(value, Path):
        value = str(value)  # a flag that was read as a path already
    if isinstance(value, str):
        if not value and kind not in (str, Secret):
            raise ValueError("must not be empty")
        value = _parted(value, kind)
    return msgspec.convert(value, kind, strict=False, dec_hook=_decode)


def _parted(text: str, kind: Any) -> object:
    """A list is JSON (`["a", "b"]`) or `a,b`; a mapping is JSON or `k=v,k=v`."""
    origin = getattr(kind, "__origin__", None)
    if origin not in (tuple, dict):
        return text
    if text.lstrip().startswith(("[", "{")):
        return msgspec.json.decode(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if origin is tuple:
        return parts
    if not all("=" in part for part in parts):
        raise ValueError("must be k=v, separated by commas")
    return dict(part.split("=", 1) for part in parts)


def _decode(kind: type, value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return Secret(value) if kind is Secret else Path(value).expanduser()


def _sentence(error: ValueError, name: str) -> str:
    """What msgspec says, in the words and the unit of the setting."""
    text = str(error).replace("`", "").replace("Expected ", "expected ").partition(" - at ")[0]
    text = text.replace("int", "a whole number", 1).partition(", got ")[0]
    units = {"_ms": "milliseconds", "_seconds": "seconds", "_bytes": "bytes"}
    unit = next((word for end, word in units.items() if name.endswith(end)), None)
    return f"{text} of {unit}" if unit and "whole number" in text else text


def _is_secret(kind: Any) -> bool:
    return kind is Secret or Secret in getattr(kind, "__args__", ())


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, dict):
        return ",".join(f"{key}={text}" for key, text in value.items())
    return _PASSWORD.sub(r"\1***\2", str(value))


def _nearest(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
