"""`astra run --local`: a run in this process, without a server.

^C cancels the run, since nothing of it is left when the command ends; a second one ends the command at once. A person
who is waited for is asked at the terminal.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import msgspec
import typer

from astraflow.cli.exit_codes import FAILED, INTERRUPTED, note
from astraflow.cli.follow import open_viewer, show_end
from astraflow.cli.inputs import WorkflowFile, pair_of, unreadable
from astraflow.cli.output import plain
from astraflow.cli.run_inputs import value_of
from astraflow.cli.viewers import Viewer
from astraflow.client import message_requests
from astraflow.client.blocking import Client
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.workflow.core_manifest import APPROVAL_TYPE
from astraflow.observe.logs import Redaction, set_up_logging

LOG_LEVEL: Final = "error"
PATIENCE_S: Final = 5.0


def run_locally(
    document: WorkflowFile,
    inputs: Mapping[str, Any],
    signals: list[str] | None,
    *,
    approves: bool,
    as_json: bool,
) -> None:
    """Run a workflow, follow it, and print how it ended. Exits as `astra run` does.

    Raises:
        Refused: the definition or an input is not valid.
    """
    # Takes half a second: no other command needs it.
    from astraflow.local.site import LocalSite

    sent = [pair_of(one, "signal") for one in signals or ()]
    set_up_logging(LOG_LEVEL, redaction=Redaction())
    with _terminable(), LocalSite() as site, site.client() as client:
        handle = client.run(document.raw, inputs)
        for name, text in sent:
            client.perform(message_requests.send_signal(handle.run_id, name, value_of(text, None)))
        following = _LocalRun(client, handle.run_id, document.definition, approves=approves)
        following.follow(as_json=as_json)
        try:
            show_end(client, handle.run_id, document.definition, as_json=as_json)
        finally:
            if following.is_interrupted:
                raise typer.Exit(INTERRUPTED)


class _LocalRun:
    """One run, from its first event to its last."""

    def __init__(
        self, client: Client, run_id: str, definition: Mapping[str, Any], *, approves: bool
    ) -> None:
        self._client = client
        self._run_id = run_id
        self._definition = definition
        self._approves = approves
        self._seen = 0
        self.is_interrupted = False

    def follow(self, *, as_json: bool) -> None:
        """Until the run has ended. The second ^C ends the command."""
        viewer = open_viewer(
            self._client,
            self._run_id,
            self._definition,
            as_json=as_json,
            to_stderr=True,
            may_ask=_asks(self._definition),
        )
        with viewer:
            while True:
                try:
                    self._take_all(viewer)
                    return
                except KeyboardInterrupt:
                    if self.is_interrupted:
                        note("ended; the run was not waited for")
                        raise typer.Exit(INTERRUPTED) from None
                    self.is_interrupted = True
                    note("\nCancelling the run; press ^C again to end at once")
                    self._cancel()

    def _take_all(self, viewer: Viewer) -> None:
        for event in self._client.follow(self._run_id, self._seen, patience_s=PATIENCE_S):
            viewer.take(event)
            self._seen = event.id
            self._look(event)

    def _cancel(self) -> None:
        try:
            self._client.runs.cancel(self._run_id)
        except errors.Conflict:
            return  # it has just ended

    def _look(self, event: Event) -> None:
        """Whether somebody is waited for who can be asked here."""
        if event.type != "node.state" or not isinstance(event.body.get("waitingFor"), dict):
            return
        waiting, node_id = event.body["waitingFor"], str(event.body.get("nodeId"))
        kind = waiting.get("kind")
        if kind == "approval":
            self._decide(node_id, str(waiting.get("detail", "")))
        elif kind == "signal":
            note(
                f"{self._label(node_id)} waits for a signal; nobody can send one to a local run. "
                "hint: give it at the start with --signal NAME=VALUE"
            )

    def _decide(self, node_id: str, message: str) -> None:
        label = self._label(node_id)
        if self._approves:
            self._send(node_id, True, "", {})
            return
        if not sys.stdin.isatty():
            self._cancel()
            note(f"error: {label} waits for a person, and there is no terminal to ask at")
            note("\nhint: use a terminal, or --yes to approve")
            raise typer.Exit(FAILED)
        typer.echo(f"{label}: {plain(message) or 'approve?'} [y/n] ", nl=False, err=True)
        approved = _answer().lower() in ("y", "yes")
        typer.echo("Comment (empty for none): ", nl=False, err=True)
        comment = _answer()
        self._send(node_id, approved, comment, self._ask_values(node_id) if approved else {})

    def _ask_values(self, node_id: str) -> dict[str, Any]:
        """What the form of a node asks for."""
        if not (self._node(node_id).get("approval") or {}).get("form"):
            return {}
        while True:
            typer.echo("Values of the form as a JSON object: ", nl=False, err=True)
            try:
                found = msgspec.json.decode(_answer() or "{}")
            except msgspec.DecodeError:
                found = None
            if isinstance(found, dict):
                return found
            note("this is no JSON object")

    def _send(self, node_id: str, approved: bool, comment: str, values: dict[str, Any]) -> None:
        request = message_requests.decide_approval(
            self._run_id, node_id, approved, comment=comment, values=values
        )
        try:
            self._client.perform(request)
        except errors.Refused as error:
            self._cancel()
            note(f"error: {self._label(node_id)} takes no such decision: {error.message}")

    def _node(self, node_id: str) -> Mapping[str, Any]:
        nodes = self._definition.get("nodes") or ()
        return next((one for one in nodes if one.get("id") == node_id), {})

    def _label(self, node_id: str) -> str:
        return plain(str(self._node(node_id).get("label") or node_id))


def _answer() -> str:
    """A line from the terminal. The end of it is an empty one."""
    return sys.stdin.readline().strip()


def _asks(definition: Mapping[str, Any]) -> bool:
    """Whether the run may ask a person: then the terminal is not redrawn all the time."""
    nodes = definition.get("nodes") or ()
    return any(isinstance(one, dict) and one.get("type") == APPROVAL_TYPE for one in nodes)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM cancels the run as ^C does, so that its files are removed."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def check_local(saved: str | None, *, watch: bool, key: str | None, pinned: bool) -> None:
    """Raises: Refused, if an option needs a server."""
    if saved is not None:
        raise unreadable("A saved workflow needs a server: name a file, or leave out --local")
    if not watch or key is not None or pinned:
        raise unreadable(
            "--no-watch, --idempotency-key and --pinned need a server: leave out --local"
        )
