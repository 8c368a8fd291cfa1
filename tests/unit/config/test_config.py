from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from astraflow.config import (
    CONFIG_FILE,
    ConfigError,
    SchedulerSettings,
    Secret,
    WorkerSettings,
    described,
    keep_secret,
    keep_token,
    load_scheduler,
    load_worker,
)
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol import limits
from astraflow.store.store import Retention
from tests.tables import each_row

PAIR: dict[str, object] = {"tls_cert_file": "w.pem", "tls_key_file": "w.key"}
STRONG = "a-token-that-nobody-will-guess"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = CONFIG_FILE, mode: int = 0o600) -> Path:
    path = Path(name)
    path.write_text(text)
    path.chmod(mode)
    return path


def problems_of(**given: object) -> tuple[str, ...]:
    given.setdefault("environ", {})
    with pytest.raises(ConfigError) as caught:
        load_scheduler(**given)  # type: ignore[arg-type]
    return caught.value.problems


def test_without_anything_the_documented_defaults_hold() -> None:
    loaded = load_scheduler(environ={})
    assert loaded.settings == SchedulerSettings()
    assert loaded.settings.store_url == "sqlite:///var/astraflow.db"
    assert loaded.settings.engine().heartbeat_interval_s == 5.0
    assert loaded.settings.engine().lease_ttl_s == 30.0
    assert loaded.settings.retention().finished_runs == 100_000
    assert set(loaded.sources.values()) == {"default"}


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() -> None:
    path = write("[scheduler]\nport = 1\nheartbeat_interval_ms = 2000\ncancel_grace_ms = 9\n")
    environ = {"ASTRA_SCHEDULER_PORT": "2", "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": "3000"}
    loaded = load_scheduler(environ=environ, flags={"port": 3, "host": None}, file=path)
    assert loaded.settings.port == 3
    assert loaded.settings.heartbeat_interval_ms == 3000
    assert loaded.settings.cancel_grace_ms == 9
    assert loaded.sources["port"] == "flag"
    assert loaded.sources["heartbeat_interval_ms"] == "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS"
    assert loaded.sources["cancel_grace_ms"] == str(path)
    assert loaded.sources["host"] == "default"


def test_the_file_in_the_working_folder_is_read_without_being_named() -> None:
    write("[worker]\nname = 'otter'\n")
    loaded = load_worker(environ={})
    assert (loaded.settings.name, loaded.sources["name"]) == ("otter", CONFIG_FILE)


def test_a_named_file_must_be_there() -> None:
    assert problems_of(file=Path("none.toml")) == (
        "none.toml: cannot be read: No such file or directory",
    )


@pytest.mark.parametrize("text", ["port = ", "[scheduler", "\x00"])
def test_a_file_that_is_not_toml_is_refused(text: str) -> None:
    (problem,) = problems_of(file=write(text))
    assert problem.startswith("astraflow.toml: not a TOML file")


def test_every_name_of_the_older_documents_is_read() -> None:
    loaded = load_worker(
        environ={
            "ASTRA_WORKER_SCHEDULER_WS_URL": "wss://there/ws/worker",
            "ASTRA_WORKER_AUTH_MODE": "token",
            "ASTRA_WORKER_AUTH_TOKEN": "dev-token",
            "ASTRA_WORKER_TENANT": "acme",
            "ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL": "2",
            "ASTRA_WORKER_RUNTIME_NAMES": '["python","playwright"]',
            "ASTRA_WORKER_FEATURE_FLAGS": "pkg.install, pkg.uninstall",
            "ASTRA_WORKER_DATA_DIR": "~/astra",
            "ASTRA_WORKER_RESOURCE_MAX_DISK_BYTES": "21474836480",
            "ASTRA_WORKER_LABELS": "gpu=yes,zone=a",
            "ASTRA_WORKER_WORKER_VERSION": "0.1.0",
            "ASTRA_SERVER": "http://127.0.0.1:8080",
            "PATH": "/bin",
        }
    )
    settings = loaded.settings
    assert settings.runtime_names == ("python", "playwright")
    assert settings.feature_flags == ("pkg.install", "pkg.uninstall")
    assert settings.labels == {"gpu": "yes", "zone": "a"}
    assert settings.data_dir == Path.home() / "astra"
    assert settings.auth_token == Secret("dev-token")
    (note,) = loaded.notes
    assert note.startswith("ASTRA_WORKER_WORKER_VERSION has no effect")


