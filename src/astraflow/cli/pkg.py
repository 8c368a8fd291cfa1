"""`astra pkg …`: commands for authors of packages, from a template to a published version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import FAILED, note
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_json, show_table

if TYPE_CHECKING:
    from astraflow.packages.building import Built

app = command_group("Create, test, build, sign and publish packages.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Directory with manifest.json")]
Out = Annotated[Path | None, typer.Option(help="Output directory. Default: dist in FOLDER")]
Archive = Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A package archive (.cwx)")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", help="Sign with this key of `astra pkg keygen`")
]
By = Annotated[str, typer.Option(help="Name of the signer")]
Server = Annotated[
    str | None, typer.Option(help="Server URL. Default: ASTRA_SERVER, or the server of `astra up`")
]
Token = Annotated[
    str | None,
    typer.Option(help="Access token. Prefer ASTRA_TOKEN: other users can read arguments"),
]

HERE = Path(".")
SIGNATURE_ENDING = ".sig"


@contextmanager
def files() -> Iterator[None]:
    """Report an OSError as an unreadable input, not as an internal error."""
    try:
        yield
    except OSError as problem:
        where = problem.filename if problem.filename is not None else "a file"
        message = f"Cannot use {where}: {problem.strerror or problem}"
        hint = "check that the file exists and can be read and written"
        raise unreadable(message, hint) from problem


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Package name")],
    directory: Annotated[Path, typer.Option("--dir", help="Parent directory")] = HERE,
    as_json: AsJson = False,
) -> None:
    """Create a package with a node, a test and a workflow."""
    from astraflow.cli.pkg_template import write_package

    with files():
        folder = write_package(name, directory)
    said = f"\nnext:\n  cd {folder}\n  astra pkg test\n  astra pkg publish"
    answer({"name": name, "folder": str(folder)}, said, as_json, result=str(folder))


@app.command()
def build(folder: Folder = HERE, out: Out = None, as_json: AsJson = False) -> None:
    """Build the archive of a package.

    The descriptions of its `@node` functions are written into the manifest.
    """
    from astraflow.cli.pkg_build import build_package

    with files():
        built = build_package(folder, out)
    if as_json:
        show_json(
            {
                "path": str(built.path),
                "name": built.manifest.name,
                "version": built.manifest.version,
                "sha256": built.sha256,
                "sizeBytes": built.size_bytes,
                "nodes": [node.type for node in built.manifest.body.nodes],
            }
        )
        return
    typer.echo(str(built.path))
    types = ", ".join(node.type for node in built.manifest.body.nodes)
    note(f"{built.manifest.name} {built.manifest.version}: {types or 'no nodes'}")
    note(f"\nhint: publish it with `astra pkg publish {built.path}`")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def test(
    ctx: typer.Context,
    folder: Folder = HERE,
    as_json: AsJson = False,
) -> None:
    """Run the tests of a package, without a server.

    They run in a cached environment with the dependencies of the package. Arguments after FOLDER go to pytest.
    """
    from astraflow.cli.pkg_build import read_manifest
    from astraflow.cli.pkg_environment import environment_variables, python_for

    with files():
        python = python_for(read_manifest(folder), with_pytest=True)
    command = [str(python), "-P", "-m", "pytest", "-p", "astraflow_sdk.testing"]
    command += ["-p", "no:cacheprovider", "--rootdir", ".", *ctx.args]
    ended = subprocess.run(  # noqa: S603 - the package's Python, and a list of arguments
        command,
        cwd=folder,
        env=environment_variables(),
        stdout=sys.stderr if as_json else None,
        check=False,
    )
    if as_json:
        show_json({"passed": ended.returncode == 0, "exitCode": ended.returncode})
    if ended.returncode == NO_TESTS:
        note("\nhint: add tests in tests/test_*.py")
    if ended.returncode != 0:
        raise typer.Exit(FAILED)


NO_TESTS = 5
"""The exit code of pytest when it found no tests."""


@app.command()
def keygen(
    out: Annotated[
        Path | None,
        typer.Option(help="File for the private key. Default: in your configuration directory"),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the key in lists of trusted keys")] = "me",
    as_json: AsJson = False,
) -> None:
    """Create a key pair for signing packages.

    An existing key is never overwritten.
    """
    from astraflow.packages.signing import SigningKey

    key = SigningKey.generate()
    out = own_key() if out is None else out
    with files():
        out.parent.mkdir(parents=True, exist_ok=True)
        key.save(out)
    trusted = f"{name}={key.public}"
    if as_json:
        show_json({"path": str(out), "public": key.public, "trustedKey": trusted})
        return
    typer.echo(trusted)
    note(f"\nThe private key is in {out}; keep it secret")
    note("hint: add the line above to ASTRA_SCHEDULER_TRUSTED_KEYS and ASTRA_WORKER_TRUSTED_KEYS "
         "to trust this key")  # fmt: skip


@app.command()
def sign(
    archive: Archive,
    key: Annotated[
        Path | None, typer.Option(help="Private key. Default: the key of `astra pkg keygen`")
    ] = None,
    by: By = "me",
    as_json: AsJson = False,
) -> None:
    """Sign an archive. The signature is written to ARCHIVE.sig."""
    with files():
        text = signature_of(archive, own_key() if key is None else key, by)
        place = archive.with_name(archive.name + SIGNATURE_ENDING)
        place.write_text(text + "\n", "utf-8")
    said = f"\nhint: `astra pkg publish {archive}` uploads the signature too"
    answer({"path": str(place), "signedBy": by}, said, as_json, result=str(place))


def own_key() -> Path:
    """The key file of this user. Not in the directory of a package, where it would become part of the archive."""
    root = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "astraflow" / "signing.key"


def signature_of(archive: Path, key: Path, by: str) -> str:
    """Sign an archive. Raises: Refused, when the archive or the key is invalid."""
    from astraflow.clock import SystemClock
    from astraflow.core.timestamps import iso
    from astraflow.packages.signing import SigningKey
    from astraflow.packages.signing import sign as make_signature

    at = iso(SystemClock().wall_ms())
    return make_signature(archive, SigningKey.load(key), by, at).text()


@app.command()
def verify(
    archive: Archive,
    signature: Annotated[
        Path | None, typer.Option(help="Signature file. Default: ARCHIVE.sig")
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(help="Trusted key as NAME=BASE64, or a file with such lines. Repeatable"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify an archive and its signature.

    With --trusted, the signer must be trusted.
    """
    from astraflow.packages.archive import check_archive, check_contents
    from astraflow.packages.signing import PackageSignature, TrustedKeys, judge
    from astraflow.packages.signing import verify as check_signature

    with files():
        checked = check_archive(archive)
        check_contents(checked)
        beside = archive.with_name(archive.name + SIGNATURE_ENDING)
        place = signature or (beside if beside.exists() else None)
        text = None if place is None else place.read_text("utf-8", "replace")
    name, version = checked.manifest.name, checked.manifest.version
    signed_by = None
    if text is not None:
        parsed = PackageSignature.parse(text)
        check_signature(parsed, checked.sha256, name, version)
        signed_by = parsed.signed_by
    if trusted is not None:
        keys = TrustedKeys.parse(trusted)
        found = judge("require", text, keys, sha256=checked.sha256, name=name, version=version)
        signed_by = found.signed_by
    shown = {"name": name, "version": version, "sha256": checked.sha256, "signedBy": signed_by}
    if as_json:
        show_json({**shown, "isTrusted": trusted is not None})
        return
    show_table(("what", "value"), list(shown.items()))
    if text is None:
        note("\nhint: the archive is not signed; sign it with `astra pkg sign`")
    elif trusted is None:
        note("\nhint: the signature is valid; use --trusted to check the signer")


