"""A real S3 server on this machine, in a folder of its own, for as long as a block lasts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import httpx

from tests.processes.process import Process, free_port

KEY = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret-of-nobody"}
SERVER = (
    "-logtostderr=true",
    "server",
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-filer",
    "-s3",
    # Each of these would listen on one port for all, and one server a machine could start.
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-volume.max=4",
    "-master.volumeSizeLimitMB=256",
)


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """The environment that leads to it."""
    folder = Path(tempfile.mkdtemp(prefix="bucket-"))
    ports = {
        f"{part}.port{kind}": free_port()
        for part, kind in product(("master", "volume", "filer", "s3"), ("", ".grpc"))
    }
    arguments = [*SERVER, f"-dir={folder}", *(f"-{name}={port}" for name, port in ports.items())]
    program = str(Path(sys.executable).parent / "weed")
    server = Process("weed", arguments, folder, KEY, (program,)).start()
    url = f"http://127.0.0.1:{ports['s3.port']}"
    try:
        server.until(lambda: _is_up(url), "an S3 server")
        yield {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", **KEY}
    finally:
        server.close()  # it has nothing that must be kept, and takes its time when asked
        shutil.rmtree(folder, ignore_errors=True)