def test_all_problems_are_told_at_once_and_nothing_is_made() -> None:
    problems = problems_of(
        environ={
            "ASTRA_SCHEDULER_PRT": "1",
            "ASTRA_SCHEDULER_PORT": "70000",
            "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": "5s",
            "ASTRA_SCHEDULER_DATABASE_URL": "mysql://me:hunter2@there/x",
        },
        flags={"host": "0.0.0.0"},
        file=write("[scheduler]\nheartbeat_intervall_ms = 1\n[sheduler]\n[worker]\nnam = 'x'\n"),
    )
    assert problems == (
        "astraflow.toml: [scheduler] heartbeat_intervall_ms: unknown setting; "
        "did you mean heartbeat_interval_ms?",
        "astraflow.toml: unknown table 'sheduler'; did you mean scheduler?",
        "astraflow.toml: [worker] nam: unknown setting; did you mean name?",
        "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS: expected a whole number of milliseconds: '5s'",
        "ASTRA_SCHEDULER_PORT: expected a whole number <= 65535: '70000'",
        "ASTRA_SCHEDULER_PRT: unknown setting; did you mean ASTRA_SCHEDULER_PORT?",
        "host: others could connect, but no bootstrap_token is configured: 0.0.0.0",
        "database_url: must begin with sqlite:/// or postgresql://: mysql",
    )
    assert sorted(os.listdir()) == [CONFIG_FILE]


