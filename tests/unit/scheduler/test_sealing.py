from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.scheduler.sealing import Sealer

OLD, NEW = b"an old secret of the site", b"a new secret of the site"


def refused(sealer: Sealer, sealed: bytes, *names: str) -> bool:
    with pytest.raises(errors.Refused) as caught:
        sealer.open(sealed, *names)
    return caught.value.code is errors.POOL_INVALID


def test_what_is_sealed_is_bound_to_its_names_and_to_the_secret() -> None:
    sealer = Sealer([OLD])
    sealed = sealer.seal("between us", "default", "a")
    assert b"between us" not in sealed
    assert sealer.open(sealed, "default", "a") == "between us"
    assert refused(sealer, sealed, "default", "b")
    assert refused(Sealer([NEW]), sealed, "default", "a")
    assert sealer.seal("between us", "default", "a") != sealed, "each has its own nonce"


def test_nothing_stays_nothing() -> None:
    sealer = Sealer([OLD])
    assert sealer.seal("", "default", "a") == b""
    assert sealer.open(b"", "default", "a") == ""


def test_an_earlier_secret_opens_and_the_newest_seals() -> None:
    sealed = Sealer([OLD]).seal("between us", "default", "a")
    both, last = Sealer([NEW, OLD]), Sealer([NEW])
    assert both.open(sealed, "default", "a") == "between us"
    anew = both.reseal(sealed, "default", "a")
    assert last.open(anew, "default", "a") == "between us"
    assert refused(Sealer([OLD]), anew, "default", "a")


def test_what_cannot_be_opened_is_not_lost_by_sealing_it_anew() -> None:
    sealed = Sealer([OLD]).seal("between us", "default", "a")
    assert Sealer([NEW]).reseal(sealed, "default", "a") == sealed
