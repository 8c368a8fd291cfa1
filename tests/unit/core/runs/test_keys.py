"""Concurrency keys and affinity keys that are expressions."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.dispatch.demand import lock_of
from astraflow.core.expressions import ExpressionError
from astraflow.core.runs.commands import LeaseTask
from astraflow.core.runs.keys import affinity_of, concurrency_key, next_affinity
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import AffinityHint
from tests.tables import each_row
from tests.unit.core.runs.test_scopes import Playing, echo
from tests.unit.core.workflow.drafts import found, plan


def keyed(text: str, **fields: Any) -> Playing:
    made = plan([echo(1, concurrencyKey=text, **fields)], inputs={"user": {}})
    return Playing(made, user="ada")


@each_row(
    ("text", "key"),
    [("=inputs.user", "ada"), ("='u-' + inputs.user", "u-ada"), ("=7", "7"), ("=null", None)],
)
def test_a_key_is_evaluated_for_the_task(text: str, key: str | None) -> None:
    played = keyed(text)
    lock = lock_of(played.run, 0)
    assert (None if lock is None else lock[0]) == key


@each_row("text", ["=''", "=1.5", "=true", "=[1]", "=inputs.user.x", "='x' * 200", "='a\\n'"])
def test_a_value_that_is_no_key_has_no_lock(text: str) -> None:
    with pytest.raises(ExpressionError, match="concurrencyKey"):
        lock_of(keyed(text).run, 0)


def test_what_an_attempt_holds_is_part_of_its_lease() -> None:
    played = keyed("=inputs.user", affinity={"key": "='near ' + inputs.user", "mode": "preferred"})
    assert next_affinity(played.run, 0) == AffinityHint("near ada", "preferred")
    assert concurrency_key(played.run, 0) is None
    played.give(LeaseTask(0, "w1", 1, 30_000, "ada", "near ada"))
    again = replay(played.plan, played.facts)
    for run in (played.run, again):
        assert concurrency_key(run, 0) == "ada"
        assert affinity_of(run, 0) == AffinityHint("near ada", "preferred")


def test_each_item_of_a_map_has_its_own_key() -> None:
    made = plan([echo(1, concurrencyKey="='row ' + str(item)", map={"over": "=[1, 2]"})])
    played = Playing(made)
    locks = [lock_of(played.run, task) for task in played.queued]
    assert locks == [("row 1", None), ("row 2", None)]


def test_what_a_key_names_must_exist() -> None:
    assert found([echo(1, concurrencyKey="=inputs.nope")]) == [
        ("/nodes/0/concurrencyKey", "EXPRESSION")
    ]
    assert found([echo(1, affinity={"key": "=nodes.x.results"})]) == [
        ("/nodes/0/affinity/key", "EXPRESSION")
    ]
