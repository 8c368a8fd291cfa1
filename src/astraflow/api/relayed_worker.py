"""What a node says of a worker whose connection it passes on to the node that owns the worker's lane.

The owner knows the worker by this alone: the connection comes from the other node. So what is said is signed as what
nodes ask one another is (`node_signatures`), and the path is one that nobody else has a use for.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from astraflow.api.node_signatures import NODE
from astraflow.core.security.certificates import PeerCertificate

if TYPE_CHECKING:
    from astraflow.api.node_signatures import NodeSignatures

RELAY_PATH: Final = b"/internal/v1/workers"
WORKER: Final = b"x-astra-worker"
"""Base64 of a `RelayedWorker`."""


class LaneOwner(NamedTuple):
    """The node that owns the shard of a lane, as far as it is known here."""

    shard: int
    url: str

    @property
    def is_private(self) -> bool:
        """Whether nobody can listen on the way there."""
        return self.url.startswith("https:")


class RelayedWorker(msgspec.Struct, frozen=True):
    """The other end of a relayed connection."""

    address: str
    certificate: PeerCertificate | None = None
    """The identity that TLS has verified where the worker connected."""


_decode: Final = msgspec.json.Decoder(RelayedWorker).decode


def relay_headers(signatures: NodeSignatures, worker: RelayedWorker) -> list[tuple[bytes, bytes]]:
    said = base64.urlsafe_b64encode(msgspec.json.encode(worker))
    return [(WORKER, said), signatures.header("GET", RELAY_PATH, said)]


def relayed_worker(
    signatures: NodeSignatures, headers: Mapping[bytes, bytes]
) -> RelayedWorker | None:
    """What another node says; None, if it was no node."""
    said = headers.get(WORKER, b"")
    given = [(NODE, headers[NODE])] if NODE in headers else []
    if not signatures.is_good(given, "GET", RELAY_PATH, said):
        return None
    try:
        return _decode(base64.urlsafe_b64decode(said))
    except (msgspec.DecodeError, ValueError):
        return None
