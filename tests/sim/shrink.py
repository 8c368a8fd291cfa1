"""Making a failing world smaller: fewer faults, runs, workers, tasks and less time, while it fails the same way."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.config import Config, draw
from tests.sim.simulation import simulate

__all__ = ["shrink"]


def _smaller(config: Config) -> Iterator[Config]:
    for fault in config.faults:
        yield config.shrink(faults=tuple(one for one in config.faults if one != fault))
    if config.runs > 1:
        yield config.shrink(runs=config.runs - 1)
    if config.tenants > 1:
        yield config.shrink(tenants=1)
    if config.workers > config.tenants:
        yield config.shrink(workers=max(config.tenants, config.workers // 2))
        yield config.shrink(workers=config.workers - 1)
    if config.tasks > 1:
        yield config.shrink(tasks=config.tasks // 2)
        yield config.shrink(tasks=config.tasks - 1)
    for handler in config.handlers:
        if len(config.handlers) > 1:
            yield config.shrink(handlers=tuple(one for one in config.handlers if one != handler))
    if config.fault_phase_s > 5:
        yield config.shrink(fault_phase_s=config.fault_phase_s * 0.7)
    for flag in (
        "with_codec",
        "missing_package",
        "pinned",
        "keyed",
        "chains",
        "resources",
        "packages",
    ):
        if getattr(config, flag):
            yield config.shrink(**{flag: False})
    for rate in ("loss", "duplication", "clog", "commit_fault", "drift", "commit_delay_s"):
        if getattr(config, rate):
            yield config.shrink(**{rate: 0.0})


def shrink(seed: int) -> int:
    """Print the smallest world found that breaks the invariant which the seed breaks."""
    config = draw(seed)
    first = simulate(seed, config).violation
    if first is None:
        print(f"seed {seed} does not fail")
        return 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(config):
            violation = simulate(seed, candidate).violation
            if violation is not None and violation.invariant == first.invariant:
                config, is_smaller = candidate, True
                print(f"  {violation}: {config.describe()}")
                break
    print(f"smallest: {config.describe()}")
    return 1
