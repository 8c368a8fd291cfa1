"""The guide to workers with certificates is run here as it stands, command by command; only the port differs."""

from __future__ import annotations

import re
import shlex
import ssl
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.processes.command_line import astra, start
from tests.processes.process import ROOT, free_port
from tests.processes.waiting import until

PAGE = (ROOT / "docs" / "guides" / "mtls.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().splitlines()
]
[SETTINGS] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


class Reader:
    """Somebody with three terminals."""

    def __init__(self, folder: Path, terminals: ExitStack) -> None:
        self._folder = folder
        self._terminals = terminals
        self._port = str(free_port())
        self._environ: dict[str, str] = {}
        settings = SETTINGS.replace(":8080", f":{self._port}")
        (folder / "astraflow.toml").write_text(settings)
        self.printed: dict[str, str] = {}

    def type(self, command: str) -> None:
        words = shlex.split(command)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._environ[name] = value.replace(":8080", f":{self._port}")
        elif words[0] == "chmod":
            assert words[1:] == ["600", "astraflow.toml"]
            (self._folder / words[2]).chmod(0o600)
        elif words[1] == "server":
            self._stay("server", "--port", self._port)
            until(self._is_ready, "a scheduler that is ready")
        elif words[1] == "worker":
            self._stay("worker")
            until(lambda: self._workers() == ["w-1"], "the worker online")
        else:
            done = astra(*words[1:], cwd=self._folder, **self._environ)
            assert done.code == 0, (command, done.err)
            self.printed[command] = done.out

    def _stay(self, *arguments: str) -> None:
        self._terminals.callback(start(*arguments, cwd=self._folder).close)

    def _http(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self._port}",
            verify=ssl.create_default_context(cafile=self._folder / "ca" / "ca.pem"),
            headers={"Authorization": "Bearer a-token-of-this-guide"},
        )

    def _is_ready(self) -> bool:
        try:
            with self._http() as http:
                return http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def _workers(self) -> list[str]:
        with self._http() as http:
            items = http.get("/api/v1/workers").json()["items"]
        return [one["workerId"] for one in items if one["status"] == "online"]


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 10
    with ExitStack() as terminals:
        reader = Reader(tmp_path, terminals)
        for command in COMMANDS:
            reader.type(command)
    listed = reader.printed["astra workers list"]
    assert "w-1" in listed and "online" in listed
