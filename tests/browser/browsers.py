"""The Chromium that is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--no-sandbox",
    # Nothing but this machine: a page that names another host does not wait for it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@contextmanager
def launched() -> Iterator[Browser]:
    program = os.environ.get("ASTRA_CHROMIUM") or shutil.which("chromium") or "google-chrome"
    path = shutil.which(program)
    assert path is not None, "there is no Chromium: `make chromium` installs one"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
