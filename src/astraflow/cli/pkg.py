"""`astra pkg …`: what the author of a package does, from an empty folder to a published version."""

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

from astraflow.cli.failing import FAILED, note
from astraflow.cli.showing import AsJson, show_json, show_table
from astraflow.core import errors

if TYPE_CHECKING:
    from astraflow.packages.building import Built

__all__ = ["app"]

app = typer.Typer(
    help="Write packages: new, test, build, dev, sign, publish.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="the folder with manifest.json")]
Out = Annotated[Path | None, typer.Option(help="where the archive goes; dist in the folder")]
Archive = Annotated[Path, typer.Argument(metavar="ARCHIVE", help="a .cwx file")]
KeyFile = Annotated[Path | None, typer.Option("--key", help="a key of `astra pkg keygen`: sign it")]
By = Annotated[str, typer.Option(help="what the signer calls itself")]
Server = Annotated[
    str | None, typer.Option(help="the server; ASTRA_SERVER, or what `astra up` left")
]
Token = Annotated[str | None, typer.Option(help="better in ASTRA_TOKEN: others can read arguments")]

HERE = Path(".")
SIGNATURE_ENDING = ".sig"


@contextmanager
def files() -> Iterator[None]:
    """What the disk refuses is told as what it is: a file of the author's, not a bug of ours."""
    try:
        yield
    except OSError as problem:
        where = problem.filename if problem.filename is not None else "a file"
        message = f"cannot be used: {problem.strerror or problem}: {where}"
        hint = "check that the file is there and may be read and written"
        raise errors.Refused(errors.INPUT_UNREADABLE, message, detail={"hint": hint}) from problem


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="the name of the package")],
    directory: Annotated[Path, typer.Option("--dir", help="where its folder is made")] = HERE,
    as_json: AsJson = False,
) -> None:
    """Make a package with a node, its test and a workflow."""
    from astraflow.cli.pkg_template import write_package

    with files():
        folder = write_package(name, directory)
    if as_json:
        show_json({"name": name, "folder": str(folder)})
        return
    typer.echo(str(folder))
    note(f"\nnext:\n  cd {folder}\n  astra pkg test\n  astra pkg publish")


@app.command()
def build(folder: Folder = HERE, out: Out = None, as_json: AsJson = False) -> None:
    """Build the archive of a package.

    What its `@node` functions say about themselves is put into its manifest.
    """
    from astraflow.cli.pkg_building import build_package

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

    They run with its dependencies, in an environment that is kept. What follows FOLDER goes to pytest.
    """
    from astraflow.cli.pkg_building import read_manifest
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
        note("\nhint: write tests into tests/test_*.py")
    if ended.returncode != 0:
        raise typer.Exit(FAILED)


NO_TESTS = 5
"""The exit code of pytest that has found none."""


@app.command()
def keygen(
    out: Annotated[
        Path | None, typer.Option(help="where the private key goes; else your configuration folder")
    ] = None,
    name: Annotated[str, typer.Option(help="what the key is called where it is trusted")] = "me",
    as_json: AsJson = False,
) -> None:
    """Make a key to sign packages with.

    It is never written over another.
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
    note(f"\nthe private key is in {out}: keep it to yourself")
    note("hint: servers and workers believe it with the line above in ASTRA_SCHEDULER_TRUSTED_KEYS and "
         "ASTRA_WORKER_TRUSTED_KEYS")  # fmt: skip


@app.command()
def sign(
    archive: Archive,
    key: Annotated[Path | None, typer.Option(help="the private key; that of keygen")] = None,
    by: By = "me",
    as_json: AsJson = False,
) -> None:
    """Sign an archive: the signature is a file beside it."""
    with files():
        text = signature_of(archive, own_key() if key is None else key, by)
        place = archive.with_name(archive.name + SIGNATURE_ENDING)
        place.write_text(text + "\n", "utf-8")
    if as_json:
        show_json({"path": str(place), "signedBy": by})
        return
    typer.echo(str(place))
    note(f"\nhint: `astra pkg publish {archive}` sends it along")


def own_key() -> Path:
    """Where the key of this user is. Not in the folder of a package: it would be packed into the archive."""
    root = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "astraflow" / "signing.key"


def signature_of(archive: Path, key: Path, by: str) -> str:
    """Raises: Refused, when the archive is no package or the key no key."""
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
        Path | None, typer.Option(help="the signature, if it is not the file beside the archive")
    ] = None,
    trusted: Annotated[
        list[str] | None, typer.Option(help="name=base64, or a file with such lines; any number")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an archive and its signature.

    With --trusted, also who has signed it.
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
        note("\nhint: it is not signed; `astra pkg sign` does it")
    elif trusted is None:
        note("\nhint: the signature fits the archive; whose key it is, --trusted tells")


@app.command()
def publish(
    source: Annotated[
        Path, typer.Argument(metavar="ARCHIVE|FOLDER", help="a folder is built first")
    ] = HERE,
    key: KeyFile = None,
    by: By = "me",
    as_json: AsJson = False,
) -> None:
    """Publish a package, so that workflows can use its nodes.

    Workers install it when they need it; `astra packages install` is for those who do not want to wait then.
    """
    from astraflow.cli.pkg_building import build_package
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
    note(f"published as {found.sha256[:16]}…, {found.nodes} node{'s' if found.nodes != 1 else ''}"
         + (f", signed by {found.signed_by}" if found.signed_by else ""))  # fmt: skip
    if not found.active:
        note(
            f"\nhint: another version is active; `astra packages activate {found.name} {found.version}` changes that"
        )


def _signature_for(archive: Path, key: Path | None, by: str, built: Built | None) -> str | None:
    if key is not None:
        return signature_of(archive, key, by)
    beside = archive.with_name(archive.name + SIGNATURE_ENDING)
    if not beside.exists():
        return None
    text = beside.read_text("utf-8", "replace").strip()
    if built is not None and built.sha256 not in text:
        note(f"note: what was built is not what was signed, so the signature is not sent: {beside}")
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
    """Put a package on all workers, again at every save.

    ^C makes the version active again that was so before.
    """
    import asyncio

    from astraflow.cli.pkg_building import read_manifest
    from astraflow.cli.pkg_dev import Developing

    with files():
        read_manifest(folder)
        sign_with = None if key is None else (lambda archive: signature_of(archive, key, by))
        asyncio.run(Developing(folder, sign_with, as_json=as_json).run(server, token))
