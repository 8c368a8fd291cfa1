"""Small pieces both sides of a simulated wire share: ids, credentials, and the codec when it is asked for."""

from __future__ import annotations

from functools import lru_cache

from astraflow.core import errors
from astraflow.core.protocol import codec
from astraflow.core.protocol.control import Handshake
from astraflow.core.protocol.events import Principal
from astraflow.core.protocol.wire import Envelope
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import SessionTokens
from tests.sim.config import Config
from tests.sim.world import World

__all__ = ["SimIds", "authenticate", "through_codec", "tokens_for"]


class SimIds:
    """Ids of a simulated process."""

    __slots__ = ("new",)

    def __init__(self, world: World) -> None:
        self.new = world.new_id


def authenticate(
    handshake: Handshake, tenant: str, certificate: object, wall: float
) -> Principal | errors.Code:
    if handshake.auth.token != "good":
        return errors.AUTH_INVALID_TOKEN
    return Principal(
        subject=handshake.worker.worker_instance_id, tenant=tenant, role="worker", expires_at=None
    )


@lru_cache
def _ring() -> KeyRing:
    return KeyRing({"k1": b"a secret of the simulation, long enough"}, "k1")


def tokens_for(config: Config) -> SessionTokens:
    return SessionTokens(_ring(), config.token_ttl_s)


def through_codec(envelope: Envelope) -> Envelope:
    """What the other side would read: the frame as bytes and back."""
    return codec.decode(codec.encode(envelope, "2026-01-15T10:00:00.000Z"))
