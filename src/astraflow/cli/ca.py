"""`astra ca …`: certificates for people without an authority of their own."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.clock import SystemClock

app = command_group("Make certificates for the scheduler and for workers.")

Folder = Annotated[
    Path, typer.Option("--dir", help="Folder of the authority. Keep its ca.key to yourself")
]
Days = Annotated[int, typer.Option(min=1, max=3_650, help="Days that the certificate is good")]
DEFAULT = Path("ca")
# A name in a certificate has at most 64 characters (RFC 5280).
_is_worker_id = re.compile(r"[A-Za-z0-9._:-]{1,64}").fullmatch
_is_tenant = re.compile(r"[a-z0-9][a-z0-9-]{0,62}").fullmatch
_is_host_name = re.compile(
    r"(?=.{1,253}$)(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*"
).fullmatch


@app.command()
def init(folder: Folder = DEFAULT, days: Days = 3_650, as_json: AsJson = False) -> None:
    """Make an authority."""
    from astraflow.tls.authority import Authority

    authority = Authority(folder, SystemClock())
    authority.create(days)
    made = {"certificate": str(authority.certificate_file), "key": str(authority.key_file)}
    answer(made, f"authority made in {folder}", as_json)


@app.command()
def server(
    host: Annotated[list[str], typer.Argument(help="Names and addresses of the scheduler")],
    folder: Folder = DEFAULT,
    days: Days = 90,
    as_json: AsJson = False,
) -> None:
    """Make the certificate of the scheduler. Run it again to renew it: a running scheduler reads it anew."""
    from astraflow.tls.authority import Authority

    for one in host:
        if not _is_host(one):
            raise unreadable(
                f"Not a name or an address: {one}", "use names as astra.example.com, or addresses"
            )
    certificate, key = Authority(folder, SystemClock()).issue_server(host, days)
    _told(certificate, key, as_json)


@app.command()
def worker(
    worker_id: Annotated[str, typer.Argument(help="Id of the worker")],
    tenant: Annotated[str, typer.Option(help="Tenant of the worker")] = "default",
    folder: Folder = DEFAULT,
    days: Days = 90,
    as_json: AsJson = False,
) -> None:
    """Make the certificate of a worker. Run it again to renew it: the worker reads it at its next connection."""
    from astraflow.tls.authority import Authority

    if not _is_worker_id(worker_id) or worker_id in ("ca", "server"):
        raise unreadable(
            f"Not an id of a worker with a certificate: {worker_id}",
            "use 1 to 64 of A-Z a-z 0-9 . _ : -",
        )
    if not _is_tenant(tenant):
        raise unreadable(f"Not a name of a tenant: {tenant}", "use 1 to 63 of a-z 0-9 -")
    certificate, key = Authority(folder, SystemClock()).issue_worker(worker_id, tenant, days)
    _told(certificate, key, as_json)


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _is_host_name(text) is not None
    return True


def _told(certificate: Path, key: Path, as_json: bool) -> None:
    made = {"certificate": str(certificate), "key": str(key)}
    answer(made, f"wrote {certificate} and {key}", as_json)
