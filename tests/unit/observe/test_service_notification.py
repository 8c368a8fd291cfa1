"""What is sent to a service manager: read from a real socket."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from astraflow.observe.service_notification import ServiceManager, reporting


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address)
        sock.setblocking(False)
        yield sock


def said(sock: socket.socket) -> list[str]:
    """The datagrams that have come."""
    found = []
    while True:
        try:
            found.append(sock.recv(4096).decode())
        except BlockingIOError:
            return found


def test_each_word_is_one_datagram(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as sock:
        manager = ServiceManager.take_from({"NOTIFY_SOCKET": address})
        manager.status("waits\nfor the  store")
        manager.ready()
        manager.alive()
        manager.stopping()
        assert said(sock) == ["STATUS=waits for the store", "READY=1", "WATCHDOG=1", "STOPPING=1"]


def test_an_abstract_name_is_reached() -> None:
    name = f"astraflow-test-{os.getpid()}"
    with listening(f"\0{name}") as sock:
        ServiceManager.take_from({"NOTIFY_SOCKET": f"@{name}"}).ready()
        assert said(sock) == ["READY=1"]


def test_the_variables_are_not_passed_on() -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/"}
    ServiceManager.take_from(environ)
    assert environ == {"HOME": "/"}


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "3000000"}, None),
        ({"NOTIFY_SOCKET": "/x"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000"}, 3.0),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2500", "WATCHDOG_PID": "self"}, 0.0025),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "vsock:2:3", "WATCHDOG_USEC": "3000000"}, None),
    ],
)
def test_a_watchdog_is_one_for_this_process(
    environ: dict[str, str], watchdog_s: float | None
) -> None:
    if environ.get("WATCHDOG_PID") == "self":
        environ = {**environ, "WATCHDOG_PID": str(os.getpid())}
    assert ServiceManager.take_from(dict(environ)).watchdog_s == watchdog_s


def test_nobody_who_listens_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ServiceManager().ready()
        assert caplog.messages == []
        ServiceManager(str(tmp_path / "gone")).ready()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("cannot tell the service manager READY=1: ")


async def test_ready_comes_with_the_first_status(tmp_path: Path) -> None:
    address, status, heard = str(tmp_path / "notify"), None, list[str]()
    with listening(address) as sock:

        async def until(word: str) -> None:
            while word not in heard:
                heard.extend(said(sock))
                await asyncio.sleep(0)

        async with reporting(ServiceManager(address, 0.01), lambda: status):
            await until("WATCHDOG=1")
            assert "READY=1" not in heard, "alive, and not ready yet"
            status = "standby"
            await until("READY=1")
            status = "serving"
            await until("STATUS=serving")
        heard += said(sock)
    assert heard[-1] == "STOPPING=1"
    assert [one for one in heard if one != "WATCHDOG=1"] == [
        "STATUS=standby",
        "READY=1",
        "STATUS=serving",
        "STOPPING=1",
    ]


async def test_without_a_manager_nothing_runs() -> None:
    before = asyncio.all_tasks()
    async with reporting(ServiceManager(), lambda: "serving"):
        assert asyncio.all_tasks() == before
