"""A real issuer: a package that somebody else wrote, as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.processes.process import Process, free_port
from tests.processes.waiting import until

__all__ = ["Issuer", "issuing", "settings"]

ROLES = '{"ops": "operator", "lookers": "viewer", "elsewhere": "nowhere:viewer"}'


class Issuer:
    """The issuer in its process."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = (sys.executable, "-m", "oidc_provider_mock")
        arguments = ["--port", str(self.port), "--require-nonce"]
        self.process = Process("issuer", arguments, folder, {}, command)

    def start(self) -> None:
        self.process.start()
        until(self._is_there, "the issuer")

    def _is_there(self) -> bool:
        try:
            return httpx.get(f"{self.url}/jwks").status_code == 200
        except httpx.TransportError:
            return False

    def person(self, sub: str, *groups: str) -> str:
        claims = {"groups": list(groups), "email": f"{sub}@example.com"}
        answer = httpx.put(f"{self.url}/users/{sub}", json=claims)
        assert answer.status_code == 204, answer.text
        return sub


@contextmanager
def issuing(folder: Path) -> Iterator[Issuer]:
    issuer = Issuer(folder)
    try:
        issuer.start()
        yield issuer
    finally:
        issuer.process.close()


def settings(issuer: Issuer) -> dict[str, str]:
    return {
        "ASTRA_SCHEDULER_OIDC_ISSUER_URL": issuer.url,
        "ASTRA_SCHEDULER_OIDC_CLIENT_ID": "astra",
        "ASTRA_SCHEDULER_OIDC_CLIENT_SECRET": "of the client: 100% & more",
        "ASTRA_SCHEDULER_OIDC_ROLES": ROLES,
    }
