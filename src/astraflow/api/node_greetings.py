"""Nodes ask one another who they are, so that a wrong setting is found before a request meets it.

Rule 1: before a node serves, it asks the others that live. One that has another secret would sign what they refuse, and
        refuse what they sign: it does not start. Nor does it start if its master key for secrets is another one: what
        one encrypts, each that takes its tenants over must read. Nor if another one answers at its own `node_url`,
        where it does not listen yet: its tenants could not be reached.
Rule 2: then it asks each node that appears, itself among them, until it was answered well once. What is wrong is in the
        log: it does not stop, since it may be the other one's fault, or the network's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from astraflow.api.node_calls import NotGreeted
from astraflow.core import errors
from astraflow.scheduler.master_keys import other_master_key

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from astraflow.api.node_calls import NodeCalls
    from astraflow.core.cluster.shards import NodeSeen
    from astraflow.scheduler.cluster_node import ClusterNode

Answer = TypeVar("Answer")
_log: Final = logging.getLogger(__name__)

BEFORE_START_S: Final = 1.0
"""A machine that is gone must not keep another one from starting."""
STEADY_S: Final = 5.0
"""A node that has just started may not listen yet, and one that has ended counts as live for so long."""
AGAIN_S: Final = 15.0


class OtherKeys(NotGreeted):
    """A node could not read what this one encrypts, or the other way."""

    def __init__(self) -> None:
        super().__init__(
            "it has another secrets_key: one of the two cannot read what the other one encrypts"
        )


class NodeGreetings:
    """Use from one loop."""

    def __init__(self, node: ClusterNode, calls: NodeCalls, master_keys: list[str]) -> None:
        self._master_keys = master_keys
        self._node = node
        self._calls = calls
        self._greeted: dict[
            str, str
        ] = {}  # what was wrong with each node, by its id; empty: nothing

    async def check(self) -> None:
        """Ask the nodes that are there.

        Raises:
            Refused: they have another secret, another master key, or the address of this node; or what is stored is
                encrypted with another master key.
            StoreError: it does not answer.
        """
        cluster = self._node.cluster
        stored = await cluster.master_ids()
        others = [one for one in await cluster.nodes() if one.is_live]
        for master_id in stored if self._master_keys else ():
            if master_id not in self._master_keys:
                raise _other_keys(other_master_key(master_id, self._master_keys))
        if not others:
            return
        impostor, answers = await asyncio.gather(
            _in_time(self._other_at_own_url()),
            asyncio.gather(*(_in_time(self._ask(one)) for one in others)),
        )
        if impostor is not None:
            raise errors.Refused(
                errors.CONFIG_INVALID,
                f"node_url: must be an address of this scheduler alone; {impostor} answers at {self._node.url}",
                pointer="/node_url",
            )
        for other, answer in zip(others, answers, strict=True):
            if answer is not None and answer.is_stranger:
                raise errors.Refused(
                    errors.NODE_FOREIGN,
                    f"secret: must be that of the other schedulers of this database; the one at {other.url} has "
                    "another one",
                    pointer="/secret",
                )
            if isinstance(answer, OtherKeys):
                raise _other_keys(
                    "secrets_key: must begin with a key that the other schedulers of this database have, and hold the "
                    f"one that theirs begins with; it is another one at {other.url}"
                )

    async def run(self) -> None:
        """Ask each node that appears."""
        while True:
            nodes = [one for one in self._node.seen.nodes.values() if one.is_live]
            names = {one.node_id for one in nodes}
            self._greeted = {name: said for name, said in self._greeted.items() if name in names}
            for one in nodes:
                if one.up_s >= STEADY_S and self._greeted.get(one.node_id) != "":
                    self._note(one, await self._ask(one))
            await asyncio.sleep(AGAIN_S if self._greeted else STEADY_S)

    async def _other_at_own_url(self) -> str | None:
        """The id of another node that has the URL of this one."""
        try:
            answer = await self._calls.hello(self._node.url)
        except NotGreeted:
            return None
        return None if answer is None or answer.node_id == self._node.node_id else answer.node_id

    async def _ask(self, other: NodeSeen) -> NotGreeted | None:
        """What is wrong, if anything is."""
        try:
            answer = await self._calls.hello(other.url)
        except NotGreeted as error:
            return error
        if answer is None:
            return None
        if answer.node_id == other.node_id:
            return self._compare(answer.master_keys)
        return NotGreeted(
            f"scheduler {answer.node_id} answers there: a node_url must name one scheduler, and no balancer"
        )

    def _compare(self, theirs: list[str] | None) -> OtherKeys | None:
        """What is wrong with the master keys of another node; it may have none, or one of a service."""
        ours = self._master_keys
        if not theirs or (ours and theirs[0] in ours and ours[0] in theirs):
            return None
        return OtherKeys()

    def _note(self, other: NodeSeen, problem: NotGreeted | None) -> None:
        said = "" if problem is None else str(problem)
        if said and self._greeted.get(other.node_id) != said:
            what = (
                "scheduler %s at %s: %s"
                if isinstance(problem, OtherKeys)
                else "scheduler %s cannot be reached at its node_url %s: %s"
            )
            _log.warning(what, other.node_id, other.url, said)
        self._greeted[other.node_id] = said


async def _in_time(question: Awaitable[Answer]) -> Answer | None:
    """None: there was no answer. One that is silent does not hide what others say."""
    try:
        async with asyncio.timeout(BEFORE_START_S):
            return await question
    except TimeoutError:
        return None


def _other_keys(problem: str) -> errors.Refused:
    return errors.Refused(errors.CONFIG_INVALID, problem, pointer="/secrets_key")
