"""`/api/docs` in a real Chromium: every operation is listed, and the console stays empty."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx

from tests.processes.system import running

SECONDS = 60


def chromium() -> str:
    for name in (os.environ.get("ASTRA_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise AssertionError("there is no Chromium: `make chromium` installs one")


def rendered(url: str, profile: Path) -> tuple[str, str]:
    """The page when its scripts have run, and what the console said."""
    ended = subprocess.run(
        [
            chromium(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    console = "\n".join(line for line in ended.stderr.splitlines() if "CONSOLE" in line)
    return ended.stdout, console


def test_the_page_lists_every_operation_without_an_error(tmp_path: Path) -> None:
    with running(tmp_path / "site") as site:
        document = httpx.get(f"{site.url}/api/openapi.json").json()
        page, console = rendered(f"{site.url}/api/docs", tmp_path / "profile")
    operations = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if "operationId" in operation
    }
    shown = re.findall(r"<summary><b>(\w+)</b><code>([^<]*)</code>", page)
    assert set(shown) == operations
    assert len(shown) == len(operations) > 40
    assert document["info"]["description"] in page
    shown_text = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "undefined" not in shown_text
    assert console == ""


def test_the_console_is_looked_at(tmp_path: Path) -> None:
    broken = tmp_path / "page.html"
    broken.write_text("<script>throw new TypeError('seen')</script>")
    assert "seen" in rendered(broken.as_uri(), tmp_path / "profile")[1]
