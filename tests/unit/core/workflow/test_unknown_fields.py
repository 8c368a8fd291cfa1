"""Fields that mean nothing are warned of."""

from __future__ import annotations

import pytest

from astraflow.core.workflow import validate
from astraflow.core.workflow.limits import MAX_PROBLEMS
from astraflow.core.workflow.unknown_fields import find_warnings
from tests.unit.core.workflow.drafts import CORE, definition, node


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("retries", "retry"),
        ("timeout", "timeoutSeconds"),
        ("concurency_key", "concurrencyKey"),
        ("zzz", None),
    ],
)
def test_a_field_that_means_nothing_is_warned_of(name: str, meant: str | None) -> None:
    made = definition([node(1), {**node(2), name: 3, "x-own": 1}])
    assert validate(made, CORE) == []
    (warning,) = find_warnings(made.raw)
    assert (warning.pointer, warning.code) == (f"/nodes/1/{name}", "E.WORKFLOW.UNKNOWN_FIELD")
    assert warning.message.endswith(f"did you mean {meant!r}?" if meant else f"{name!r}")


def test_warnings_are_bounded() -> None:
    fields = {f"field{number}": 1 for number in range(3 * MAX_PROBLEMS)}
    found = find_warnings(definition([{**node(1), **fields}]).raw)
    assert len(found) == MAX_PROBLEMS
    assert found[-1].message == f"and {2 * MAX_PROBLEMS + 1} more"


def test_a_node_with_known_fields_has_no_warning() -> None:
    assert find_warnings(definition([node(1, label="a", retry={"maxAttempts": 2})]).raw) == []
