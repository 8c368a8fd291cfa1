"""The handlers. Each takes the session that an earlier node opened, and hands it on."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from astraflow_sdk import (
    ConfigurationError,
    Context,
    DataQualityError,
    InfrastructureError,
    ResourceError,
    ResourceHandle,
    artifact,
    resource,
)
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator, Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

from crawlerx_playwright.browser import Session, new_session

__all__ = ["PlaywrightAdapter"]

TYPE = "browserSession"
TIMEOUT_MS = 30_000
EXTRACTS = ("text", "html", "value", "attribute", "count")


class PlaywrightAdapter:
    """The entry point of the manifest: a method per node."""

    async def open_page(
        self,
        ctx: Context,
        url: str,
        waitFor: str = "domcontentloaded",
        timeoutMs: int = TIMEOUT_MS,
        page: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Go to an address, in the session that is given or in a new one."""
        handle = _lease(page) if page else None
        session = handle.value if handle is not None else await new_session()
        try:
            async with session.lock:
                with _told(f"open {url}"):
                    response = await session.page.goto(url, wait_until=waitFor, timeout=timeoutMs)
                shown = await _shown(session.page)
        except BaseException:
            if handle is None:
                await session.close()  # nobody else knows of it
            raise
        if handle is None:
            handle = resource.keep(session, type=TYPE, close=session.close, metadata=shown)
        status = None if response is None else response.status
        return {
            "status": "SUCCEEDED",
            "page": {**handle.ref(), **shown, "httpStatus": status},
            "done": True,
        }

    async def click(
        self,
        ctx: Context,
        selector: str,
        page: Any = None,
        waitFor: str = "visible",
        button: str = "left",
        delay: int = 0,
        timeoutMs: int = TIMEOUT_MS,
    ) -> dict[str, Any]:
        """Click an element, when it is as it shall be."""
        async with _session(page) as (handle, session):
            found = session.page.locator(selector)
            with _told(f"click {selector}"):
                await _wait(found, waitFor, timeoutMs)
                await found.first.click(button=button, delay=delay, timeout=timeoutMs)
                await session.page.wait_for_load_state("domcontentloaded", timeout=timeoutMs)
            return await _done(handle, session, metadata={"selector": selector})

    async def input(
        self,
        ctx: Context,
        selector: str,
        text: str,
        page: Any = None,
        clear: bool = True,
        submit: bool = False,
        timeoutMs: int = TIMEOUT_MS,
    ) -> dict[str, Any]:
        """Write a text into a field."""
        async with _session(page) as (handle, session):
            found = session.page.locator(selector).first
            with _told(f"write into {selector}"):
                if clear:
                    await found.fill(text, timeout=timeoutMs)
                else:
                    await found.press_sequentially(text, timeout=timeoutMs)
                if submit:
                    await found.press("Enter", timeout=timeoutMs)
                    await session.page.wait_for_load_state("domcontentloaded", timeout=timeoutMs)
            return await _done(handle, session, metadata={"selector": selector})

    async def extract(
        self,
        ctx: Context,
        selector: str,
        page: Any = None,
        what: str = "text",
        attribute: str | None = None,
        many: bool = False,
        timeoutMs: int = TIMEOUT_MS,
    ) -> dict[str, Any]:
        """Read what an element holds, or what all of them hold."""
        if what not in EXTRACTS:
            raise ConfigurationError(f"what must be one of {', '.join(EXTRACTS)}: {what}")
        if what == "attribute" and not attribute:
            raise ConfigurationError("name the attribute that is to be read")
        async with _session(page) as (handle, session):
            found = session.page.locator(selector)
            with _told(f"read {selector}"):
                if what == "count":
                    value: Any = await found.count()
                elif many:
                    value = [await _read(one, what, attribute) for one in await found.all()]
                else:
                    await found.first.wait_for(state="attached", timeout=timeoutMs)
                    value = await _read(found.first, what, attribute)
            return {**await _done(handle, session), "value": value}

    async def screenshot(
        self,
        ctx: Context,
        page: Any = None,
        selector: str | None = None,
        fullPage: bool = False,
        name: str = "screenshot.png",
        timeoutMs: int = TIMEOUT_MS,
    ) -> dict[str, Any]:
        """A picture of the page, or of one element, as an artifact."""
        async with _session(page) as (handle, session):
            with _told("take a picture"):
                if selector:
                    element = session.page.locator(selector).first
                    picture = await element.screenshot(timeout=timeoutMs)
                else:
                    picture = await session.page.screenshot(full_page=fullPage, timeout=timeoutMs)
            kept = artifact.store_bytes(picture, name=name, mime="image/png", type="image")
            return {**await _done(handle, session), "image": kept.ref(), "sizeBytes": len(picture)}

    async def close(self, ctx: Context, page: Any = None) -> dict[str, Any]:
        """End the session before its run does."""
        handle = _lease(page)
        assert ctx.resource_registry is not None
        ctx.resource_registry.release(handle.resource_id, reason="closed by a node")
        ctx.resource_registry.evict(handle.resource_id)
        return {"status": "SUCCEEDED", "done": True}


def _lease(page: Any) -> ResourceHandle:
    if not isinstance(page, dict) or not page:
        raise ConfigurationError(
            "this node acts on a page: connect the page of an Open Page node to its page port"
        )
    handle = resource.lease(page)
    if not isinstance(handle.value, Session):
        raise ConfigurationError(f"this is no browser session but a {handle.type}")
    return handle


@contextlib.asynccontextmanager
async def _session(page: Any) -> AsyncIterator[tuple[ResourceHandle, Session]]:
    handle = _lease(page)
    session: Session = handle.value
    async with session.lock:
        yield handle, session


@contextlib.contextmanager
def _told(what: str) -> Any:
    """Say what could not be done, under the category that decides whether it is tried again."""
    try:
        yield
    except PlaywrightTimeout as problem:
        message = problem.message.splitlines()[0]
        raise DataQualityError(f"could not {what}: {message}") from problem
    except PlaywrightError as problem:
        message = problem.message.splitlines()[0]
        if "closed" in message or "crashed" in message:
            lost = "E.RESOURCE.LOST"
            raise ResourceError(
                f"the browser session is gone: {message}",
                category="INFRASTRUCTURE",
                code=lost,
                retryable=False,
            ) from problem
        raise InfrastructureError(f"could not {what}: {message}") from problem


async def _wait(found: Locator, state: str, timeout_ms: int) -> None:
    if state in ("visible", "attached"):
        await found.first.wait_for(state=state, timeout=timeout_ms)
        return
    if state not in ("stable", "enabled"):
        raise ConfigurationError(f"waitFor must be visible, attached, stable or enabled: {state}")
    element = await found.first.element_handle(timeout=timeout_ms)
    assert element is not None
    await element.wait_for_element_state(state, timeout=timeout_ms)


async def _read(found: Locator, what: str, attribute: str | None) -> Any:
    if what == "text":
        return await found.inner_text()
    if what == "html":
        return await found.inner_html()
    if what == "value":
        return await found.input_value()
    assert attribute is not None
    return await found.get_attribute(attribute)


async def _shown(page: Page) -> dict[str, Any]:
    return {"url": page.url, "title": await page.title()}


async def _done(handle: ResourceHandle, session: Session, **more: Any) -> dict[str, Any]:
    with _told("read where it is"):
        shown = await _shown(session.page)
    more["metadata"] = {**more.get("metadata", {}), **shown}
    return {"status": "SUCCEEDED", "page": {**handle.ref(), **shown}, "done": True, **more}
