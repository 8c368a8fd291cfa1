"""Run nodes without a session: pushed tasks in, callbacks out (ADR-023).

    worker = ServerlessWorker.of_package(".", schedulers=["https://astra.example.com"], secret="…")
    app = worker.asgi()                      # for Cloud Run, uvicorn and every other ASGI server
    worker.handle(body, headers)             # for functions: one call, one attempt

The same handlers run in a worker with a session.
"""

from __future__ import annotations

from astraflow_sdk.serverless.asgi import AsgiWorker
from astraflow_sdk.serverless.worker import PushReply, ServerlessWorker

__all__ = ["AsgiWorker", "PushReply", "ServerlessWorker"]
