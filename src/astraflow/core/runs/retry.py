"""Who gets another attempt, and when.

Three budgets, three counters, never mixed:

* *failures*: the node's own policy. Which categories are worth it is the table of ADR-023 §6;
  `error.retryable` overrides the table, and the policy's `categories` bound both.
* *losses*: the attempt vanished with its worker. Always worth it, up to `LOSS_BUDGET`.
* *dispatch tries*: nobody took the frame. Up to `DISPATCH_TRIES` in a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from astraflow.core.categories import Category
from astraflow.core.runs.facts import TaskFailure

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.workflow.plan import RetryPolicy

LOSS_BUDGET: Final = 5
"""A task that took five workers' attempts with it is more likely the cause than the victim."""
DISPATCH_TRIES: Final = 5
DISPATCH_BACKOFF_MIN_S: Final = 0.2
DISPATCH_BACKOFF_MAX_S: Final = 5.0

RETRYABLE: Final[dict[Category, bool]] = {
    "USER_CODE": True,
    "DATA_QUALITY": False,
    "INFRASTRUCTURE": True,
    "CONFIGURATION": False,
    "TIMEOUT": True,
    "CANCELLED": False,
}


def may_retry(error: TaskFailure, failures: int, policy: RetryPolicy) -> bool:
    """Whether a task that has now failed `failures` times gets another attempt."""
    if failures >= policy.max_attempts:
        return False
    if policy.categories and error.category not in policy.categories:
        return False
    if error.retryable is not None:
        return error.retryable
    return RETRYABLE[error.category]


def retry_delay_s(failures: int, policy: RetryPolicy, rng: Random) -> float:
    """Exponential, capped, spread by the policy's jitter (a share of the delay)."""
    # The exponent is bounded so that a policy of a thousand attempts cannot overflow a float.
    delay = min(policy.initial_s * policy.factor ** min(failures - 1, 64), policy.max_s)
    return delay * (1 - policy.jitter * rng.random())


def retry_detail(attempt: int, failures: int, allowed: int) -> str:
    """Why a task waits for its next attempt, for people. Facts of earlier releases have no counts."""
    counted = f"; failure {failures} of {allowed}" if failures else ""
    return f"attempt {attempt} failed{counted}"


def dispatch_delay_s(tries: int, rng: Random) -> float:
    """0.2–5 s, doubling, with half of it at random so that refused tasks do not come back as one."""
    ceiling = min(DISPATCH_BACKOFF_MAX_S, DISPATCH_BACKOFF_MIN_S * 2.0 ** min(tries, 16))
    return ceiling * (0.5 + 0.5 * rng.random())