@each_row(
    ("name", "text", "said"),
    [
        ("PORT", "", "must not be empty"),
        ("PORT", "-1", "expected a whole number >= 0"),
        ("DATA_DIR", "", "must not be empty"),
        ("LOG_LEVEL", "loud", "Invalid enum value 'loud'"),
        ("FORCED_REFERENCE_TYPES", "[1]", "expected str"),
        ("FORCED_REFERENCE_TYPES", "[", "Input data was truncated"),
        ("BOOTSTRAP_TOKEN", " ", "is blank"),
        ("SECRET", "short", "can be guessed"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_name(name: str, text: str, said: str) -> None:
    (problem,) = problems_of(environ={f"ASTRA_SCHEDULER_{name}": text})
    assert said in problem
    assert name.lower() in problem.lower()


def test_labels_without_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be k=v"):
        load_worker(environ={"ASTRA_WORKER_LABELS": "gpu"})


def test_a_lease_whose_fence_does_not_cover_two_heartbeats_is_refused() -> None:
    (problem,) = problems_of(flags={"heartbeat_interval_ms": 5000, "lease_ttl_ms": 15000})
    assert problem.startswith("lease_ttl_ms: the fence")
    load_scheduler(environ={}, flags={"heartbeat_interval_ms": 5000, "lease_ttl_ms": 16667})


def test_the_settings_that_pass_are_those_that_the_engine_takes() -> None:
    loaded = load_scheduler(environ={}, flags={"heartbeat_interval_ms": 3, "lease_ttl_ms": 10})
    assert loaded.settings.engine().lease_ttl_s == 0.01


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])
def test_binding_beyond_this_machine_needs_a_real_token(host: str) -> None:
    assert "no bootstrap_token" in problems_of(flags={"host": host})[0]
    assert "guess" in problems_of(flags={"host": host, "bootstrap_token": "dev-token"})[0]
    load_scheduler(environ={}, flags={"host": host, "bootstrap_token": STRONG})


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_this_machine_alone_needs_none(host: str) -> None:
    assert load_scheduler(environ={}, flags={"host": host}).settings.is_loopback


def test_postgresql_needs_a_secret_that_all_schedulers_share() -> None:
    url = "postgresql://me:hunter2@there/x"
    assert "must be set with PostgreSQL" in problems_of(flags={"database_url": url})[0]
    loaded = load_scheduler(environ={}, flags={"database_url": url, "secret": STRONG})
    shown = {name: text for name, text, _ in loaded.shown()}
    assert shown["database_url"] == "postgresql://me:***@there/x"
    assert shown["secret"] == "***"


def test_a_folder_that_is_a_file_is_refused() -> None:
    write("", "here")
    assert problems_of(flags={"data_dir": "here/there"})[0].startswith("data_dir: not a folder")


def test_a_folder_that_may_not_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere, so the answer of the system is given instead.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert problems_of()[0].startswith("data_dir: not writable")


def test_a_secret_file_is_read_if_nobody_else_can() -> None:
    write(STRONG + "\n", "token")
    loaded = load_scheduler(environ={}, flags={"bootstrap_token_file": "token"})
    assert loaded.settings.bootstrap_token == Secret(STRONG)
    assert loaded.sources["bootstrap_token"] == "token"


@each_row(
    ("given", "problem"),
    [
        ({"metrics_token": " "}, "metrics_token: is blank; unset it to have none"),
        (
            {"metrics_token": STRONG, "bootstrap_token": STRONG},
            "metrics_token: is the bootstrap_token, which may do everything; use another one",
        ),
        (
            {"metrics_token": "short", "bootstrap_token": STRONG, "host": "0.0.0.0"},
            "metrics_token: others could guess it; use at least 16 characters",
        ),
    ],
)
def test_a_token_for_metrics_that_is_none_is_refused(
    given: dict[str, object], problem: str
) -> None:
    assert problems_of(flags=given) == (problem,)


def test_a_token_for_metrics_may_come_from_a_file() -> None:
    write("metrics-" + STRONG, "scrape")
    environ = {"ASTRA_SCHEDULER_METRICS_TOKEN_FILE": "scrape"}
    settings = load_scheduler(environ=environ, flags={"bootstrap_token": STRONG}).settings
    assert settings.metrics_token == Secret("metrics-" + STRONG)


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_secret_file_that_others_can_read_is_refused(mode: int) -> None:
    write(STRONG, "token", mode)
    (problem,) = problems_of(flags={"bootstrap_token_file": "token"})
    assert problem == "bootstrap_token_file: others can read it; run: chmod 600 token"


def test_a_settings_file_with_a_secret_that_others_can_read_is_refused() -> None:
    path = write(f"[scheduler]\nbootstrap_token = '{STRONG}'\n", mode=0o644)
    (problem,) = problems_of(file=path)
    assert problem == "astraflow.toml: holds a secret; run: chmod 600 astraflow.toml"
    assert STRONG not in problem


def test_a_settings_file_without_a_secret_may_be_read_by_all() -> None:
    assert load_scheduler(environ={}, file=write("[scheduler]\nport = 1\n", mode=0o644))


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_or_missing_secret_file_is_refused(text: str) -> None:
    write(text, "token")
    assert "empty" in problems_of(flags={"secret_file": "token"})[0]
    assert "cannot be read" in problems_of(flags={"secret_file": "none"})[0]


def test_a_secret_may_have_earlier_ones_below_it() -> None:
    path = write(f"{STRONG}-new\r\n\n{STRONG}\n", "key")
    secret = load_scheduler(environ={}, flags={"secret_file": path}).settings.secret
    assert secret is not None
    assert secret.lines() == (f"{STRONG}-new", STRONG)
    assert Secret(STRONG).lines() == (STRONG,)


@each_row(
    ("text", "said"),
    [
        ("", "must not be empty"),
        ("\n", "can be guessed"),
        (f"{STRONG}\nshort", "at least 16 bytes in each line"),
        ("\n".join([STRONG] * 9), "has 9 lines; keep the newest 8 at most"),
    ],
)
def test_a_weak_line_and_too_many_lines_of_a_secret_are_refused(text: str, said: str) -> None:
    [problem] = problems_of(environ={"ASTRA_SCHEDULER_SECRET": text})
    assert said in problem
    assert STRONG not in problem


def test_a_secret_and_its_file_together_are_refused() -> None:
    write(STRONG, "token")
    (problem,) = problems_of(flags={"secret_file": "token", "secret": STRONG})
    assert problem == "secret and secret_file are both set; keep one of them"


def test_a_secret_never_prints() -> None:
    secret = Secret(STRONG)
    settings = SchedulerSettings(secret=secret)
    assert STRONG not in f"{secret} {secret!r} {settings} {settings!r}"
    assert secret.reveal() == STRONG
    assert secret != Secret("other")
    assert len({secret, Secret(STRONG)}) == 1


def test_a_bad_secret_is_not_repeated_in_the_message() -> None:
    (problem,) = problems_of(file=write("[scheduler]\nsecret = 5551234\n"))
    assert problem == "astraflow.toml: [scheduler] secret: must be a text: ***"


def test_secret_and_token_are_made_once_and_kept_for_their_owner_alone() -> None:
    settings = SchedulerSettings(data_dir=Path("kept/here"))
    secret, token = keep_secret(settings), keep_token(settings)
    assert (keep_secret(settings), keep_token(settings)) == (secret, token)
    assert secret != token
    for name in ("secret", "token"):
        assert stat.S_IMODE((settings.data_dir / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700
    assert token.reveal().startswith("astra_")


def test_a_configured_secret_is_taken_as_it_is_and_not_kept() -> None:
    settings = SchedulerSettings(secret=Secret(STRONG), bootstrap_token=Secret("dev-token"))
    assert keep_secret(settings).reveal() == STRONG
    assert keep_token(settings).reveal() == "dev-token"
    assert os.listdir() == []


def test_a_kept_token_that_others_can_read_is_refused() -> None:
    settings = SchedulerSettings(data_dir=Path())
    write(STRONG, "token", 0o644)
    with pytest.raises(ConfigError, match="others can read it"):
        keep_token(settings)


def test_a_folder_in_which_nothing_can_be_kept_is_told() -> None:
    write("", "here")
    with pytest.raises(ConfigError, match="cannot be kept"):
        keep_secret(SchedulerSettings(data_dir=Path("here")))


@each_row(
    ("flags", "said"),
    [
        ({"scheduler_ws_url": "http://x"}, "must begin with ws://"),
        ({"scheduler_ws_url": "ws://a,http://b"}, "must begin with ws:// or wss://: http://b"),
        ({"scheduler_ws_url": ","}, "must not be empty"),
        ({"tls_cert_file": "w.pem"}, "set both of them, or none"),
        ({"tls_key_file": "w.key"}, "set both of them, or none"),
        ({"auth_mode": "mtls", "scheduler_ws_url": "wss://x"}, "mtls needs tls_cert_file"),
        ({"auth_mode": "mtls", **PAIR}, "begins with wss://"),
        (
            {"auth_mode": "mtls", **PAIR, "scheduler_ws_url": "wss://a,ws://b"},
            "begins with wss://",
        ),
        ({"auth_token": " "}, "is blank"),
        ({"concurrency_max_parallel": 0}, "a whole number >= 1"),
    ],
)
def test_a_worker_that_could_not_connect_is_told_before_it_starts(
    flags: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_worker(environ={}, flags=flags)
    assert said in str(caught.value)
    assert str(caught.value).startswith("E.CONFIG.INVALID: 1 problem in the settings\n")


@each_row(
    ("flags", "said"),
    [
        ({"tls_cert_file": "s.pem"}, "set both of them, or none"),
        ({"tls_key_file": "s.key"}, "set both of them, or none"),
        ({"tls_client_ca_file": "ca.pem"}, "tls_client_ca_file: needs tls_cert_file"),
        ({"worker_auth": "mtls", **PAIR}, "worker_auth: mtls needs tls_client_ca_file"),
        ({"worker_auth": "token"}, "Invalid enum value 'token'"),
    ],
)
def test_a_scheduler_whose_tls_could_not_work_is_told_before_it_starts(
    flags: dict[str, object], said: str
) -> None:
    [problem] = problems_of(flags=flags)
    assert said in problem


def test_tls_files_that_fit_together_are_taken() -> None:
    chosen = {**PAIR, "tls_client_ca_file": "ca.pem", "worker_auth": "mtls"}
    assert load_scheduler(environ={}, flags=chosen).settings.worker_auth == "mtls"
    worker = {**PAIR, "auth_mode": "mtls", "scheduler_ws_url": "wss://a"}
    assert load_worker(environ={}, flags=worker).settings.auth_mode == "mtls"


def test_a_tls_key_that_others_can_read_is_refused() -> None:
    write("a key", "w.key", mode=0o640)
    said = f"tls_key_file: others can read it; run: chmod 600 {Path('w.key')}"
    assert problems_of(flags=PAIR) == (said,)
    with pytest.raises(ConfigError) as caught:
        load_worker(environ={}, flags=PAIR)
    assert caught.value.problems == (said,)
    Path("w.key").chmod(0o600)
    load_worker(environ={}, flags=PAIR)


ISSUER: dict[str, object] = {
    "oidc_issuer_url": "https://id.example",
    "oidc_client_id": "astra",
    "oidc_roles": "ops=admin,all=umbrella:viewer",
}


def test_an_issuer_of_logins_that_can_be_used_is_taken() -> None:
    settings = load_scheduler(environ={}, flags=ISSUER).settings
    assert settings.oidc_roles == {"ops": "admin", "all": "umbrella:viewer"}
    assert settings.oidc_scopes == ("openid", "profile", "email")
    load_scheduler(environ={}, flags={**ISSUER, "oidc_issuer_url": "http://127.0.0.1:9400"})


@each_row(
    ("changed", "said"),
    [
        ({"oidc_issuer_url": "http://id.example"}, "must begin with https://"),
        ({"oidc_issuer_url": "https://"}, "must begin with https://"),
        ({"oidc_issuer_url": "https://[x"}, "must begin with https://"),
        ({"oidc_issuer_url": "file:///etc/passwd"}, "must begin with https://"),
        ({"oidc_client_id": None}, "oidc_client_id: must be set"),
        ({"oidc_scopes": "email"}, "oidc_scopes: must have openid"),
        ({"oidc_roles": None}, "oidc_roles: nobody could log in"),
        ({"oidc_roles": "ops=root"}, "oidc_roles: the group 'ops' must have ROLE"),
        ({"oidc_roles": "ops=worker"}, "oidc_roles: the group 'ops' must have ROLE"),
        ({"host": "0.0.0.0", "bootstrap_token": STRONG}, "public_url: must be set"),
    ],
)
def test_an_issuer_of_logins_that_could_not_work_is_told(
    changed: dict[str, object], said: str
) -> None:
    [problem] = problems_of(flags={**ISSUER, **changed})
    assert said in problem


def test_a_worker_may_have_several_schedulers() -> None:
    environ = {"ASTRA_WORKER_SCHEDULER_WS_URL": "ws://a/ws/worker, wss://b/ws/worker"}
    loaded = load_worker(environ=environ)
    assert loaded.settings.scheduler_ws_url == ("ws://a/ws/worker", "wss://b/ws/worker")
    one = load_worker(environ={}, file=write('[worker]\nscheduler_ws_url = "ws://c"\n'))
    assert one.settings.scheduler_ws_url == ("ws://c",)


def test_a_shard_lease_that_outlives_the_fence_of_attempts_is_refused() -> None:
    """A planted 15 s with a lease of 10 s: a replaced owner could keep an attempt alive that was given away."""
    shared = {"database_url": "postgresql://here/x", "secret": STRONG}
    late = {"shard_lease_ms": 15_000, "lease_ttl_ms": 10_000, "heartbeat_interval_ms": 1_000}
    (problem,) = problems_of(flags={**shared, **late})
    assert problem.startswith(
        "shard_lease_ms: must not be above 0.58 x lease_ttl_ms, which is 5800 ms"
    )
    assert load_scheduler(environ={}, flags={**shared, **late, "shard_lease_ms": 5_800})
    assert load_scheduler(environ={}, flags=late), "a file has no shard lease"


def test_without_an_environment_given_that_of_the_process_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASTRA_WORKER_NAME", "otter")
    assert load_worker().settings.name == "otter"


@pytest.mark.parametrize("kind", [SchedulerSettings, WorkerSettings])
def test_every_setting_says_its_default_and_its_meaning(
    kind: type[SchedulerSettings | WorkerSettings],
) -> None:
    for name, _, meaning in described(kind):
        assert meaning and not meaning.endswith("."), name
    shown = {name: default for name, default, _ in described(kind)}
    load = load_scheduler if kind is SchedulerSettings else load_worker
    assert shown == {name: value for name, value, _ in load(environ={}).shown()}


def test_a_number_of_the_wire_or_the_engine_is_said_in_one_place() -> None:
    """The defaults of the settings are the defaults of the parts that use them."""
    settings, engine = SchedulerSettings(), EngineSettings()
    assert settings.engine() == engine
    assert engine.heartbeat_interval_s == limits.HEARTBEAT_INTERVAL_S
    assert engine.lease_ttl_s == limits.LEASE_TTL_S
    kept = settings.retention()
    rows = {"tenant_events": kept.tenant_events, "audits": kept.audits}
    assert kept == msgspec.structs.replace(Retention(), **rows)


def test_a_setting_that_has_gone_is_told_and_has_no_effect() -> None:
    Path("astraflow.toml").write_text("[scheduler]\ndefault_resource_ttl_seconds = 60\n")
    (note,) = load_scheduler(environ={}).notes
    assert note.startswith("astraflow.toml: [scheduler] default_resource_ttl_seconds has no effect")
    assert "resource_default_ttl_seconds of the workers" in note
    assert load_worker(environ={}).notes == ()
