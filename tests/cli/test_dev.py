"""`astra pkg dev`: a save is on the worker, a bad one changes nothing, and the end leaves things as they were."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes.command_line import Up, astra, start
from tests.processes.process import Process
from tests.processes.waiting import until


class Dev:
    """A session in a terminal of its own."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def next(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.process.line(lambda line: line.startswith("{")))
        return said


@contextmanager
def dev(server: Up, package: Path, cache: Path) -> Iterator[Dev]:
    kept = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    caches = {"XDG_CACHE_HOME": str(cache), "UV_CACHE_DIR": kept}
    token = {"ASTRA_SERVER": server.url, "ASTRA_TOKEN": server.token}
    process = start("pkg", "dev", str(package), "--json", cwd=server.folder, **caches, **token)
    try:
        yield Dev(process)
    finally:
        process.end(signal.SIGINT)


def new(folder: Path, name: str) -> tuple[Path, Path]:
    assert astra("pkg", "new", name, cwd=folder).code == 0
    return folder / name, folder / name / f"{name}_nodes" / "__init__.py"


def greeting(server: Up, package: Path) -> str:
    done = server.astra("run", str(package / "workflow.json"), "--json")
    assert done.code == 0, done
    return str(done.lines[-1]["nodes"][0]["result"]["text"])


def versions(server: Up, name: str) -> dict[str, str]:
    rows = server.astra("packages", "show", name).out.splitlines()
    return {row.split("\t")[0]: row.split("\t")[1] for row in rows}


def installed(server: Up, name: str) -> set[str]:
    (worker,) = server.astra("workers", "list", "--json").json["items"]
    return {one["version"] for one in worker["packages"] if one["name"] == name}


def test_a_save_is_live_a_bad_one_changes_nothing_and_the_end_restores(
    server: Up, tmp_path: Path
) -> None:
    package, code = new(tmp_path, "lively")
    assert server.astra("pkg", "publish", str(package)).code == 0
    manifest = (package / "manifest.json").read_text()
    (package / "manifest.json").write_text(manifest.replace("0.1.0", "0.2.0"))
    assert server.astra("pkg", "publish", str(package)).code == 0
    # Not the newest one: that is what would be active by itself.
    assert server.astra("packages", "activate", "lively", "0.1.0").code == 0
    good = code.read_text()
    with dev(server, package, tmp_path / "cache") as session:
        first = session.next()
        assert (first["event"], first["version"]) == ("live", "0.2.0.dev1")
        code.write_text(good.replace("Hello", "Servus"))
        assert session.next()["version"] == "0.2.0.dev2"
        assert greeting(server, package) == "Servus, World!"

        code.write_text("def broken(:\n    from astraflow_sdk import node\n@node()")
        failed = session.next()
        assert (failed["event"], failed["live"]) == ("failed", "0.2.0.dev2")
        assert "SyntaxError" in failed["message"]
        assert greeting(server, package) == "Servus, World!"

        code.write_text(good.replace("Hello", "Moin"))
        assert session.next()["event"] == "live"
        assert greeting(server, package) == "Moin, World!"
        # Of the versions of the session, workers keep the last one only.
        until(lambda: installed(server, "lively") == {"0.2.0.dev3"}, "old ones removed")
        session.process.send(signal.SIGINT)
        assert session.next() == {"event": "ended", "name": "lively", "version": "0.1.0"}
        assert session.process.wait() == 0
    assert versions(server, "lively") == {
        "0.2.0": "-",
        "0.1.0": "active",
        **{f"0.2.0.dev{number}": "yanked" for number in (1, 2, 3)},
    }
    assert greeting(server, package) == "Hello, World!"
    until(lambda: installed(server, "lively") == {"0.1.0"}, "the last one removed")


def test_a_version_that_no_worker_can_load_is_not_made_the_active_one(
    server: Up, tmp_path: Path
) -> None:
    package, code = new(tmp_path, "fragile")
    good = code.read_text()
    with dev(server, package, tmp_path / "cache") as session:
        assert session.next()["version"] == "0.1.0.dev1"
        # Sound on this machine and not in the environment of a worker, which has a package folder of its own.
        trap = "import pathlib\nassert 'workers' not in pathlib.Path(__file__).parts, 'not here'\n"
        code.write_text(good.replace("from astraflow_sdk", f"{trap}from astraflow_sdk"))
        failed = session.next()
        assert (failed["event"], failed["code"]) == ("failed", "E.PKG.INSTALL_FAILED")
        assert "not here" in failed["message"]
        assert greeting(server, package) == "Hello, World!"
        session.process.send(signal.SIGTERM)
        # Nothing of it was published before, so the last good one is all there is.
        assert session.next()["version"] == "0.1.0.dev1"
        assert session.process.wait() == 0
    assert versions(server, "fragile") == {"0.1.0.dev1": "active", "0.1.0.dev2": "yanked"}


def test_without_a_server_or_a_package_it_says_so(tmp_path: Path) -> None:
    package, _ = new(tmp_path, "lonely")
    nobody = astra("pkg", "dev", str(package), "--server", "http://127.0.0.1:9", cwd=tmp_path)
    assert nobody.code == 3, nobody
    nothing = astra("pkg", "dev", cwd=tmp_path)
    assert nothing.code == 1 and "manifest.json" in nothing.err
