"""The benchmark of two schedulers works: every load is carried out in the lanes that it is for. What it measures is not
asserted.
"""

from __future__ import annotations

import pytest
import uvloop

from benchmarks import nodes

uvloop.new_event_loop().close()  # the first one leaves a pipe of the whole process open


@pytest.mark.timeout(300)
def test_each_load_is_measured_with_each_kind_of_worker() -> None:
    found = nodes.figures(nodes.Sizes(width=20, runs=2, turns=1))
    values = {figure.name: figure.value for figure in found}
    for kind in ("light workers", "astra worker"):
        for load in ("one node, one tenant", "two nodes, two tenants", "two nodes, one tenant"):
            assert values[f"{kind}: {load}"] > 0
            assert values[f"{kind}: {load}: PostgreSQL, a node"] > 0
            engines = [name for name in values if name.startswith(f"{kind}: {load}: scheduler ")]
            assert len(engines) == (1 if load.startswith("one node") else 2)
    ratios = [figure for figure in found if figure.unit == "times"]
    assert len(ratios) == 12
    assert all(figure.budget is not None for figure in ratios)
