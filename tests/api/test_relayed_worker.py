"""What a node says of a worker that it passes on: believed from a node alone, and to the letter."""

from __future__ import annotations

import base64
import json

from astraflow.api.node_signatures import MAX_AGE_S, NODE, NodeSignatures
from astraflow.api.relayed_worker import (
    RELAY_PATH,
    WORKER,
    LaneOwner,
    RelayedWorker,
    relay_headers,
    relayed_worker,
)
from astraflow.core.security.certificates import PeerCertificate
from tests.api.test_node_signatures import Clock

SECRET = b"a secret that all nodes share"
WHO = RelayedWorker("192.0.2.7:50000", PeerCertificate("acmé", "w-1", "ab" * 32, 2e9))


def test_what_a_node_says_is_known_to_the_letter() -> None:
    clock = Clock(1_000_000)
    signatures = NodeSignatures([SECRET], clock)
    for who in (WHO, RelayedWorker("[::1]:1"), RelayedWorker("")):
        assert relayed_worker(signatures, dict(relay_headers(signatures, who))) == who


def test_a_node_that_signs_with_the_former_secret_is_believed() -> None:
    clock = Clock(1_000_000)
    after = NodeSignatures([b"the second secret of it", SECRET], clock)
    assert relayed_worker(after, dict(relay_headers(NodeSignatures([SECRET], clock), WHO))) == WHO


def test_what_is_old_is_not_believed() -> None:
    clock = Clock(1_000_000)
    signatures = NodeSignatures([SECRET], clock)
    headers = dict(relay_headers(signatures, WHO))
    clock.wall_s += MAX_AGE_S + 1
    assert relayed_worker(signatures, headers) is None


def test_nobody_else_is_believed() -> None:
    clock = Clock(1_000_000)
    signatures = NodeSignatures([SECRET], clock)
    good = dict(relay_headers(signatures, WHO))
    other = base64.urlsafe_b64encode(json.dumps({"address": "10.0.0.1:1"}).encode())
    stranger = NodeSignatures([b"a secret that nobody shares"], clock)

    def signed(said: bytes) -> dict[bytes, bytes]:
        return {WORKER: said, NODE: signatures.header("GET", RELAY_PATH, said)[1]}

    assert relayed_worker(signatures, signed(other)) == RelayedWorker("10.0.0.1:1")
    rows: list[tuple[str, dict[bytes, bytes]]] = [
        ("nothing", {}),
        ("no signature", {WORKER: good[WORKER]}),
        ("no worker", {NODE: good[NODE]}),
        ("another worker", {**good, WORKER: other}),
        ("twice, as headers are joined", {**good, WORKER: good[WORKER] + b"," + good[WORKER]}),
        ("two signatures", {**good, NODE: good[NODE] + b"," + good[NODE]}),
        ("of a stranger", dict(relay_headers(stranger, WHO))),
        ("for another question", {WORKER: b"", NODE: signatures.header("GET", b"/internal/v1/hello")[1]}),
        ("no struct", signed(base64.urlsafe_b64encode(b"[]"))),
        ("no address", signed(base64.urlsafe_b64encode(b"{}"))),
        ("no text", signed(base64.urlsafe_b64encode(b'{"address":1}'))),
        ("no JSON", signed(base64.urlsafe_b64encode(b"\xff"))),
        ("no base64", signed(b"a")),
    ]  # fmt: skip

    assert [what for what, headers in rows if relayed_worker(signatures, headers) is not None] == []


def test_only_an_owner_with_tls_is_private() -> None:
    assert LaneOwner(1, "https://one.example").is_private
    assert not LaneOwner(1, "http://one.example").is_private
