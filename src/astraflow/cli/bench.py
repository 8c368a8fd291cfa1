"""`astra bench`: measures throughput and latency on this machine in half a minute."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from astraflow.cli.exit_codes import note


def bench(
    width: Annotated[int, typer.Option(min=1, max=50_000, help="Number of parallel nodes")] = 2_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Measure a scheduler and a worker against a bare event loop that does the same work.

    They run in a temporary directory on a free port; your data is not touched.
    """
    from astraflow.bench.processes import running
    from astraflow.bench.system import Sizes, measure

    sizes = Sizes(width=width, steps=100, singles=50, many=100, turns=2)
    note("Measuring the system and the bare loop …")
    with running() as system:
        found = measure(system, sizes)
    if as_json:
        told = {_camel(name): value for name, value in msgspec.structs.asdict(found).items()}
        typer.echo(msgspec.json.encode(told).decode())
        return
    bare_fan, bare_step = found.bare_fan_out_nodes_per_s, found.bare_chain_ms_per_step
    rows = [
        (f"fan-out 1→{width:,}→1", f"{found.fan_out_nodes_per_s:,.0f} nodes/s",
         f"{found.fan_out_ratio:.2f} of the bare loop's {bare_fan:,.0f}"),
        ("chain of 100", f"{found.chain_ms_per_step:.2f} ms/step",
         f"{found.chain_ratio:.1f} times the bare loop's {bare_step:.2f}"),
        ("one node, submission to result", f"{found.single_p50_ms:.1f} ms",
         f"99 of 100 within {found.single_p99_ms:.1f} ms"),
        ("100 runs of 1→8→1 at once", f"{found.many_runs_per_s:,.0f} runs/s", ""),
    ]  # fmt: skip
    for what, value, beside in rows:
        typer.echo(f"{what:<32}{value:>20}   {beside}".rstrip())


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