@app.command()
def publish(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="ARCHIVE|FOLDER", help="An archive, or a directory, which is built first"
        ),
    ] = HERE,
    key: KeyFile = None,
    by: By = "me",
    as_json: AsJson = False,
) -> None:
    """Publish a package, so that workflows can use its nodes.

    Workers install it when they need it; use `astra packages install` to install it in advance.
    """
    from astraflow.cli.pkg_build import build_package
    from astraflow.client import requests
    from astraflow.client.blocking import Client
    from astraflow.core.contract.packages import PackageVersion

    with files():
        built = build_package(source) if source.is_dir() else None
        archive = source if built is None else built.path
        text = _signature_for(archive, key, by, built)
        with Client() as client:
            raw = client.perform(requests.publish_package(archive, text).raw())
    if as_json:
        show_json(raw)
        return
    found = msgspec.json.decode(raw, type=PackageVersion)
    typer.echo(f"{found.name} {found.version}")
    note(f"Published, sha256 {found.sha256[:16]}…, {found.nodes} node{'s' if found.nodes != 1 else ''}"
         + (f", signed by {found.signed_by}" if found.signed_by else ""))  # fmt: skip
    if not found.active:
        note(
            f"\nhint: another version is active; to change it: astra packages activate {found.name} {found.version}"
        )


def _signature_for(archive: Path, key: Path | None, by: str, built: Built | None) -> str | None:
    if key is not None:
        return signature_of(archive, key, by)
    beside = archive.with_name(archive.name + SIGNATURE_ENDING)
    if not beside.exists():
        return None
    text = beside.read_text("utf-8", "replace").strip()
    if built is not None and built.sha256 not in text:
        note(
            f"note: the archive has changed since it was signed; the signature is not uploaded: {beside}"
        )
        return None
    return text


@app.command()
def dev(
    folder: Folder = HERE,
    server: Server = None,
    token: Token = None,
    key: KeyFile = None,
    by: By = "me",
    as_json: AsJson = False,
) -> None:
    """Install a package on all workers after every save.

    ^C restores the previously active version.
    """
    import asyncio

    from astraflow.cli.pkg_build import read_manifest
    from astraflow.cli.pkg_dev import DevSession

    with files():
        read_manifest(folder)
        sign_with = None if key is None else (lambda archive: signature_of(archive, key, by))
        asyncio.run(DevSession(folder, sign_with, as_json=as_json).run(server, token))
