"""The whole: a scheduler, a worker and its host as processes, measured from a client, beside the bare loop."""

from __future__ import annotations

from statistics import median

import uvloop

from astraflow.bench import bare_loop
from astraflow.bench.processes import running
from astraflow.bench.system import Sizes, measure
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

SIZES = Sizes()


def figures() -> list[Figure]:
    bare = [bare_loop.measure(SIZES.width, SIZES.steps) for _ in range(2)]
    with running() as system:
        found = uvloop.run(measure(system.port, SIZES))
        assert system.scheduler is not None
        scheduler_mib = rss_mib(system.scheduler.pid)
        worker_mib = rss_mib(system.workers[0].pid)
    bare += [bare_loop.measure(SIZES.width, SIZES.steps)]
    bare_fan = median(one for one, _ in bare)
    bare_step = median(one for _, one in bare)
    fan, step = found.fan_out_nodes_per_s, found.chain_ms_per_step
    return [
        Figure("fan-out 1→5,000→1", fan, "nodes/s", 8_000, at_least=True),
        Figure("of the bare loop", fan / bare_fan, "times", 0.4, at_least=True),
        Figure("the bare loop", bare_fan, "nodes/s"),
        Figure("chain of 200", step, "ms/step", 1.3),
        Figure("of the bare loop", step / bare_step, "times", 2.2),
        Figure("the bare loop", bare_step, "ms/step"),
        Figure("one node, submission to result seen, median", found.single_p50_ms, "ms", 2.5),
        Figure("the same, 99 of 100", found.single_p99_ms, "ms", 10),
        Figure("200 runs of 1→8→1 at once", found.many_runs_per_s, "runs/s", 400, at_least=True),
        Figure("scheduler after it", scheduler_mib, "MiB"),
        Figure("worker after it", worker_mib, "MiB"),
    ]
