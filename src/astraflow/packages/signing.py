"""Who vouches for an archive: a detached Ed25519 signature, and what a policy makes of it (ADR 21).

The signature is a JSON text beside the archive. It covers all its other fields, the archive's digest, name and version
among them, so it cannot be moved to another archive, nor an archive be passed off under another name.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta

from astraflow.core import errors
from astraflow.packages.archive import check_archive
from astraflow.packages.building import Built

Policy = Literal["off", "warn", "require"]
MAX_SIGNATURE_CHARS: Final = 4_096
_PURPOSE: Final = b"astraflow package signature 1\n"
"""So that a signature of something else with the same key is none of a package."""
_KEY_BYTES: Final = 32

_Label = Annotated[str, Meta(min_length=1, max_length=256)]
_Base64 = Annotated[str, Meta(max_length=256)]
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class PackageSignature(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A signature of one archive. `signedBy` is what the signer calls itself: the key alone is believed."""

    algorithm: Literal["ed25519"]
    key: _Base64
    signed_by: _Label
    signed_at: _Label
    sha256: _Digest
    name: _Label
    version: _Label
    value: _Base64

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, text: str) -> PackageSignature:
        """Raises Refused when the text is no signature."""
        if len(text) > MAX_SIGNATURE_CHARS:
            raise _bad(f"the signature is longer than {MAX_SIGNATURE_CHARS} characters")
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise _bad(f"the signature cannot be read: {problem}") from problem


class SigningKey:
    """The private key of a publisher."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @classmethod
    def generate(cls) -> SigningKey:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Raises Refused when the file holds no Ed25519 key, OSError when it cannot be read."""
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as problem:
            raise _bad_key(path, str(problem)) from problem
        if not isinstance(key, Ed25519PrivateKey):
            raise _bad_key(path, "it is of another kind")
        return cls(key)

    def save(self, path: Path) -> None:
        """Write it, readable for its owner only. Raises FileExistsError: a key is never written over."""
        pem = self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)

    @property
    def public(self) -> str:
        """What others put among their trusted keys, as base64."""
        return base64.b64encode(self._private.public_key().public_bytes_raw()).decode()

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


class TrustedKeys:
    """Public keys by what they are called here."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    @classmethod
    def parse(cls, values: Iterable[str]) -> TrustedKeys:
        """From settings: `name=base64`, or a file with such lines; `#` begins a comment.

        Raises:
            Refused: one is neither.
        """
        names: dict[str, str] = {}
        for value in values:
            found = _named_key(value)
            lines = [value] if found is not None else _lines(value)
            for line in lines:
                named = _named_key(line)
                if named is None:
                    raise _bad_setting(f"not a key of the form name=base64: {line[:80]!r}")
                names[named[1]] = named[0]
        return cls(names)

    def name_of(self, key: str) -> str | None:
        """What the key is called here, if it is trusted."""
        return self._names.get(key)


class Verdict(msgspec.Struct, frozen=True):
    """The archive may be used. `signed_by` is what its key is called here, None without a trusted one."""

    signed_by: str | None = None
    warning: str | None = None


def sign(archive: Built | Path, key: SigningKey, by: str, at: str) -> PackageSignature:
    """Sign an archive. `at` is the time as RFC 3339 writes it.

    Raises:
        Refused: the file is no package.
    """
    if isinstance(archive, Path):
        checked = check_archive(archive)
        sha256, manifest = checked.sha256, checked.manifest
    else:
        sha256, manifest = archive.sha256, archive.manifest
    unsigned = PackageSignature(
        "ed25519", key.public, by, at, sha256, manifest.name, manifest.version, value=""
    )
    value = base64.b64encode(key.sign(_covered(unsigned))).decode()
    return msgspec.structs.replace(unsigned, value=value)


def verify(signature: PackageSignature, sha256: str, name: str, version: str) -> None:
    """Whether the signature is of this archive, and made with the key that it names.

    Raises:
        Refused: it is not.
    """
    for field, told, found in (
        ("digest", signature.sha256, sha256),
        ("name", signature.name, name),
        ("version", signature.version, version),
    ):
        if told != found:
            raise _bad(f"the signature is of another {field}: {told[:80]}")
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature.key, validate=True))
        key.verify(base64.b64decode(signature.value, validate=True), _covered(signature))
    except (ValueError, InvalidSignature) as problem:
        raise _bad(f"the signature is wrong: {name} {version}") from problem


def judge(
    policy: Policy,
    signature: str | None,
    trusted: TrustedKeys,
    *,
    sha256: str,
    name: str,
    version: str,
) -> Verdict:
    """What the policy says of an archive with this signature, or with none.

    A signature that is there and wrong is refused under `warn`, too: it is an accident or worse.

    Raises:
        Refused: the archive must not be used.
    """
    if policy == "off":
        return Verdict()
    if signature is None:
        return _missed(policy, f"the package is not signed: {name} {version}")
    parsed = PackageSignature.parse(signature)
    verify(parsed, sha256, name, version)
    signed_by = trusted.name_of(parsed.key)
    if signed_by is None:
        who = parsed.signed_by[:80]
        return _missed(policy, f"the package is signed with a key that is not trusted here: {who}")
    return Verdict(signed_by)


def _missed(policy: Policy, message: str) -> Verdict:
    if policy == "require":
        raise errors.Refused(errors.PKG_PERMISSION, message)
    return Verdict(warning=message)


def _covered(signature: PackageSignature) -> bytes:
    """What is signed: all other fields, in one order and one spelling."""
    fields = msgspec.to_builtins(signature)
    del fields["value"]
    return _PURPOSE + msgspec.json.encode(fields, order="sorted")


def _named_key(text: str) -> tuple[str, str] | None:
    name, _, key = text.strip().partition("=")
    try:
        raw = base64.b64decode(key.strip(), validate=True)
    except binascii.Error:
        return None
    if not name.strip() or len(raw) != _KEY_BYTES:
        return None
    return name.strip(), base64.b64encode(raw).decode()


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as problem:
        message = f"neither name=base64 nor a file that can be read: {path[:80]!r}"
        raise _bad_setting(message) from problem
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _bad(message: str) -> errors.Refused:
    return errors.Refused(errors.PKG_INVALID, message)


def _bad_key(path: Path, why: str) -> errors.Refused:
    return errors.Refused(errors.PKG_INVALID, f"not an Ed25519 key ({why}): {path}")


def _bad_setting(message: str) -> errors.Refused:
    return errors.Refused(errors.CONFIG_INVALID, message, pointer="/trusted_keys")
