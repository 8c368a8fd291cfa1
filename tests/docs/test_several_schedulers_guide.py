"""The guide to several schedulers is run here as it stands, with processes in place of machines."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.command_line import astra, start
from tests.processes.postgres import postgres_server
from tests.processes.process import ROOT, Process, free_port
from tests.processes.waiting import until

PAGE = (ROOT / "docs" / "guides" / "several-schedulers.md").read_text("utf-8")
[SETTINGS] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
STEPS = [
    (machine, command)
    for machine, block in re.findall(r"```sh (\w+)\n(.*?)```", PAGE, re.DOTALL)
    for command in block.strip().splitlines()
]
MACHINES = ("one", "two", "three")
TOKEN = "a-token-of-this-guide"


class Site:
    """The machines of the guide, each a folder with the settings of the page."""

    def __init__(self, folder: Path, database_url: str, processes: ExitStack) -> None:
        self.ports = {name: free_port() for name in MACHINES}
        self.printed: list[tuple[str, str, str]] = []
        self.running: dict[str, Process] = {}
        self._processes = processes
        self._folder = folder
        (folder / "blobs").mkdir()
        for name in (*MACHINES, "worker"):
            (folder / name).mkdir()
            settings = SETTINGS.replace("postgresql://astraflow@db.example/astraflow", database_url)
            settings = settings.replace("/srv/astraflow/blobs", str(folder / "blobs"))
            settings = settings.replace("http://one.example:8080", self.url(name))
            settings = settings.replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
            text = settings + f"port = {self.ports.get(name, 0)}\n"
            (folder / name / "astraflow.toml").write_text(text)
            (folder / name / "astraflow.toml").chmod(0o600)
            definition = json.dumps(workflow(node("core.noop")))
            (folder / name / "hello.json").write_text(definition)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports.get(name, 1)}"

    def type(self, machine: str, command: str) -> None:
        if command.startswith("chmod"):
            return
        for name, port in self.ports.items():
            command = command.replace(f"{name}.example:8080", f"127.0.0.1:{port}")
        _, *words = command.split()
        folder = self._folder / machine
        if words[0] in ("server", "worker"):
            environ = {"ASTRA_WORKER_AUTH_TOKEN": TOKEN} if words[0] == "worker" else {}
            self.running[machine] = process = start(*words, cwd=folder, **environ)
            self._processes.enter_context(closing(process))
            until(lambda: self._is_there(machine), f"{machine}: {command}")
            return
        done = astra(*words, cwd=folder, ASTRA_SERVER=self.url(machine), ASTRA_TOKEN=TOKEN)
        assert done.code == 0, (machine, command, done)
        self.printed.append((machine, command, done.out))

    def _is_there(self, machine: str) -> bool:
        if machine == "worker":
            bearer = {"authorization": f"Bearer {TOKEN}"}
            found = httpx.get(f"{self.url('two')}/api/v1/workers", headers=bearer).json()
            return any(one["status"] == "online" for one in found["items"])
        try:
            return httpx.get(f"{self.url(machine)}/readyz").status_code == 200
        except httpx.TransportError:
            return False


@pytest.mark.timeout(300)
def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    first_of_the_end = STEPS.index(("three", "astra run hello.json")) + 1
    with postgres_server() as url, ExitStack() as processes:
        site = Site(tmp_path, url, processes)
        for machine, command in STEPS[:first_of_the_end]:
            site.type(machine, command)
        tables = [said for _, command, said in site.printed if command == "astra db nodes"]
        assert all(site.url(name) in tables[0] for name in MACHINES)
        assert "default" in tables[0] and "acme" not in tables[0]
        assert "acme" in tables[1] and "globex" in tables[1]
        assert site.running["three"].stop() == 0  # "Stop a node with SIGTERM"
        for machine, command in STEPS[first_of_the_end:]:
            site.type(machine, command)
        last = [said for _, command, said in site.printed if command == "astra db nodes"][-1]
        assert site.url("three") not in last
        assert all(name in last for name in ("default", "acme", "globex"))
