"""Binding the port: a module of its own, so that it is done before the imports of the server, which take a while."""

from __future__ import annotations

import errno
import socket
from typing import Final

from astraflow.core import errors

BACKLOG: Final = 128
"""Connections that may wait before the server accepts them; it then allows more."""


def listen(host: str, port: int) -> socket.socket:
    """Bind the port before anything is started.

    Raises:
        Refused: it is in use, or this user may not bind it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"cannot listen on {host}:{port}: {error.strerror}",
            pointer="/port",
            detail={"hint": _hint(error)},
        ) from error
    sock.setblocking(False)
    return sock


def _hint(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "stop the process that listens there, or choose another port: --port 0 takes a free one"
        )
    if error.errno == errno.EACCES:
        return "ports below 1024 need more rights; choose a higher one with --port"
    return "give an address of this machine with --host, and a free port with --port"
