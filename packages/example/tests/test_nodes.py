from __future__ import annotations

from astraflow_sdk.testing import RunNode
from example_nodes import greet


def test_it_greets_as_often_as_it_is_told(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada", times=2).result == {"text": "Hello, Ada! Hello, Ada!"}


def test_it_says_whom_it_greets(run_node: RunNode) -> None:
    assert run_node(greet, name="Ada").logs == [("info", "greeting Ada")]
