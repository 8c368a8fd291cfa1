"""Signatures: of one archive, by one key, and what each policy makes of them."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from astraflow.core import errors
from astraflow.packages import (
    PackageSignature,
    SigningKey,
    TrustedKeys,
    Verdict,
    build_archive,
    judge,
    sign,
    verify,
)
from astraflow.packages.signing import Policy
from tests.packages.archives import write_folder

AT = "2026-01-01T00:00:00Z"
ABOUT = {"sha256": "a" * 64, "name": "demo", "version": "1.0.0"}


@pytest.fixture
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture
def signature(key: SigningKey, tmp_path: Path) -> PackageSignature:
    built = build_archive(write_folder(tmp_path / "p"), tmp_path)
    return sign(built, key, "release team", AT)


def about(signature: PackageSignature) -> dict[str, str]:
    return {"sha256": signature.sha256, "name": signature.name, "version": signature.version}


def test_a_signature_holds_for_the_archive_it_was_made_for(
    signature: PackageSignature, key: SigningKey
) -> None:
    verify(PackageSignature.parse(signature.text()), **about(signature))
    trusted = TrustedKeys.parse([f"ours={key.public}"])
    for policy in ("warn", "require"):
        assert judge(policy, signature.text(), trusted, **about(signature)) == Verdict("ours")


def test_a_file_is_signed_as_what_was_built(
    tmp_path: Path, signature: PackageSignature, key: SigningKey
) -> None:
    assert sign(tmp_path / "demo-1.0.0.cwx", key, "release team", AT) == signature


@pytest.mark.parametrize(
    "change",
    [
        {"signed_by": "somebody else"},
        {"signed_at": "2027-01-01T00:00:00Z"},
        {"value": "AAAA"},
        {"value": "no base64"},
        {"key": SigningKey.generate().public},
        {"key": "AAAA"},
        {"sha256": "b" * 64},
        {"name": "other"},
        {"version": "2.0.0"},
    ],
)
@pytest.mark.parametrize("policy", ["warn", "require"])
def test_a_signature_that_was_changed_is_refused(
    signature: PackageSignature, key: SigningKey, change: dict[str, Any], policy: Policy
) -> None:
    changed = msgspec.structs.replace(signature, **change)
    trusted = TrustedKeys.parse([f"ours={key.public}"])
    with pytest.raises(errors.Refused) as caught:
        judge(policy, changed.text(), trusted, **about(signature))
    assert caught.value.code is errors.PKG_INVALID


@pytest.mark.parametrize("field", ["sha256", "name", "version"])
def test_a_signature_of_another_archive_is_refused(signature: PackageSignature, field: str) -> None:
    with pytest.raises(errors.Refused, match="of another"):
        verify(signature, **{**about(signature), field: "b" * 64})


def test_a_text_that_is_no_signature_is_refused(signature: PackageSignature) -> None:
    unknown = msgspec.json.encode({**msgspec.to_builtins(signature), "more": 1}).decode()
    for text in ("", "{}", "[" * 100_000, "x" * 5_000, unknown):
        with pytest.raises(errors.Refused):
            PackageSignature.parse(text)


def test_what_is_missing_or_unknown_is_as_the_policy_says(signature: PackageSignature) -> None:
    nobody = TrustedKeys({})
    for text in (None, signature.text()):
        assert judge("off", text, nobody, **about(signature)) == Verdict()
        warned = judge("warn", text, nobody, **about(signature))
        assert warned.signed_by is None
        assert warned.warning
        with pytest.raises(errors.Refused) as caught:
            judge("require", text, nobody, **about(signature))
        assert caught.value.code is errors.PKG_PERMISSION


def test_a_key_is_kept_for_its_owner_and_never_written_over(
    tmp_path: Path, key: SigningKey
) -> None:
    path = tmp_path / "key.pem"
    key.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKey.load(path).public == key.public
    with pytest.raises(FileExistsError):
        SigningKey.generate().save(path)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    other = generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for content in (b"", b"nonsense", other):
        path.write_bytes(content)
        with pytest.raises(errors.Refused, match="not an Ed25519 key"):
            SigningKey.load(path)


def test_trusted_keys_come_from_settings_and_files(tmp_path: Path) -> None:
    one, two = SigningKey.generate().public, SigningKey.generate().public
    file = tmp_path / "keys"
    file.write_text(f"# ours\n\ntwo = {two}  # since spring\n")
    trusted = TrustedKeys.parse([f"one={one}", str(file)])
    assert trusted.name_of(one) == "one"
    assert trusted.name_of(two) == "two"
    assert trusted.name_of(SigningKey.generate().public) is None
    for bad in ("one=AAAA", f"={one}", str(tmp_path / "none"), str(tmp_path), one):
        with pytest.raises(errors.Refused) as caught:
            TrustedKeys.parse([bad])
        assert caught.value.code is errors.CONFIG_INVALID
