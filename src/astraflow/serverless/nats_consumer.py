"""Takes the tasks of a pool from NATS JetStream and runs them with a worker without a session.

A message is acknowledged when its attempt has ended, and kept alive while it runs: one whose consumer dies is delivered
again, and stopped at its start if the first delivery still runs.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import nats.errors
import nats.js.api

from astraflow.scheduler.dispatchers.nats import NatsLogin, connect, ensure_stream

if TYPE_CHECKING:
    from astraflow_sdk.serverless import ServerlessWorker
    from nats.aio.msg import Msg

_log: Final = logging.getLogger(__name__)

CONNECT_S: Final = 30.0
FETCH_S: Final = 5.0
ACK_WAIT_S: Final = 30.0
ALIVE_EVERY_S: Final = 10.0
AGAIN_S: Final = 2.0


async def consume(
    worker: ServerlessWorker,
    *,
    login: NatsLogin,
    subject: str,
    stream: str,
    max_parallel: int,
    stop: asyncio.Event,
) -> None:
    """Run tasks until told to stop; what runs then is finished."""
    client = await connect(login, within_s=CONNECT_S)
    try:
        await ensure_stream(client, stream, subject)
        config = nats.js.api.ConsumerConfig(
            ack_wait=ACK_WAIT_S, max_ack_pending=max_parallel, max_deliver=-1
        )
        pull = await client.jetstream().pull_subscribe(
            subject, durable=f"{stream}-workers", stream=stream, config=config
        )
        running: set[asyncio.Task[None]] = set()
        while not stop.is_set():
            if len(running) >= max_parallel:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                messages = await pull.fetch(max_parallel - len(running), timeout=FETCH_S)
            except (nats.errors.TimeoutError, TimeoutError):
                continue
            for message in messages:
                task = asyncio.create_task(_run(worker, message))
                running.add(task)
                task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running)
    finally:
        await client.close()


async def _run(worker: ServerlessWorker, message: Msg) -> None:
    headers = dict(message.headers or {})
    done = asyncio.create_task(asyncio.to_thread(worker.handle, message.data, headers))
    while True:
        finished, _ = await asyncio.wait([done], timeout=ALIVE_EVERY_S)
        if finished:
            break
        await message.in_progress()
    reply = done.result()
    if reply.status == 503:
        await message.nak(delay=AGAIN_S)
        return
    if reply.status != 200:
        _log.warning("a task was refused with %s: %s", reply.status, reply.body.decode()[:200])
    await message.ack()
