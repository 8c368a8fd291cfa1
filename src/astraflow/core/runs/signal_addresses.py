"""Addresses at which systems outside send a signal to a run, without a token of ours.

Rule 1: each name that a run waits for with `webhook` has an address of its own, known from the start of the run. It is
        made of the key of the run, which is drawn when the run is submitted and kept with its first fact.
Rule 2: an address dies with the wait: it is open as long as a node that waits for its name, or may wait, has not ended.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator, Mapping
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final

from astraflow.core.workflow.plan import walk_nodes

if TYPE_CHECKING:
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.workflow.definition import Signal
    from astraflow.core.workflow.plan import PlanNode

PATH: Final = "/api/v1/signals"
_PLAIN: Final = frozenset(ascii_letters + digits + "-._~")
_MAC_BYTES: Final = 24
"""192 bits: nobody can guess an address, or make it from another one."""


def token_of(key: str, name: str) -> str:
    """What the address of a name ends with."""
    mac = hmac.digest(key.encode(), name.encode(), "sha256")[:_MAC_BYTES]
    return base64.urlsafe_b64encode(mac).decode()


def is_token_of(run: RunRecord, name: str, token: str) -> bool:
    """Whether this is the address of the run for this name. The comparison takes the same time for each."""
    address = run.accepted.signal_key
    if address is None:
        return False
    return hmac.compare_digest(token_of(address.key, name).encode(), token.encode())


def _quoted(name: str) -> str:
    """The name as a segment of a path."""
    return "".join(
        chr(one) if chr(one) in _PLAIN else f"%{one:02X}" for one in name.encode(errors="replace")
    )


class SignalAddresses(Mapping[str, str]):
    """From the names that a run waits for to their addresses."""

    def __init__(self, run: RunRecord) -> None:
        self._run = run

    def __getitem__(self, name: str) -> str:
        known = self._run.accepted.signal_key
        if known is None or name not in set(self):
            raise KeyError(name)
        token = token_of(known.key, name)
        return f"{known.base}{PATH}/{self._run.run_id}/{_quoted(name)}/{token}"

    def __iter__(self) -> Iterator[str]:
        found = (_signal_of(node) for node in walk_nodes(self._run.plan))
        return iter(sorted({one.name for one in found if one is not None}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def open_signals(run: RunRecord, name: str) -> list[Signal]:
    """What waits for this name at its address, or may wait for it yet."""
    found: list[Signal] = []
    for index, task in enumerate(run.tasks):
        if not task.is_terminal:
            found += [one for one in _signals_at(run, index) if one.name == name]
    return found


def _signals_at(run: RunRecord, index: int) -> Iterator[Signal]:
    node = run.tasks[index].node
    own = _signal_of(node)
    if own is not None:
        yield own
    body = None if node.control is None else node.control.body
    if body is not None:
        for inner in walk_nodes(body.plan):
            found = _signal_of(inner)
            if found is not None:
                yield found


def _signal_of(node: PlanNode) -> Signal | None:
    signal = None if node.control is None else node.control.signal
    return signal if signal is not None and signal.webhook else None
