"""The network of a browser: gone, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import BrowserContext, CDPSession

__all__ = ["offline"]


@contextmanager
def offline(context: BrowserContext) -> Iterator[None]:
    """As when the cable is pulled, for all tabs and for the worker that they share.

    Playwright takes pages offline. A shared worker is a target of its own, which DevTools reaches by the browser.
    """
    assert context.browser is not None
    session = context.browser.new_browser_cdp_session()
    found = session.send("Target.getTargets", {"filter": [{"type": "shared_worker"}]})
    assert found["targetInfos"], "no tab has a shared worker"
    workers = [
        session.send("Target.attachToTarget", {"targetId": one["targetId"]})["sessionId"]
        for one in found["targetInfos"]
    ]
    for worker in workers:
        _send(session, worker, "Network.enable")
        _send(
            session,
            worker,
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )
    context.set_offline(True)
    try:
        yield
    finally:
        # Without its session a worker has the network of the browser again.
        for worker in workers:
            session.send("Target.detachFromTarget", {"sessionId": worker})
        session.detach()
        context.set_offline(False)


def _send(session: CDPSession, worker: str, method: str, **params: Any) -> None:
    message = json.dumps({"id": 1, "method": method, "params": params})
    session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
