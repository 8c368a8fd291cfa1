from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from astraflow.config import Secret
from astraflow.config.problems import ConfigError
from astraflow.scheduler.master_keys import LocalMasterKeys, new_key_text, seal, unseal

CLEAR, BOUND = b"c" * 32, b"default\0k1"


def of(*texts: str) -> LocalMasterKeys:
    return LocalMasterKeys(Secret("\n".join(texts)), None)


async def test_a_wrapped_key_is_bound_to_its_master_and_to_what_it_belongs_to() -> None:
    keys = of(new_key_text())
    master, wrapped = await keys.wrap(CLEAR, BOUND)
    assert CLEAR not in wrapped
    assert await keys.unwrap(master, wrapped, BOUND) == CLEAR
    assert (await keys.wrap(CLEAR, BOUND))[1] != wrapped, "each has its own nonce"
    with pytest.raises(ConfigError, match="it was changed"):
        await keys.unwrap(master, wrapped, b"other\0k1")
    with pytest.raises(ConfigError, match="it was changed"):
        await keys.unwrap(master, wrapped[:-1], BOUND)
    with pytest.raises(ConfigError, match=master):
        await of(new_key_text()).unwrap(master, wrapped, BOUND)


async def test_the_first_key_wraps_and_the_others_only_unwrap() -> None:
    old, new = new_key_text(), new_key_text()
    master, wrapped = await of(old).wrap(CLEAR, BOUND)
    both = of(new, old)
    assert both.is_stale(master)
    assert await both.unwrap(master, wrapped, BOUND) == CLEAR
    newest, _ = await both.wrap(CLEAR, BOUND)
    assert newest != master and not both.is_stale(newest)
    both.begin_rotation()  # what a setting says is not ours to change
    both.end_rotation()
    assert (await both.wrap(CLEAR, BOUND))[0] == newest


@pytest.mark.parametrize("between", ["\n", ",", " , \n", "\r\n"])
async def test_keys_stand_apart_in_more_than_one_way(between: str) -> None:
    one, two = new_key_text(), new_key_text()
    keys = LocalMasterKeys(Secret(f" {one}{between}{two}\n"), None)
    assert not keys.is_stale((await of(one).wrap(CLEAR, BOUND))[0])
    master, wrapped = await of(two).wrap(CLEAR, BOUND)
    assert await keys.unwrap(master, wrapped, BOUND) == CLEAR


@pytest.mark.parametrize("text", ["short", "%" * 44, new_key_text(31), new_key_text(33)])
def test_what_is_no_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of(text)
    assert text not in str(caught.value)


def test_no_key_at_all_is_refused() -> None:
    with pytest.raises(ConfigError):
        LocalMasterKeys(Secret(" , "), None)


async def test_a_rotation_of_a_file_is_finished_by_whoever_reads_it_next(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    first = new_key_text()
    path.write_text(first)
    path.chmod(0o600)
    keys = LocalMasterKeys(Secret(first), path)
    master, wrapped = await keys.wrap(CLEAR, BOUND)
    keys.begin_rotation()
    new, old = path.read_text().split()
    assert old == first != new
    # As after a kill: another process reads the file, and knows both.
    other = LocalMasterKeys(Secret(first), path)
    other.reload()
    assert other.is_stale(master)
    assert await other.unwrap(master, wrapped, BOUND) == CLEAR
    other.end_rotation()
    assert path.read_text().split() == [new]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["secrets.key"]
    with pytest.raises(ConfigError):
        await other.unwrap(master, wrapped, BOUND)


@pytest.mark.parametrize("sealed", [b"", b"x" * 12, b"x" * 13, b"x" * 64])
def test_what_was_never_sealed_cannot_be_opened(sealed: bytes) -> None:
    key = AESGCM(CLEAR)
    assert unseal(key, seal(key, b"", BOUND), BOUND) == b""
    with pytest.raises(InvalidTag):
        unseal(key, sealed, BOUND)
