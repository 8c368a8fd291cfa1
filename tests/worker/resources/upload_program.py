"""Uploads a large file and prints by how many bytes the process grew, and how many arrived.

`python upload_program.py FOLDER SIZE`. The file is sparse, so that it costs no disk.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from astraflow.worker.resources.exports import put_file


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main() -> None:
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    small, large = folder / "small", folder / "large"
    small.write_bytes(bytes(4 * 1024 * 1024))
    with large.open("wb") as content:
        content.truncate(size)
    received = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        head = await reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        received = 0
        while left:
            piece = await reader.read(min(64 * 1024, left))
            left -= len(piece)
            received += len(piece)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        await put_file(small, 4 * 1024 * 1024, address, None)  # what every upload costs
        before = peak_bytes()
        await put_file(large, size, address, None)
        print(peak_bytes() - before, received)


if __name__ == "__main__":
    asyncio.run(main())
