"""The whole on PostgreSQL, beside the same on SQLite: with a server here, and with one that is 5 ms away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from astraflow.bench.processes import System, running, running_as
from astraflow.bench.system import Measured, Sizes, measure
from benchmarks.distance import at_distance
from benchmarks.figures import Figure
from tests.processes.postgres import database, postgres_server

SIZES = Sizes(turns=3)
FAR_SIZES = Sizes(steps=50, singles=60, turns=2)
ONE_WAY_MS = 2.5


@contextmanager
def running_on(url: str) -> Iterator[System]:
    """A scheduler on this database, and a worker."""

    class OnPostgres(System):
        def environment(self, *arguments: str) -> dict[str, str]:
            return {
                **super().environment(*arguments),
                "ASTRA_SCHEDULER_DATABASE_URL": url,
                "ASTRA_SCHEDULER_SECRET": "a secret for benchmarks that is long enough",
            }

    with running_as(OnPostgres) as system:
        yield system


def measure_on(url: str, sizes: Sizes) -> Measured:
    with running_on(url) as system:
        return measure(system, sizes)


def measure_far(url: str, sizes: Sizes) -> Measured:
    """The same with a server that answers 5 ms later than it would."""
    parts = urlsplit(url)
    (folder,) = parse_qs(parts.query)["host"]
    with at_distance(str(Path(folder) / ".s.PGSQL.5432"), ONE_WAY_MS) as port:
        return measure_on(f"postgresql://postgres@127.0.0.1:{port}{parts.path}", sizes)


def figures() -> list[Figure]:
    with running() as system:
        file = measure(system, SIZES)
    with postgres_server() as server:
        with database(server, "near") as url:
            near = measure_on(url, SIZES)
        with database(server, "far") as url:
            far = measure_far(url, FAR_SIZES)
    kept = far.many_runs_per_s / near.many_runs_per_s
    return [
        Figure("fan-out 1→5,000→1", near.fan_out_nodes_per_s, "nodes/s", 7_000, at_least=True),
        Figure("of SQLite", near.fan_out_nodes_per_s / file.fan_out_nodes_per_s, "times"),
        Figure("chain of 200", near.chain_ms_per_step, "ms/step", 1.2),
        Figure("of SQLite", near.chain_ms_per_step / file.chain_ms_per_step, "times"),
        Figure("one node, submission to result seen, median", near.single_p50_ms, "ms", 3),
        Figure("of SQLite", near.single_p50_ms / file.single_p50_ms, "times"),
        Figure("200 runs of 1→8→1 at once", near.many_runs_per_s, "runs/s", 400, at_least=True),
        Figure("of SQLite", near.many_runs_per_s / file.many_runs_per_s, "times"),
        Figure("5 ms away: fan-out", far.fan_out_nodes_per_s, "nodes/s"),
        Figure("5 ms away: chain", far.chain_ms_per_step, "ms/step"),
        Figure("5 ms away: one node, median", far.single_p50_ms, "ms", 25),
        Figure("5 ms away: 200 runs at once", far.many_runs_per_s, "runs/s"),
        Figure("of what they are with a server here", kept, "times", 0.6, at_least=True),
    ]
