"""Open the web app in the browser of whoever typed the command."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Mapping

__all__ = ["is_wanted", "open_page", "sees_browser"]


def sees_browser(environ: Mapping[str, str], *, is_terminal: bool, platform: str) -> bool:
    """Whether a person sits at this machine who would see a browser open.

    A browser on the far end of SSH, in a container or in CI is seen by nobody.
    """
    if not is_terminal or "SSH_CONNECTION" in environ or "CI" in environ:
        return False
    if "BROWSER" in environ or platform in ("darwin", "win32"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def is_wanted(asked: bool | None) -> bool:
    """What was asked for; without that, whether it would be seen."""
    if asked is not None:
        return asked
    return sees_browser(os.environ, is_terminal=sys.stdout.isatty(), platform=sys.platform)


async def open_page(url: str) -> bool:
    """Open a page. In a thread: a browser of the terminal ends when its user leaves it."""
    return await asyncio.to_thread(webbrowser.open, url)
