"""Host selection: an attempt runs in the shared host of its package, in a host of its own, or waits for one.

Rule 1: attempts of a package version share one host, unless the package asks for a host per attempt.
Rule 2: an attempt whose predecessor was lost is alone in its host. Such a host may run the next one when it is free:
        only the cause of a death must be known. After the crash of a whole worker many tasks are retried at once, so
        few hosts are started at a time, and short attempts share those few.
Rule 3: an attempt that needs an object in a host runs in that host; this rule takes precedence. A host that keeps
        objects is not stopped.
Rule 4: a host has attempts of one lane only: the fence of one lane kills nothing of another.
Rule 5: a package that did not start is tried again after a delay that doubles. Attempts wait meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from astraflow.worker.hosts.settings import HostSpec, PoolSettings

if TYPE_CHECKING:
    from astraflow.worker.hosts.pool import HostPool

Version = tuple[str, str]
_Share = tuple[Version, bool, int]
"""Version, whether it is for middlewares, and the lane: what a killed node takes along is not what waits for it."""


class _Failure(msgspec.Struct):
    """A package that did not start: how often in a row, and when it may be tried again."""

    times: int = 0
    until: float = 0.0


class Fleet:
    """All hosts, and the attempts that wait for one."""

    def __init__(
        self,
        owner: HostPool,
        folder: Path,
        clock: Clock,
        settings: PoolSettings,
        packages: Callable[[str, str], HostSpec | None],
        refuse: Callable[[HostedAttempt, errors.Code, str], None],
    ) -> None:
        self._owner = owner
        self._folder = folder
        self._clock = clock
        self._settings = settings
        self._packages = packages
        self._refuse = refuse
        self._shared: dict[_Share, Host] = {}
        self._failures: dict[Version, _Failure] = {}
        self.hosts: dict[Host, None] = {}
        self.waiting: dict[tuple[str, int], HostedAttempt] = {}
        self.started_total = 0
        self.died_total = 0

    @property
    def starting(self) -> int:
        return sum(not host.is_ready for host in self.hosts)

    # -- placing ----------------------------------------------------------------------------

    def place(self, running: HostedAttempt) -> None:
        """Give an attempt to a host, or keep it until there is one."""
        package = running.dispatch.package
        spec = self._packages(package.name, package.version)
        if spec is None:
            name = f"{package.name} {package.version}"
            self._refuse(running, errors.PKG_NOT_FOUND, f"this worker has no package: {name}")
            return
        host = self._find(spec, running)
        if host is not None:
            host.add(running)
        elif self._may_start(spec, running):
            self._start(spec, running)
        else:
            self.waiting[running.key] = running

    def place_waiting(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for running in waiting.values():
            self.place(running)

    def _find(self, spec: HostSpec, running: HostedAttempt) -> Host | None:
        if running.pinned is not None:
            return running.pinned
        if spec.isolation == "attempt":
            return None
        if not running.needs_own_host:
            shared = self._shared.get(_share_of(spec, running))
            return None if shared is None or shared.is_ending else shared
        for host in self.hosts:
            is_free = host.is_own and host.is_free and host.lane == running.lane
            if is_free and host.spec == spec:
                return host
        return None

    def _may_start(self, spec: HostSpec, running: HostedAttempt) -> bool:
        failure = self._failures.get((spec.name, spec.version))
        if failure is not None and self._clock.now() < failure.until:
            return False
        is_own = running.needs_own_host or spec.isolation == "attempt"
        if is_own and self.starting >= self._settings.max_starting:
            return False
        # A call would wait for the host of its caller, and a run for the host of an object that it keeps, for ever.
        if sum(not host.is_parked for host in self.hosts) < self._settings.max_hosts:
            return True
        free = [host for host in self.hosts if host.is_spare]
        if free:
            self._let_go(min(free, key=lambda host: host.idle_since))
        return False  # its place is free when it is dead

    def _start(self, spec: HostSpec, running: HostedAttempt) -> None:
        loop = asyncio.get_running_loop()
        is_own = running.needs_own_host or spec.isolation == "attempt"
        try:
            host = Host(
                spec,
                is_own,
                running.lane,
                self._owner,
                self._settings,
                self._folder,
                self._clock,
                loop,
            )
        except OSError as problem:
            self._note_failure(spec)
            self._refuse(running, errors.RUNNER_CRASHED, f"no host can be started: {problem}")
            return
        self.started_total += 1
        self.hosts[host] = None
        if not is_own:
            self._shared[_share_of(spec, running)] = host
        host.add(running)

    # -- the lives of hosts -----------------------------------------------------------------

    def ready(self, host: Host) -> None:
        self._failures.pop((host.spec.name, host.spec.version), None)
        if self.waiting:
            self.place_waiting()

    def freed(self, host: Host) -> None:
        """An attempt has ended in it."""
        if host.is_own and host.spec.isolation == "attempt":
            self._let_go(host)
        elif host.is_own and self.waiting:
            self.place_waiting()

    def kill(self, host: Host) -> None:
        """Kill it: no attempt is given to it any more."""
        self._forget(host)
        host.kill("ours")

    def _let_go(self, host: Host) -> None:
        """It has no work: let it end."""
        self._forget(host)
        host.stop()

    def dead(self, host: Host, is_failed_start: bool) -> None:
        self.died_total += 1
        del self.hosts[host]
        self._forget(host)
        if is_failed_start:
            self._note_failure(host.spec)

    def _forget(self, host: Host) -> None:
        for share in [one for one, shared in self._shared.items() if shared is host]:
            del self._shared[share]

    def _note_failure(self, spec: HostSpec) -> None:
        failure = self._failures.setdefault((spec.name, spec.version), _Failure())
        delay_s = self._settings.start_backoff_s * 2.0**failure.times
        failure.until = self._clock.now() + min(delay_s, self._settings.start_backoff_max_s)
        failure.times += 1

    def look(self, now: float, is_sampling: bool) -> None:
        """Move fences, end what is idle, late or too large, and place what waits."""
        for host in list(self.hosts):
            host.set_fence()
            if not host.is_ending:
                self._look_at(host, now, is_sampling)
        if self.waiting:
            self.place_waiting()

    def _look_at(self, host: Host, now: float, is_sampling: bool) -> None:
        settings = self._settings
        idle_s = settings.own_idle_timeout_s if host.is_own else settings.idle_timeout_s
        if not host.is_ready:
            if now >= host.started_at + settings.start_timeout_s:
                host.kill("late", f"{settings.start_timeout_s} s")
        elif host.is_spare and now >= host.idle_since + idle_s:
            self._let_go(host)
        elif is_sampling:
            self._sample(host)

    def _sample(self, host: Host) -> None:
        host.process.look()
        held = host.process.held()
        limit = host.spec.memory_limit_bytes
        most = self._settings.max_processes
        if limit is not None and held.rss_bytes > limit:
            host.kill("memory", f"{held.rss_bytes} bytes, allowed are {limit}")
        elif held.processes > most:
            host.kill("processes", f"{held.processes}, allowed are {most}")


def _share_of(spec: HostSpec, running: HostedAttempt) -> _Share:
    """Which attempts of a package are together in a host."""
    is_middleware = running.dispatch.chain_index is not None
    return (spec.name, spec.version), is_middleware, running.lane
