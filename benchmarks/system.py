"""The whole: a scheduler, a worker and its host as processes, measured from a client, in turns with the bare loop."""

from __future__ import annotations

from astraflow.bench.processes import running
from astraflow.bench.system import Sizes, measure
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

SIZES = Sizes()


def figures() -> list[Figure]:
    with running() as system:
        found = measure(system, SIZES)
        assert system.scheduler is not None
        scheduler_mib = rss_mib(system.scheduler.pid)
        worker_mib = rss_mib(system.workers[0].pid)
    fan, step = found.fan_out_nodes_per_s, found.chain_ms_per_step
    used, runs = found.scheduler_us_per_node, found.many_runs_per_s
    return [
        Figure("fan-out 1→5,000→1", fan, "nodes/s", 10_000, at_least=True),
        Figure("the bare loop", found.bare_fan_out_nodes_per_s, "nodes/s"),
        Figure("of the bare loop", found.fan_out_ratio, "times", 0.3, at_least=True),
        Figure("scheduler in the fan-out, a node", used, "µs CPU", 35),
        Figure("chain of 200", step, "ms/step", 0.8),
        Figure("the bare loop", found.bare_chain_ms_per_step, "ms/step"),
        Figure("of the bare loop", found.chain_ratio, "times", 2),
        Figure("one node, submission to result seen, median", found.single_p50_ms, "ms", 1.8),
        Figure("the same, 99 of 100", found.single_p99_ms, "ms", 5),
        Figure("200 runs of 1→8→1 at once", runs, "runs/s", 600, at_least=True),
        Figure("scheduler after it", scheduler_mib, "MiB"),
        Figure("worker after it", worker_mib, "MiB"),
    ]
