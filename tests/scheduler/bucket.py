"""A real S3 server on this machine, in a folder of its own, for as long as a block lasts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

KEY, SECRET = "test-key", "test-secret-of-nobody"
START_S = 60.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """The environment that leads to it."""
    folder = Path(tempfile.mkdtemp(prefix="bucket-"))
    ports = free_ports(8)
    names = ("master", "volume", "filer", "s3")
    listening = [
        f"-{name}.port{kind}={port}"
        for (name, kind), port in zip(
            [(name, kind) for name in names for kind in ("", ".grpc")], ports, strict=True
        )
    ]
    program = Path(sys.executable).parent / "weed"
    environ = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                program,
                "-logtostderr=true",
                "server",
                f"-dir={folder}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-filer",
                "-s3",
                # Each of these would listen on one port for all, and one server a machine could start.
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                "-volume.max=4",
                "-master.volumeSizeLimitMB=256",
                *listening,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environ,
        )
    url = f"http://127.0.0.1:{ports[6]}"
    try:
        _wait_for(f"{url}/healthz", folder / "log")
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.kill()  # it has nothing that must be kept, and takes its time when asked
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str, log: Path) -> None:
    ends_at = time.monotonic() + START_S
    with httpx.Client(trust_env=False, timeout=5) as client:
        while time.monotonic() < ends_at:
            try:
                if client.get(url).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)  # on two cores a tight loop would keep the server from starting
    raise AssertionError(f"the server did not start: {log.read_text()[-2_000:]}")
