"""The upgrade of a site to the release after the one that it runs: node by node, back again, and for good.

What is written is looked at from outside: nothing that the release before cannot read before the version is raised, by
hand or by the nodes themselves, and something of it afterwards.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from astraflow.core.errors import STORE_NEWER
from astraflow.store import written_facts
from tests.chaos.site import Site
from tests.processes.command_line import astra
from tests.processes.process import Process, free_port
from tests.processes.releases import LaterRelease
from tests.processes.waiting import until_seen

__all__ = ["SiteUpgrade", "reading_facts_of"]

LOOK_S = 0.1
RAISED_S = 60.0
WAIT = "ASTRA_SCHEDULER_UPGRADE_WAIT_SECONDS"
NEVER_S = "31536000"


class SiteUpgrade:
    """One upgrade of a site that works meanwhile. `restart`: ends a node in order and starts it again."""

    def __init__(
        self, site: Site, restart: Callable[[Process], Awaitable[None]], rng: random.Random
    ) -> None:
        self._site = site
        self._restart = restart
        self._rng = rng
        self._before = site.release
        number = self._before.number + 1
        folder = site.supervisor.system.folder / f"release-{number}"
        self._after = LaterRelease(folder, number)
        self._is_by_hand = bool(number % 2)

    async def run(self) -> None:
        site, before, after = self._site, self._before, self._after
        site.supervisor.note(f"upgrade from {before.version} to {after.version}")
        await asyncio.to_thread(after.make)
        nodes = [*site.nodes]
        self._rng.shuffle(nodes)
        # The last node of the release before is what keeps the version from being raised, unless that is done by hand.
        some = nodes if self._is_by_hand else nodes[: self._rng.randint(1, len(nodes) - 1)]
        await self._roll(some[:1], after)
        assert await site.versions() == {before.version, after.version}
        await self._roll(some[1:], after)
        await self._roll(some[::-1], before)
        await self._check_unwritten()
        assert await site.versions() == {before.version}
        await self._roll(nodes, after)
        if self._is_by_hand:
            await self._check_unwritten()
            await self._raise_by_hand(nodes[0])
        async with asyncio.timeout(RAISED_S):
            while await site.facts_written() != after.facts_version:  # noqa: ASYNC110  (nothing would set an event)
                await asyncio.sleep(LOOK_S)
            while not await site.runs_of(after):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        site.supervisor.note(f"facts of {after.version} are written")
        site.release = after
        await self._check_refused(nodes[0])

    async def _roll(self, nodes: Sequence[Process], release: LaterRelease) -> None:
        wait_s = NEVER_S if self._is_by_hand else "0"
        for node in nodes:
            kept = {name: text for name, text in node.environ.items() if name != "PYTHONPATH"}
            node.environ = {**kept, WAIT: wait_s, **release.environ}
            await self._restart(node)

    async def _check_unwritten(self) -> None:
        written = await self._site.facts_written()
        assert written == self._before.facts_version, written
        assert await self._site.runs_of(self._after) == 0

    async def _raise_by_hand(self, node: Process) -> None:
        wanted = str(self._after.facts_version)
        command = ("db", "facts-version", "--raise", wanted, "--yes", "--database-url")
        url = self._site.servers.url
        environ = {**self._site.supervisor.system.environ, **self._after.environ}
        folder = node.folder
        done = await asyncio.to_thread(astra, *command, url, cwd=folder, **environ)
        assert done.code == 0, done

    async def _check_refused(self, node: Process) -> None:
        """A node of the release before does not start any more, and says why."""
        kept = {name: text for name, text in node.environ.items() if name != "PYTHONPATH"}
        arguments = [*node.arguments]
        arguments[arguments.index("--port") + 1] = str(free_port())
        name = f"refused-{self._after.number}"
        environ = {**kept, **self._before.environ}
        refused = Process(name, arguments, node.folder, environ).start()
        try:
            await until_seen(lambda: not refused.is_alive())
            said = refused.said()
            assert refused.code != 0 and STORE_NEWER.do in said, said
            assert f"astraflow {self._after.version} wrote the store" in said, said
            assert "Traceback" not in said, said
        finally:
            refused.close()


@contextmanager
def reading_facts_of(release: LaterRelease) -> Iterator[None]:
    """Let this process read a store that a later release has written: what its facts have more is left out."""
    with patch.object(written_facts, "FACTS_VERSION", release.facts_version):
        yield
