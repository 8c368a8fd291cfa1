"""Nobody but a node can sign what nodes ask one another, and a signature is for one request at one time."""

from __future__ import annotations

from astraflow.api.node_signatures import MAX_AGE_S, NODE, NodeSignatures

TARGET = b"/internal/v1/feed?shard=3"


class Clock:
    def __init__(self, wall_s: int) -> None:
        self.wall_s = wall_s

    def now(self) -> float:
        return float(self.wall_s)

    def wall_ms(self) -> int:
        return self.wall_s * 1000


def test_a_signature_is_for_one_request() -> None:
    clock = Clock(1_000_000)
    signer = NodeSignatures([b"a secret that all nodes share"], clock)
    header = signer.header("POST", TARGET, b"body")
    assert signer.is_good([header], "POST", TARGET, b"body")
    assert not signer.is_good([header], "GET", TARGET, b"body")
    assert not signer.is_good([header], "POST", TARGET + b"1", b"body")
    assert not signer.is_good([header], "POST", TARGET, b"another")
    assert not signer.is_good([header, header], "POST", TARGET, b"body")
    assert not signer.is_good([], "POST", TARGET, b"body")
    stranger = NodeSignatures([b"a secret that nobody shares"], clock)
    assert not stranger.is_good([header], "POST", TARGET, b"body")


def test_a_signature_ends() -> None:
    clock = Clock(1_000_000)
    signer = NodeSignatures([b"a secret that all nodes share"], clock)
    header = signer.header("GET", TARGET)
    for later, is_good in ((-MAX_AGE_S, True), (MAX_AGE_S, True), (MAX_AGE_S + 1, False)):
        clock.wall_s = 1_000_000 + later
        assert signer.is_good([header], "GET", TARGET, b"") is is_good
    for text in (b"", b";", b"x;00", b"1000000;", b"9" * 40 + b";00"):
        assert not signer.is_good([(NODE, text)], "GET", TARGET, b"")


def test_a_former_secret_is_still_accepted() -> None:
    clock = Clock(1_000_000)
    before = NodeSignatures([b"the first secret of the site"], clock)
    after = NodeSignatures([b"the second secret of it", b"the first secret of the site"], clock)
    assert after.is_good([before.header("GET", TARGET)], "GET", TARGET, b"")
