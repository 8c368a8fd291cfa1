"""Master keys: they encrypt the data keys of tenants, and are never in the store.

1. One comes from a file or a setting: base64 of 32 bytes. There may be several, separated by white space or commas: the
   first encrypts, the others only decrypt. A rotation of a file puts a new one in front, and takes the old ones away
   when nothing is encrypted with them any more. The file of schedulers that share a database is changed by an
   operator, as a setting is: no scheduler can say what the others have read.
2. Or a key service keeps it: `POST {url}/wrap {plaintext, context}` answers `{keyId, wrapped}`, `POST {url}/unwrap
   {keyId, wrapped, context}` answers `{plaintext}`, all in base64, with `Authorization: Bearer`. `context` is bound to
   what is wrapped: unwrapping it with another fails.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from astraflow.config import SchedulerSettings, Secret
from astraflow.config.problems import ConfigError
from astraflow.config.secret import keep, read_secret
from astraflow.core import errors
from astraflow.store import is_shared

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_NEVER: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
"""How a key service refuses what it can never unwrap. Another status may be of a wrong address or token."""
_SEPARATORS: Final = re.compile(r"[\s,]+")


class MasterKeys(Protocol):
    """What data keys are encrypted with."""

    async def wrap(self, key: bytes, bound: bytes) -> tuple[str, bytes]:
        """Encrypt a data key; which master key did it, and the result. Raises: Unavailable."""

    async def unwrap(self, master_id: str, wrapped: bytes, bound: bytes) -> bytes:
        """Raises: ConfigError, if this master key is not known, or it was wrapped as something else; Unavailable."""

    def is_stale(self, master_id: str) -> bool:
        """Whether something that was wrapped with this key is to be wrapped again."""

    def ids(self) -> list[str]:
        """The keys that are known, the one that encrypts first; none if somebody else keeps them."""

    def reload(self) -> None:
        """Another process may have rotated the key. Raises: ConfigError."""

    def begin_rotation(self) -> None:
        """From now on another key wraps. Raises: Conflict, if that is not ours to decide."""

    def end_rotation(self) -> None:
        """Nothing is wrapped with an old key any more."""

    async def close(self) -> None: ...


def new_key_text(count: int = KEY_BYTES) -> str:
    return base64.b64encode(os.urandom(count)).decode()


def open_master_keys(settings: SchedulerSettings) -> MasterKeys | None:
    """The configured keys, else those kept in the data folder, made if need be; none for a shared database without any.

    Raises:
        ConfigError: they cannot be used, or are readable by others.
    """
    if settings.secrets_key_url is not None:
        if settings.secrets_key is not None:
            raise ConfigError(["secrets_key and secrets_key_url are both set; keep one of them"])
        return KeyService(settings.secrets_key_url, settings.secrets_key_token)
    if settings.secrets_key is not None:
        may_write = not is_shared(settings.store_url)
        return LocalMasterKeys(settings.secrets_key, settings.secrets_key_file, may_write=may_write)
    if is_shared(settings.store_url):
        return None
    path = settings.data_dir / "secrets.key"
    return LocalMasterKeys(keep(path, new_key_text), path)


class LocalMasterKeys:
    """Keys from a setting, or from a file that only its owner can read."""

    def __init__(self, text: Secret, path: Path | None, *, may_write: bool = True) -> None:
        self._path = path
        self._may_write = may_write
        self._read(text)

    def _read(self, text: Secret) -> None:
        self._texts = [one for one in _SEPARATORS.split(text.reveal()) if one]
        keys = [_key_of(one) for one in self._texts or [""]]
        self._active = _id_of(keys[0])
        self._keys = {_id_of(key): AESGCM(key) for key in keys}

    def reload(self) -> None:
        if self._path is not None:
            self._read(read_secret(self._path, "secrets_key_file"))

    async def wrap(self, key: bytes, bound: bytes) -> tuple[str, bytes]:
        return self._active, seal(self._keys[self._active], key, bound)

    async def unwrap(self, master_id: str, wrapped: bytes, bound: bytes) -> bytes:
        key = self._keys.get(master_id)
        if key is None:
            raise ConfigError([other_master_key(master_id, self.ids())])
        try:
            return unseal(key, wrapped, bound)
        except InvalidTag as error:
            message = (
                f"secrets_key: a data key does not fit the master key {master_id}: it was changed"
            )
            raise ConfigError([message]) from error

    def is_stale(self, master_id: str) -> bool:
        return master_id != self._active

    def ids(self) -> list[str]:
        return list(self._keys)

    def begin_rotation(self) -> None:
        if self._path is not None and self._may_write:
            self._write([new_key_text(), *self._texts])

    def end_rotation(self) -> None:
        if self._path is not None and self._may_write and len(self._texts) > 1:
            self._write(self._texts[:1])

    def _write(self, texts: list[str]) -> None:
        """As a whole or not at all: a process that is killed here leaves one of both files."""
        assert self._path is not None
        beside = self._path.with_name(f"{self._path.name}.new")
        content = "".join(f"{text}\n" for text in texts)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._read(Secret(content))

    async def close(self) -> None:
        pass


class KeyService:
    """A service that keeps the master key."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._headers = {} if token is None else {"authorization": f"Bearer {token.reveal()}"}
        self._url = url.rstrip("/")

    async def wrap(self, key: bytes, bound: bytes) -> tuple[str, bytes]:
        body = {"plaintext": _text(key), "context": _text(bound)}
        answer = await self._ask("wrap", body)
        try:
            return str(answer["keyId"]), base64.b64decode(answer["wrapped"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise self._failed("wrap", "its answer has no keyId and wrapped") from error

    async def unwrap(self, master_id: str, wrapped: bytes, bound: bytes) -> bytes:
        body = {"keyId": master_id, "wrapped": _text(wrapped), "context": _text(bound)}
        answer = await self._ask("unwrap", body)
        try:
            key = base64.b64decode(answer["plaintext"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise self._failed("unwrap", "its answer has no plaintext") from error
        if len(key) != KEY_BYTES:
            raise self._failed("unwrap", f"its plaintext has not {KEY_BYTES} bytes")
        return key

    async def _ask(self, what: str, body: dict[str, str]) -> dict[str, Any]:
        # Imported here: a site with a key of its own needs no HTTP client.
        from astraflow.scheduler.bounded_requests import NoAnswer, bounded_request

        try:
            status, raw = await bounded_request(
                "POST", f"{self._url}/{what}", json=body, headers=self._headers
            )
        except NoAnswer as error:
            raise self._failed(what, f"it {error}") from error
        if status != HTTPStatus.OK:
            failed = self._failed(what, f"it answered {status}")
            is_final = what == "unwrap" and status in _NEVER
            raise ConfigError([failed.message]) if is_final else failed
        try:
            answer = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._failed(what, "its answer is no JSON") from error
        return answer if isinstance(answer, dict) else {}

    def _failed(self, what: str, why: str) -> errors.Unavailable:
        message = f"secrets_key_url: the key service cannot {what}: {why}"
        return errors.Unavailable(errors.SECRET_KEY_UNAVAILABLE, message)

    def is_stale(self, master_id: str) -> bool:
        return False

    def ids(self) -> list[str]:
        return []

    def reload(self) -> None:
        pass

    def begin_rotation(self) -> None:
        """The service has the new key already: all is wrapped again."""

    def end_rotation(self) -> None:
        pass

    async def close(self) -> None:
        """Nothing is open between two requests."""


def other_master_key(master_id: str, known: list[str]) -> str:
    return (
        f"secrets_key: the stored secrets are encrypted with the master key {master_id}, "
        f"and the keys given are: {', '.join(known)}"
    )


def seal(key: AESGCM, clear: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + key.encrypt(nonce, clear, bound)


def unseal(key: AESGCM, sealed: bytes, bound: bytes) -> bytes:
    """Raises: InvalidTag."""
    if len(sealed) <= NONCE_BYTES:
        raise InvalidTag
    return key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound)


def _key_of(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        message = f"secrets_key: each key must be base64 of {KEY_BYTES} bytes; make one with: openssl rand -base64 32"
        raise ConfigError([message])
    return key


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"astraflow: id of a master key" + key).hexdigest()[:16]


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
