"""What is put on the sockets of workers, and what waits because they do not read."""

from __future__ import annotations

from astraflow.core.ids import SessionId
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.events import CloseConnection, SendFrame
from astraflow.core.protocol.wire import Envelope, Sender
from astraflow.scheduler.connections import Connections

TS = "2026-01-15T10:00:00.000Z"


class Socket:
    """One that takes `room` bytes, and counts."""

    def __init__(self, room: int = 1 << 20) -> None:
        self.left = room
        self.frames: list[bytes] = []
        self.writes = 0
        self.is_admitted = False
        self.code: int | None = None

    def send(self, frames: list[bytes]) -> None:
        self.writes += 1
        self.frames += frames
        self.left -= sum(map(len, frames))

    def room(self) -> int:
        return self.left

    def peer(self) -> str:
        return "192.0.2.1:5"

    def admit(self) -> None:
        self.is_admitted = True

    def close(self, code: int) -> None:
        self.code = code


def frame(conn: str, kind: str = control.ACK) -> SendFrame:
    payload = control.ControlAck("x" * 100)
    return SendFrame(conn, Envelope(kind, "i", "", "acme", Sender("scheduler", "s"), payload))


def counted() -> tuple[Connections, list[tuple[str, int, int]]]:
    counts: list[tuple[str, int, int]] = []
    return Connections(lambda *one: counts.append(one), lambda peer, who: None), counts


def test_all_frames_of_a_turn_are_one_write() -> None:
    connections, counts = counted()
    first, second = Socket(), Socket()
    one, two = connections.open(first), connections.open(second)
    assert one != two
    connections.perform([frame(one), frame(two), frame(one)], TS)
    assert (first.writes, len(first.frames)) == (1, 2)
    assert (second.writes, len(second.frames)) == (1, 1)
    assert [tenant for tenant, _, _ in counts] == ["acme", "acme"]


def test_what_there_is_no_room_for_waits_in_order_and_is_not_lost() -> None:
    connections, _ = counted()
    socket = Socket(room=1)
    conn = connections.open(socket)
    connections.perform([frame(conn), frame(conn, control.ERROR)], TS)
    assert len(socket.frames) == 1
    connections.perform([frame(conn, control.DRAIN)], TS)
    assert len(socket.frames) == 1
    connections.drained("unknown", TS)
    socket.left = 1 << 20
    connections.drained(conn, TS)
    kinds = [raw.split(b'"type":"', 1)[1].split(b'"')[0].decode() for raw in socket.frames]
    assert kinds == [control.ACK, control.ERROR, control.DRAIN]


def accept(conn: str, *features: str) -> SendFrame:
    payload = control.SessionAccept(
        SessionId("s"), "t", TS, False, "w-1", 256, 4 << 20, 5_000, 30_000, None, None, features
    )
    sender = Sender("scheduler", "s")
    return SendFrame(conn, Envelope(control.SESSION_ACCEPT, "i", "", "acme", sender, payload))


def drains(conn: str) -> list[SendFrame | CloseConnection]:
    sender, drain = Sender("scheduler", "s"), control.ControlDrain("x" * 100)
    return [
        SendFrame(conn, Envelope(control.DRAIN, f"i{seq}", "", "acme", sender, drain, seq=seq))
        for seq in range(5)
    ]


def test_only_a_session_with_the_feature_gets_bundles() -> None:
    connections, _ = counted()
    plain, bundled = Socket(), Socket()
    one, two = connections.open(plain), connections.open(bundled)
    connections.perform([accept(one, "another"), accept(two, control.FRAMES_BUNDLED)], TS)
    connections.perform([*drains(one), *drains(two)], TS)
    assert (plain.writes, len(plain.frames)) == (2, 6)
    assert (bundled.writes, len(bundled.frames)) == (2, 2)
    assert bundled.frames[1].startswith(b"[")


def test_only_what_lets_somebody_in_admits_and_counts() -> None:
    connections, counts = counted()
    socket = Socket()
    conn = connections.open(socket)
    connections.received(conn, [frame(conn).envelope], 77)
    connections.perform([frame(conn, control.RESET)], TS)
    assert (socket.is_admitted, counts) == (False, [])
    connections.received(conn, [frame(conn).envelope], 5)
    connections.perform([frame(conn, control.SESSION_ACCEPT)], TS)
    assert socket.is_admitted
    assert [(tenant, size) for tenant, size, _ in counts] == [("acme", 5)]
    assert connections.admitted() == {"acme": 1}
    connections.forget(conn)
    assert connections.admitted() == {}


def test_a_close_goes_after_what_was_said_before_it() -> None:
    connections, _ = counted()
    socket = Socket()
    conn = connections.open(socket)
    close = CloseConnection(conn, limits.CLOSE_POLICY)
    connections.perform([frame(conn), close, frame(conn), frame("unknown")], TS)
    assert (len(socket.frames), socket.code) == (1, limits.CLOSE_POLICY)
    assert conn not in connections
    assert not connections.forget(conn)


def test_all_are_closed_at_the_end() -> None:
    connections, _ = counted()
    socket = Socket()
    conn = connections.open(socket)
    connections.close_all(limits.CLOSE_TRY_LATER)
    assert socket.code == limits.CLOSE_TRY_LATER
    assert conn not in connections
