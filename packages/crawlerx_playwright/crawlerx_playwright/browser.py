"""One Chromium for the host, one context per session.

A session is what later nodes find again: its cookies, its page, the place it has come to. It lives in the memory of
this host, so the nodes that use it are brought here.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import shutil
from typing import Any

from astraflow_sdk import ConfigurationError, InfrastructureError
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

__all__ = ["Session", "new_session"]

VARIABLE = "ASTRA_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Session:
    """A context of the browser with its page."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context = context
        self.page = page
        self.lock = asyncio.Lock()  # two nodes must not act on one page at once

    async def close(self) -> None:
        await self.context.close()


class _Running:
    """The browser of this process, started when it is first needed and again when it has crashed."""

    def __init__(self) -> None:
        self._lock: asyncio.Lock | None = None
        self._driver: Playwright | None = None
        self._browser: Browser | None = None

    async def browser(self) -> Browser:
        # Where no attempt is current: the browser serves all of them, and outlives the one that needed it first.
        starting = contextvars.Context().run(asyncio.ensure_future, self._started())
        return await asyncio.shield(starting)

    async def _started(self) -> Browser:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            if self._driver is None:
                self._driver = await async_playwright().start()
            try:
                self._browser = await self._driver.chromium.launch(
                    executable_path=find_chromium(),
                    args=[*ARGUMENTS, *_sandbox()],
                    # Its end is the host's end, which the worker sees to.
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            except PlaywrightError as problem:
                raise InfrastructureError(f"Chromium did not start: {problem}") from problem
            return self._browser


_running = _Running()


def find_chromium() -> str:
    """The browser's program: named by a variable, else found on the path.

    Raises:
        ConfigurationError: there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise ConfigurationError(f"{VARIABLE} names no program that can be run: {named}")
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ConfigurationError(
        f"no Chromium on this worker: install one (Debian: apt install chromium) or set {VARIABLE}"
    )


def _sandbox() -> list[str]:
    """Chromium refuses its own sandbox to root, as in most containers."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


async def new_session(**options: Any) -> Session:
    """A fresh context: no cookies, no history."""
    browser = await _running.browser()
    context = await browser.new_context(**options)
    return Session(context, await context.new_page())
