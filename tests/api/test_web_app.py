"""The web app from outside: what each path gets, with which headers, and what cannot be reached."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from astraflow.api.app import ROUTES
from astraflow.api.web_app import FOREVER, SECTIONS, WebApp
from astraflow.web import DIST
from tests.api.rig import problem_of, serving

ROUTER = Path(__file__).parents[2] / "web/src/app/router.tsx"
ASSETS = sorted((DIST / "assets").iterdir())
CONTENTS = {path.name: path.read_bytes() for path in ASSETS}
LARGEST = max(ASSETS, key=lambda path: path.stat().st_size)
MAX_FIRST_BYTES = 300 * 1024
PAGE = (DIST / "index.html").read_text()


def reply_of(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


def asking(path: str, method: str = "GET", **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: close", *lines, "", ""]
    return "\r\n".join(head).encode()


@pytest.mark.parametrize(
    "path", ["/", "/workflows", "/workflows/", "/workflows/a-b/versions/3", "/runs/r1?tab=timeline", "/settings"]
)  # fmt: skip
async def test_the_paths_of_the_app_get_its_page(path: str) -> None:
    async with serving() as rig:
        status, headers, body = reply_of(await rig.raw(asking(path)))
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["cache-control"] == "no-cache"
    assert "etag" not in headers, "a 304 would keep an old nonce under a new policy"
    assert b'<div id="root">' in body


@pytest.mark.parametrize(
    "path",
    [
        "/assets",
        "/assets/",
        "/assets/nothing.js",
        "/assets/index.html",
        "/index.html",
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2f..%2f__init__.py",
        "/assets/..\\..\\__init__.py",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/../web/__init__.py",
        "/__init__.py",
        "/workflows/../api/v1/nothing",
        "/workflows/..%2f..%2fetc",
        "/workflows/./x",
        "/workflowsx",
        "/Workflows",
        "/docs",
        "/api",
        "/api/v1/workflowz",
        "/api/docs/more",
        "/login/more",
        "/favicon.ico",
    ],
)
async def test_everything_else_is_a_problem_and_never_the_page(path: str) -> None:
    async with serving() as rig:
        status, headers, body = reply_of(await rig.raw(asking(path)))
    assert status == 404, path
    assert headers["content-type"] == "application/problem+json"
    assert b"root" not in body


@pytest.mark.parametrize("asset", ASSETS, ids=lambda path: path.suffix + path.name[:12])
async def test_an_asset_is_kept_for_ever(asset: Path) -> None:
    async with serving() as rig:
        status, headers, body = reply_of(await rig.raw(asking(f"/assets/{asset.name}")))
    assert (status, body) == (200, CONTENTS[asset.name])
    assert headers["cache-control"] == FOREVER.decode()
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] != "application/octet-stream"
    assert re.search(r"-[\w-]{8}\.\w+$", asset.name), "its name has the hash of its content"


async def test_an_asset_is_compressed_if_the_client_accepts_it() -> None:
    path = f"/assets/{LARGEST.name}"
    async with serving() as rig:
        _, plain, _ = reply_of(await rig.raw(asking(path)))
        _, small, body = reply_of(await rig.raw(asking(path, accept_encoding="br, gzip")))
        _, again, same = reply_of(await rig.raw(asking(path, accept_encoding="gzip")))
        _, refused, _ = reply_of(await rig.raw(asking(path, accept_encoding="gzip;q=0")))
    assert gzip.decompress(body) == LARGEST.read_bytes()
    assert (small["content-encoding"], small["vary"]) == ("gzip", "accept-encoding")
    assert int(small["content-length"]) == len(body) < LARGEST.stat().st_size / 2
    assert (again["etag"], same) == (small["etag"], body)
    assert plain["etag"] != small["etag"], "other bytes have another validator"
    assert plain["vary"] == "accept-encoding"
    assert "content-encoding" not in refused


async def test_a_font_is_not_compressed_again() -> None:
    font = next(path for path in ASSETS if path.suffix == ".woff2")
    async with serving() as rig:
        raw = await rig.raw(asking(f"/assets/{font.name}", accept_encoding="gzip"))
    _, headers, body = reply_of(raw)
    assert "content-encoding" not in headers
    assert body == font.read_bytes()


async def test_what_a_browser_has_is_not_sent_again() -> None:
    path = f"/assets/{LARGEST.name}"
    async with serving() as rig:
        _, first, _ = reply_of(await rig.raw(asking(path)))
        etag = first["etag"]
        for given in (etag, f'"other", W/{etag}', "*"):
            status, headers, body = reply_of(await rig.raw(asking(path, if_none_match=given)))
            assert (status, body) == (304, b""), given
            assert headers["etag"] == etag
            assert headers["cache-control"] == FOREVER.decode()
            assert "content-length" not in headers
        status, _, _ = reply_of(await rig.raw(asking(path, if_none_match='"other"')))
        assert status == 200


@pytest.mark.parametrize("path", ["/", f"/assets/{LARGEST.name}"])
async def test_head_has_the_headers_of_get(path: str) -> None:
    async with serving() as rig:
        got = reply_of(await rig.raw(asking(path, accept_encoding="gzip")))
        asked = reply_of(await rig.raw(asking(path, "HEAD", accept_encoding="gzip")))
    assert (asked[0], asked[2]) == (200, b"")
    changing = ("x-request-id", "content-security-policy")
    assert {key: value for key, value in asked[1].items() if key not in changing} == {
        key: value for key, value in got[1].items() if key not in changing
    }


@pytest.mark.parametrize("path", ["/", "/workflows", f"/assets/{LARGEST.name}"])
async def test_the_app_is_only_read(path: str) -> None:
    async with serving() as rig:
        answer = await rig.client.request("POST", path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        problem_of(answer, 405, "E.REQUEST.METHOD")


async def test_each_page_has_a_nonce_of_its_own_and_no_other_inline_style_or_script() -> None:
    async with serving() as rig:
        replies = [reply_of(await rig.raw(asking("/"))) for _ in range(2)]
    nonces = []
    for _, headers, body in replies:
        policy = headers["content-security-policy"]
        (nonce,) = re.findall(r"'nonce-([\w-]{20,})'", policy)
        nonces.append(nonce)
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "'self'"
        assert rules["style-src"] == f"'self' 'nonce-{nonce}'"
        assert "unsafe" not in policy
        assert b"__CSP_NONCE__" not in body
        assert f'nonce="{nonce}"'.encode() in body
    assert nonces[0] != nonces[1]


def test_the_page_loads_what_is_there_and_nothing_from_elsewhere() -> None:
    named = re.findall(r'(?:src|href)="([^"]+)"', PAGE)
    assert named
    for path in named:
        assert (DIST / path.lstrip("/")).is_file(), path
    assert not re.search(r"<script(?![^>]*\bsrc=)", PAGE), "an inline script would be blocked"
    assert not list(DIST.rglob("*.map"))
    for style in DIST.glob("assets/*.css"):
        assert "url(http" not in style.read_text()


def test_the_first_page_loads_little_code() -> None:
    """What is not needed for the first page is a chunk of its own."""
    named = re.findall(r'(?:src|href)="/(assets/[^"]+\.js)"', PAGE)
    assert len(named) >= 2
    total = sum(len(gzip.compress((DIST / path).read_bytes())) for path in named)
    assert total <= MAX_FIRST_BYTES, f"{total} bytes of JavaScript"


async def test_the_app_is_there_while_the_scheduler_is_not_ready() -> None:
    async with serving(is_running=False) as rig:
        assert (await rig.get("/workflows")).status_code == 200
        assert (await rig.get("/api/v1/workflows")).status_code == 503


def test_no_section_of_the_app_hides_a_route_of_the_api() -> None:
    taken = {route.path.split("/")[1] for route in ROUTES}
    assert not taken & {*SECTIONS, "assets"}


def test_the_sections_are_those_of_the_router() -> None:
    paths = re.findall(r'path: "/([a-z]+)', ROUTER.read_text())
    assert set(paths) == set(SECTIONS)


def test_without_a_built_app_there_is_nothing(tmp_path: Path) -> None:
    app = WebApp(tmp_path)
    assert not app.has("/")
    assert not app.has("/workflows")
