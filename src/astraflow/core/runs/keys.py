"""The concurrency key and the affinity key of a task, where they are expressions.

Rule: a key is evaluated when the task is queued, and is part of the fact of its lease: what an attempt holds does not
change when something upstream is made again. Null means that there is no key.
"""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.values import names_of
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.limits import MAX_KEY_CHARS
from astraflow.core.workflow.plan import AffinityHint

NO_KEYS: Final[tuple[str | None, str | None]] = (None, None)


def concurrency_key(run: RunRecord, task: int) -> str | None:
    """The key that the current attempt of a task holds."""
    key = run.tasks[task].node.concurrency_key
    if key is None or not is_expression(key):
        return key
    return run.keys.get(task, NO_KEYS)[0]


def affinity_of(run: RunRecord, task: int) -> AffinityHint | None:
    """The affinity that the current attempt of a task has."""
    hint = run.tasks[task].node.affinity
    if hint is None or not is_expression(hint.key):
        return hint
    key = run.keys.get(task, NO_KEYS)[1]
    return None if key is None else msgspec.structs.replace(hint, key=key)


def next_concurrency_key(run: RunRecord, task: int) -> str | None:
    """The key that the next attempt of a task needs. Raises: ExpressionError."""
    key = run.tasks[task].node.concurrency_key
    if key is None or not is_expression(key):
        return key
    return _evaluate(run, task, key, "concurrencyKey")


def next_affinity(run: RunRecord, task: int) -> AffinityHint | None:
    """The affinity that the next attempt of a task has. Raises: ExpressionError."""
    hint = run.tasks[task].node.affinity
    if hint is None or not is_expression(hint.key):
        return hint
    key = _evaluate(run, task, hint.key, "affinity/key")
    return None if key is None else msgspec.structs.replace(hint, key=key)


def _evaluate(run: RunRecord, task: int, text: str, where: str) -> str | None:
    try:
        value = compile_expression(text[1:]).evaluate(names_of(run, task))
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error.message}") from None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY_CHARS or not value.isprintable():
        raise ExpressionError(
            f"{where}: the value is no key: a string of 1 to {MAX_KEY_CHARS} characters"
        )
    return value
