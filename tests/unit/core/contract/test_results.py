"""The results of a run by label."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.contract.runs import Node, Run


def run_of(*nodes: dict[str, Any]) -> Run:
    shown = [{**Node.EXAMPLE, **node} for node in nodes]
    return msgspec.convert({**Run.EXAMPLE, "nodes": shown}, Run)


def test_results_are_found_by_label_and_by_id() -> None:
    run = run_of(
        {"nodeId": "a", "label": "Sum", "result": {"value": 3}},
        {"nodeId": "b", "label": "Twice", "result": 1},
        {"nodeId": "c", "label": "Twice", "result": 2},
        {"nodeId": "d", "label": "", "result": 4},
        {"nodeId": "e", "label": "Failed", "result": None},
        {"nodeId": "f", "label": "Large", "result": None, "resultTruncated": True},
    )
    results = run.results
    assert list(results) == ["Sum", "b", "c", "d", "Large"]
    assert len(results) == 5
    assert results["Sum"] == results["a"] == {"value": 3}
    assert (results["b"], results["c"], results["d"]) == (1, 2, 4)
    for name in ("Twice", "Failed", "e", "nobody"):
        with pytest.raises(KeyError):
            results[name]
    with pytest.raises(KeyError, match="too large"):
        results["Large"]
