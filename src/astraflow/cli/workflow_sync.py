"""`astra workflows sync FOLDER`: a folder of definitions, as a repository keeps them, and the workflows of a server.

What both had when they last agreed is in `.astra-sync.json` in the folder, by server: with it a change is told from a
conflict, and a deletion from something new. Formatting is no change.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from astraflow.cli.inputs import read_definition, unreadable
from astraflow.cli.output import AsJson, answer, show_json, show_table
from astraflow.cli.versions import Note
from astraflow.cli.workflow_files import write_file
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.workflows import Workflow
from astraflow.core.workflow.canonical import canonical, file_name
from astraflow.core.workflow.sync_plan import Side, SyncStep, plan_sync

STATE: Final = ".astra-sync.json"
SIDES: Final[tuple[Side, ...]] = ("local", "remote")
_WORDS: Final = {
    "push": "save on the server",
    "pull": "write the file",
    "delete_remote": "delete on the server",
    "delete_local": "delete the file",
    "leave": "leave (--delete deletes the other one)",
    "conflict": "CONFLICT",
}


class _LocalFile(msgspec.Struct, frozen=True):
    path: Path
    raw: bytes
    digest: str


class _State(msgspec.Struct):
    """What a folder and each server had when they last agreed: digests by workflow."""

    servers: dict[str, dict[str, str]] = {}


def sync(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of definitions")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete on one side what was deleted on the other")
    ] = False,
    force: Annotated[
        str | None, typer.Option(help="Which side wins a conflict: local or remote")
    ] = None,
    remark: Note = "",
    as_json: AsJson = False,
) -> None:
    """Bring a folder and the workflows of the server together. With a conflict nothing is done; the exit code is 1."""
    prefer = _side(force)
    local = _read_folder(folder)
    state = _read_state(folder)
    with Client() as client:
        base = state.servers.setdefault(client.endpoint.url.rstrip("/"), {})
        remote = {one.id: client.workflows.get(one.id) for one in client.workflows.iterate()}
        there = {known: digest_of(one.definition) for known, one in remote.items()}
        here = {known: one.digest for known, one in local.items()}
        steps = plan_sync(here, there, base, is_deleting=delete, prefer=prefer)
        conflicts = [step for step in steps if step.action == "conflict"]
        if not dry_run and not conflicts:
            _note_agreed(base, here, there)
            work = _Work(client, folder, local, remote, base, remark)
            try:
                for step in steps:
                    work.take(step)
            finally:
                _write_state(folder, state)
    _show(steps, local, dry_run=dry_run, as_json=as_json)
    if conflicts:
        raise typer.Exit(1)


def _note_agreed(base: dict[str, str], here: dict[str, str], there: dict[str, str]) -> None:
    """What is equal on both sides is agreed; what neither has is forgotten."""
    for known in [known for known in base if known not in here and known not in there]:
        del base[known]
    base.update({known: one for known, one in here.items() if there.get(known) == one})


class _Work:
    """Takes the steps of a plan. What was changed since the plan was made is a Conflict."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        local: dict[str, _LocalFile],
        remote: dict[str, Workflow],
        base: dict[str, str],
        remark: str,
    ) -> None:
        self._client = client
        self._folder = folder
        self._local = local
        self._remote = remote
        self._base = base
        self._note = remark

    def take(self, step: SyncStep) -> None:
        known, workflows = step.workflow_id, self._client.workflows
        stored = self._remote.get(known)
        if step.action == "push":
            file = self._local[known]
            if stored is None:
                workflows.create(file.raw, note=self._note)
            else:
                workflows.save(known, file.raw, if_version=stored.version, note=self._note)
            self._base[known] = file.digest
        elif step.action == "pull" and stored is not None:
            self._check_unchanged(known)
            write_file(self._path_of(known, stored.definition), canonical(stored.definition))
            self._base[known] = digest_of(stored.definition)
        elif step.action == "delete_remote" and stored is not None:
            workflows.delete(known, if_version=stored.version)
            self._base.pop(known, None)
        elif step.action == "delete_local":
            self._check_unchanged(known)
            self._local[known].path.unlink()
            self._base.pop(known, None)

    def _path_of(self, known: str, document: dict[str, Any]) -> Path:
        """Where the workflow is kept; a new one gets a name that no other has."""
        if known in self._local:
            return self._local[known].path
        path = self._folder / file_name(document)
        return self._folder / file_name(document, is_long=True) if path.exists() else path

    def _check_unchanged(self, known: str) -> None:
        file = self._local.get(known)
        if file is not None and file.path.read_bytes() != file.raw:
            raise errors.Conflict(
                errors.WORKFLOW_CONFLICT, f"the file was changed meanwhile: {file.path}"
            )


def digest_of(document: dict[str, Any]) -> str:
    """What tells one definition from another, whatever its formatting."""
    return sha256(canonical(document)).hexdigest()


def _side(force: str | None) -> Side | None:
    if force is None:
        return None
    for side in SIDES:
        if force == side:
            return side
    raise unreadable(f"--force is local or remote: {force!r}")


def _read_folder(folder: Path) -> dict[str, _LocalFile]:
    if not folder.is_dir():
        raise unreadable(f"There is no such folder: {folder}")
    found: dict[str, _LocalFile] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith("."):
            continue
        given = read_definition(str(path))
        known = given.definition.get("id")
        if not isinstance(known, str) or "nodes" not in given.definition:
            raise unreadable(
                f"{path} is no workflow: it has no id or no nodes", "keep other files elsewhere"
            )
        if known in found:
            raise unreadable(f"Two files have one workflow id: {found[known].path} and {path}")
        found[known] = _LocalFile(path, given.raw, digest_of(dict(given.definition)))
    return found


def _read_state(folder: Path) -> _State:
    path = folder / STATE
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return _State({})
    except (OSError, msgspec.DecodeError) as error:
        raise unreadable(
            f"Cannot read {path}: {error}", "restore it, or delete it to begin anew"
        ) from error


def _write_state(folder: Path, state: _State) -> None:
    write_file(folder / STATE, canonical(msgspec.to_builtins(state)))


def _show(
    steps: list[SyncStep], local: dict[str, _LocalFile], *, dry_run: bool, as_json: bool
) -> None:
    rows = [
        (
            step.workflow_id,
            local[step.workflow_id].path.name if step.workflow_id in local else "",
            step,
        )
        for step in steps
    ]
    if as_json:
        items = [
            {"id": known, "file": name, "action": step.action, "reason": step.reason}
            for known, name, step in rows
        ]
        show_json({"items": items, "dryRun": dry_run})
        return
    cells = [(known, name, _WORDS[step.action], step.reason) for known, name, step in rows]
    show_table(("workflow", "file", "what", "why"), cells, empty="Nothing to do")
    if any(step.action == "conflict" for step in steps):
        answer(
            None,
            "\nhint: nothing was done; bring both together by hand, or let one side win: --force local or remote",
            as_json=False,
        )
