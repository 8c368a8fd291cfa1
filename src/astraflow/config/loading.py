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
import os
import re
import secrets
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from astraflow.config.problems import ConfigError
from astraflow.config.rules import scheduler_rules, worker_rules
from astraflow.config.secret import OTHERS, Secret, keep, read_secret
from astraflow.config.settings import SchedulerSettings, WorkerSettings
from astraflow.core.security.bearer import token_text

CONFIG_FILE: Final = "astraflow.toml"

_RETIRED: Final[Mapping[str, Mapping[str, str]]] = {
    "scheduler": {
        "default_resource_ttl_seconds": "set resource_default_ttl_seconds of the workers",
    },
    "worker": {
        "transport": "there is one transport, the WebSocket",
        "worker_version": "a worker reports the version that is installed",
        "handshake_protocol_version": "a worker speaks the newest protocol of its scheduler",
    },
}
"""Settings that have no effect any more, and why."""
_PASSWORD: Final = re.compile(r"(://[^/@:]*:)[^@]*(@)")

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


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
    loader = _Loader("scheduler", SchedulerSettings, file)
    return loader.load(flags or {}, _environ(environ), scheduler_rules)


def load_worker(
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded[WorkerSettings]:
    """Read a worker's settings, as `load_scheduler`."""
    loader = _Loader("worker", WorkerSettings, file)
    return loader.load(flags or {}, _environ(environ), worker_rules)


def keep_secret(settings: SchedulerSettings) -> Secret:
    """The secret that signs tokens: the configured one, else the one kept in the data folder, made if need be.

    Raises:
        ConfigError: the kept one is readable by others or cannot be written.
    """
    return settings.secret or keep(settings.data_dir / "secret", secrets.token_urlsafe)


def keep_token(settings: SchedulerSettings) -> Secret:
    """The first admin's token, as `keep_secret`. Only `astra up` makes one; `astra server` starts closed."""
    return settings.bootstrap_token or keep(
        settings.data_dir / "token", lambda count: token_text(secrets.token_bytes(count))
    )


def described(kind: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    """(name, default, meaning) of every setting."""
    settings, hints = kind(), get_type_hints(kind, include_extras=True)
    return [
        (name, _as_text(getattr(settings, name)), _description(hints[name]) or "")
        for name in kind.__struct_fields__
    ]


class _Loader(Generic[_Settings]):
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

    def load(
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
            if name not in known and name not in _RETIRED[table]:
                nearest = _nearest(name, known)
                self.problems.append(f"{path}: [{table}] {name}: unknown setting{nearest}")

    def _refuse_open_file(self, path: Path) -> None:
        holds_secret = any(
            isinstance(self.values.get(name), Secret) and source == str(path)
            for name, source in self.sources.items()
        )
        if holds_secret and path.stat().st_mode & OTHERS:
            self.problems.append(f"{path}: holds a secret; run: chmod 600 {path}")

    def _take_environment(self, environ: Mapping[str, str]) -> None:
        for name in sorted(environ):
            if not name.startswith(self.prefix):
                continue
            self._take(name.removeprefix(self.prefix).lower(), environ[name], name, name)

    def _take(self, name: str, value: object, where: str, source: str) -> None:
        retired = _RETIRED[self.table]
        if name in retired:
            self.notes.append(f"{where} has no effect: {retired[name]}")
            return
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
                self.values[name] = read_secret(path, f"{name}_file")
                self.sources[name] = str(path)
            except ConfigError as error:
                self.problems.extend(error.problems)


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _types(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: _bare(hints[name]) for name in kind.__struct_fields__}


def _bare(hint: Any) -> Any:
    """The type without its description."""
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    marks = [mark for mark in marks if mark.description is None]
    return Annotated[(kind, *marks)] if marks else kind


def _description(hint: Any) -> str | None:
    marks = [mark for mark in get_args(hint)[1:] if isinstance(mark, Meta)]
    return next((mark.description for mark in marks if mark.description is not None), None)


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
