"""Tells the service manager how this process is: what `sd_notify(3)` of systemd does, without its library.

A unit of `Type=notify` names a socket in `NOTIFY_SOCKET`; each datagram to it is a few lines `NAME=value`. Without the
variable nothing is sent. A manager that does not take a datagram is no reason for a process to end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Final

_log: Final = logging.getLogger(__name__)

LOOK_S: Final = 0.5
"""How often the status is looked at. One that has not changed is not sent again."""
WATCHDOG_SHARE: Final = 0.4
"""Of the watchdog's time, after which it is told again that the process lives: two tries before it is over."""


class ServiceManager:
    """The manager of this process, if it has one. `watchdog_s`: after so long without a word it kills the process."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self.watchdog_s = watchdog_s if address is not None else None

    @classmethod
    def take_from(cls, environ: MutableMapping[str, str]) -> ServiceManager:
        """The manager that the environment names. Its variables are removed: they are not for what we start."""
        address = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        pid = environ.pop("WATCHDOG_PID", "")
        if not address.startswith(("/", "@")):
            return cls()
        is_watched = microseconds.isdecimal() and int(microseconds) > 0
        is_ours = pid in ("", str(os.getpid()))
        return cls(address, int(microseconds) / 1e6 if is_watched and is_ours else None)

    def ready(self) -> None:
        """Units that come after this one may start."""
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Send it more often than once in `watchdog_s`."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """A line for people, which `systemctl status` shows."""
        self._send(f"STATUS={' '.join(text.split())}")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        address = self._address
        if address.startswith("@"):  # an abstract name
            address = f"\0{address[1:]}"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(message.encode(), address)
        except OSError as error:
            _log.warning("cannot tell the service manager %s: %s", message, error)

    @property
    def is_there(self) -> bool:
        return self._address is not None


@asynccontextmanager
async def reporting(
    manager: ServiceManager, status: Callable[[], str | None]
) -> AsyncIterator[None]:
    """Report from inside the event loop, so that a loop that hangs does not seem alive. `status`: what the process does
    now; None while it starts. With the first status it is ready; at the end it is stopping."""
    if not manager.is_there:
        yield
        return
    task = asyncio.create_task(_report(manager, status))
    try:
        yield
    finally:
        task.cancel()
        manager.stopping()


async def _report(manager: ServiceManager, status: Callable[[], str | None]) -> None:
    pause_s, told = LOOK_S, None
    if manager.watchdog_s is not None:
        pause_s = min(pause_s, WATCHDOG_SHARE * manager.watchdog_s)
    while True:
        text = status()
        if text is not None and text != told:
            manager.status(text)
            if told is None:
                manager.ready()
            told = text
        if manager.watchdog_s is not None:
            manager.alive()
        await asyncio.sleep(pause_s)
