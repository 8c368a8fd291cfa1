"""The pipes of a host: what a pipe does not take at once is written later, whole and in order."""

from __future__ import annotations

import asyncio
import os

from astraflow_sdk.host.channel import Channel


async def test_frames_that_a_pipe_does_not_take_at_once_arrive_whole_and_in_order() -> None:
    to_host = os.pipe()
    from_host = os.pipe()
    channel = Channel(to_host[0], from_host[1], lambda frame: None, lambda: None)
    texts = ["x" * 1_000_000, "é" * 300_000, "last"]
    for text in texts:
        channel.send(text)
    whole = b"".join(len(raw).to_bytes(4, "big") + raw for raw in map(str.encode, texts))
    arrived = bytearray()
    while len(arrived) < len(whole):
        await asyncio.sleep(0)
        waiting = channel.blocked_bytes
        arrived += os.read(from_host[0], 10_000)
        assert waiting < len(whole)
    assert arrived == whole
    await asyncio.sleep(0)
    assert channel.blocked_bytes == 0
    loop = asyncio.get_running_loop()
    loop.remove_reader(to_host[0])
    loop.remove_writer(from_host[1])
    for end in (*to_host, *from_host):
        os.close(end)
