"""Installing on a worker: what comes in works, what fails leaves nothing, and versions do not see each other."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.protocol import business
from astraflow.packages import SigningKey, TrustedKeys, build_archive, sign
from astraflow.packages.shipped import build_shipped, find_shipped
from tests.packages.archives import HANDLERS, write_folder
from tests.worker.packages.rig import details, installing, left_in_staging, package, served, worker

SIX = """
import six
from astraflow_sdk import node


@node("demo.say")
def say() -> dict[str, str]:
    return {"six": six.__version__, "at": six.__file__}
"""


async def test_a_package_is_installed_offered_and_runs(tmp_path: Path) -> None:
    async with installing(tmp_path) as rig:
        before = rig.inventory.digest()
        event = await rig.install(package(tmp_path))
        assert event.status == "installed", event.details
        assert (rig.events[0].status, rig.events[0].progress) == ("downloading", 0.0)
        steps = [details(one)["step"] for one in rig.events if one.status == "installing"]
        assert steps == ["check", "unpack", "equip", "probe", "place"]
        assert rig.offered() == [("demo", "1.0.0")]
        assert rig.offers[-1] == [("demo", "1.0.0")]
        assert rig.inventory.digest() != before
        assert rig.catalog["demo", "1.0.0"]["name"] == "demo"
        assert await rig.outcome("t1", text="it runs") == {"text": "it runs"}
        assert left_in_staging(rig.folder) == []
        (head,) = rig.server.asked
        assert "authorization" not in head.lower()


async def test_the_same_version_again_is_nothing_new_and_other_bytes_are_a_conflict(
    tmp_path: Path,
) -> None:
    async with installing(tmp_path) as rig:
        archive = package(tmp_path)
        await rig.install(archive)
        asked = len(rig.server.asked)
        assert (await rig.install(archive)).status == "installed"
        assert len(rig.server.asked) == asked
        event = await rig.install(package(tmp_path, HANDLERS + "\n# changed\n"))
        assert (event.status, details(event)["code"]) == ("failed", "E.PKG.CONFLICT")
        assert await rig.outcome("t1", text="old") == {"text": "old"}


async def test_two_versions_with_conflicting_dependencies_run_side_by_side(tmp_path: Path) -> None:
    async with installing(tmp_path) as rig:
        for version, six in (("1.0.0", "1.16.0"), ("2.0.0", "1.15.0")):
            archive = package(
                tmp_path, SIX, version=version, python={"dependencies": [f"six=={six}"]}
            )
            event = await rig.install(archive, version)
            assert event.status == "installed", event.details
        assert rig.offered() == [("demo", "1.0.0"), ("demo", "2.0.0")]
        old, new = await rig.outcome("t1", "1.0.0"), await rig.outcome("t2", "2.0.0")
        assert (old["six"], new["six"]) == ("1.16.0", "1.15.0")
        assert "/packages/demo/1.0.0/.venv/" in old["at"]
        assert "/packages/demo/2.0.0/.venv/" in new["at"]


async def test_a_closed_list_of_dependencies_is_taken_by_its_hashes(tmp_path: Path) -> None:
    right = "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"
    hashed = f"six==1.16.0 --hash=sha256:{right}"

    async with installing(tmp_path) as rig:
        wrong = package(
            tmp_path, SIX, python={"closed": True, "dependencies": [hashed.replace("8abb", "0000")]}
        )
        event = await rig.install(wrong)
        assert (event.status, details(event)["step"]) == ("failed", "equip")
        assert details(event)["code"] == "E.PKG.INSTALL_FAILED"
        archive = package(tmp_path, SIX, python={"closed": True, "dependencies": [hashed]})
        assert (await rig.install(archive)).status == "installed"


BROKEN: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "raises when it is loaded": ({"code": "1 / 0"}, "E.PKG.INVALID", "probe", "ZeroDivisionError"),
    "lacks the handler": ({"code": "x = 1"}, "E.PKG.INVALID", "probe", "demo.say|not there"),
    "ends when it is loaded": (
        {"code": "import os; os._exit(7)"},
        "E.PKG.INSTALL_FAILED",
        "probe",
        "7",
    ),
    "needs what it does not name": (
        {"code": "import six" + HANDLERS},
        "E.PKG.INVALID",
        "probe",
        "six|Syntax",
    ),
    "wants another Python": (
        {"python": {"requires": "<3", "dependencies": ["no-such-thing-xyz==1.0"]}},
        "E.PKG.INCOMPATIBLE",
        "check",
        "<3",
    ),
    "depends on nothing that exists": (
        {"python": {"dependencies": ["six==99.99"]}},
        "E.PKG.INSTALL_FAILED",
        "equip",
        "six",
    ),
    "has a file with another digest": (
        {
            "files": {"m.bin": "x"},
            "resources": [{"path": "m.bin", "type": "file", "sha256": "0" * 64}],
        },
        "E.PKG.INVALID",
        "equip",
        "m.bin",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_package_that_does_not_work_is_not_installed(tmp_path: Path, what: str) -> None:
    fields, code, step, says = BROKEN[what]

    async with installing(tmp_path) as rig:
        assert (await rig.install(package(tmp_path, version="0.9"), "0.9")).status == "installed"
        event = await rig.install(package(tmp_path, **fields))
        assert event.status == "failed"
        told = details(event)
        assert (told["code"], told["step"]) == (code, step), told
        assert any(part in told["message"] for part in says.split("|")), told
        assert rig.offered() == [("demo", "0.9")]
        assert await rig.outcome("t1", "0.9", text="still") == {"text": "still"}
        assert left_in_staging(rig.folder) == []
        assert not (rig.folder / "packages/demo/1.0.0").exists()


async def test_a_package_that_hangs_when_it_is_loaded_is_given_up(tmp_path: Path) -> None:
    async with installing(tmp_path, start_timeout_s=0.5) as rig:
        event = await rig.install(package(tmp_path, "import time; time.sleep(1000)"))
        told = details(event)
        assert (told["code"], told["step"]) == ("E.PKG.INSTALL_FAILED", "probe")
        assert "longer than 0.5 s" in told["message"]


async def test_an_order_that_makes_no_sense_is_refused_before_anything_is_fetched(
    tmp_path: Path,
) -> None:
    async with installing(tmp_path) as rig:
        archive = package(tmp_path)
        for fields, code in (
            ({"name": "../x"}, "E.PKG.INVALID"),
            ({"name": "core"}, "E.PKG.INVALID"),
            ({"version": "../1"}, "E.PKG.INVALID"),
            ({"sha256": "nonsense"}, "E.PKG.INVALID"),
            ({"url": "file:///etc/passwd"}, "E.PKG.INVALID"),
            ({"url": "ftp://127.0.0.1/x"}, "E.PKG.INVALID"),
            ({"url": "http://user:secret@127.0.0.1/x"}, "E.PKG.INVALID"),
            ({"url": "http://[::1"}, "E.PKG.INVALID"),
            ({"signature": "nonsense"}, "E.PKG.INVALID"),
        ):
            event = await rig.install(archive, **fields)
            assert (event.status, details(event)["code"]) == ("failed", code), fields
            assert "secret" not in details(event)["message"]
        assert rig.server.asked == []
        assert sorted(path.name for path in (rig.folder / "packages").iterdir()) == [
            ".orders.json",
            ".staging",
        ]


async def test_a_url_that_leads_nowhere_fails_the_order_and_nothing_else(tmp_path: Path) -> None:
    async with installing(tmp_path) as rig:
        archive = package(tmp_path)
        for url in (
            "//",
            "?",
            "http://a..b/x",
            "http://\u2603\u2603" + "x" * 80 + "/x",
            "http://127.0.0.1:99999/x",
            "http://127.0.0.1:x/x",
            "http://127.0.0.1/\0",
            "http://127.0.0.1:1/x",
            "http://xn--/x",
        ):
            event = await rig.install(archive, url=url)
            assert event.status == "failed", url
            assert details(event)["code"] in ("E.PKG.INVALID", "E.PKG.INSTALL_FAILED"), url
        assert (await rig.install(archive)).status == "installed"


async def test_other_bytes_or_another_package_than_was_promised_are_refused(tmp_path: Path) -> None:
    async with installing(tmp_path) as rig:
        request = rig.publish(package(tmp_path))
        rig.server.files[request.url] = b"other bytes"
        rig.packages.install(request)
        told = details(await rig.end())
        assert (told["code"], told["step"]) == ("E.PKG.INVALID", "download")
        assert "sha256" in told["message"]
        told = details(await rig.install(package(tmp_path, version="3.0.0"), "1.0.0"))
        assert (told["code"], told["step"], told["pointer"]) == (
            "E.PKG.INVALID",
            "check",
            "/version",
        )
        told = details(await rig.install(b"no zip at all, but what was promised"))
        assert (told["code"], told["step"]) == ("E.PKG.INVALID", "check")


async def test_a_server_that_fails_redirects_or_stops_in_the_middle_is_a_failure_to_try_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 1000)

    async def redirect(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"this is not HTTP\r\n\r\n")

    async with installing(tmp_path) as rig:
        request = rig.publish(package(tmp_path))
        archive = rig.server.files.pop(request.url)
        signed = f"{request.url}?signature=secret"
        for answer in (None, cut, redirect, nonsense):
            if answer is not None:
                rig.server.files[signed] = answer
            seen = len(rig.events)
            rig.packages.install(business.PkgInstall("demo", "1.0.0", signed, request.sha256))
            told = details(await rig.end(seen))
            assert (told["code"], told["step"]) == ("E.PKG.INSTALL_FAILED", "download")
            assert "secret" not in told["message"]
        assert not any("/elsewhere" in head for head in rig.server.asked)
        assert left_in_staging(rig.folder) == []
        assert isinstance(archive, bytes)
        assert (await rig.install(archive)).status == "installed"
        assert "installed demo" in caplog.text
        assert "secret" not in caplog.text, "what lets one read a file is in no log"


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    from astraflow.packages import Limits

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with installing(tmp_path, limits=Limits(archive_bytes=100000)) as rig:
        request = rig.publish(package(tmp_path))
        rig.server.files[request.url] = endless
        rig.packages.install(request)
        told = details(await rig.end())
        assert (told["code"], told["step"]) == ("E.PKG.INVALID", "download")
        assert "Larger than 100000 bytes" in told["message"]


async def test_an_install_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with served() as server, worker(tmp_path / "w", server, install_timeout_s=0.3) as rig:
        request = rig.publish(package(tmp_path))
        rig.server.files[request.url] = silent
        rig.packages.install(request)
        told = details(await rig.end())
        assert (told["code"], told["step"]) == ("E.PKG.INSTALL_FAILED", "download")
        assert "0.3 s" in told["message"]


@pytest.mark.parametrize("policy", ["warn", "require"])
async def test_signatures_are_judged_by_the_worker_before_anything_is_fetched(
    tmp_path: Path, policy: str
) -> None:
    key, stranger = SigningKey.generate(), SigningKey.generate()
    built = build_archive(write_folder(tmp_path / "p"), tmp_path)
    good, strange = (sign(built, one, "we", "2026-01-01T00:00:00Z") for one in (key, stranger))
    trusted = TrustedKeys({key.public: "ours"})
    async with installing(tmp_path, policy=policy, trusted=trusted) as rig:
        archive = built.path.read_bytes()
        event = await rig.install(archive, signature=good.text().replace('"we"', '"us"'))
        assert details(event)["code"] == "E.PKG.INVALID"
        for signature in (None, strange.text()):
            if policy == "require":
                event = await rig.install(archive, signature=signature)
                assert details(event)["code"] == "E.PKG.PERMISSION"
        assert rig.server.asked == []
        event = await rig.install(archive, signature=good.text())
        assert details(event)["signed_by"] == "ours"
        record = json.loads((rig.folder / "packages/demo/1.0.0/.install.json").read_text())
        assert (record["signed_by"], record["sha256"]) == ("ours", built.sha256)


async def test_a_package_of_the_installation_needs_no_signature(tmp_path: Path) -> None:
    [folder] = [one for one in find_shipped() if one.name == "llm"]
    ours = build_shipped(folder, tmp_path / "ours")
    another = build_archive(folder, tmp_path / "another")

    async with installing(tmp_path, policy="require") as rig:
        event = await rig.install(another.path.read_bytes(), name="llm")
        assert (event.status, details(event)["code"]) == ("failed", "E.PKG.PERMISSION")
        event = await rig.install(ours.path.read_bytes(), name="llm")
        assert event.status == "installed", event.details
        assert rig.offered() == [("llm", "1.0.0")]
