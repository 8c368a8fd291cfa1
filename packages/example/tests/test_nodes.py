from __future__ import annotations

from astraflow_sdk.testing import RunNode
from example_nodes import greet


def test_greets_several_times(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada", times=2).result == {"text": "Hello, Ada! Hello, Ada!"}


def test_logs_the_name(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada").logs == [("info", "greeting Ada")]
