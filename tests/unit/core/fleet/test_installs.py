"""Install intents: their states, and the table of them."""

from __future__ import annotations

import pytest

from astraflow.core.fleet.facts import NoTransition
from astraflow.core.fleet.installs import (
    InstallAdvanced,
    InstallConfirmed,
    InstallFailed,
    InstallForgotten,
    InstallProblem,
    InstallReopened,
    InstallRequested,
    InstallTable,
    InstallWithdrawn,
)

KEY = ("acme", 5, "w1", "text", "2.0")
PROBLEM = InstallProblem("E.PKG.INSTALL_FAILED", "no network")


def requested() -> InstallTable:
    table = InstallTable()
    table.apply(InstallRequested(*KEY, "installed", "command"))
    return table


def state(table: InstallTable) -> str:
    [intent] = table
    return intent.state


def test_an_intent_is_wanted_until_its_worker_confirms_it() -> None:
    table = requested()
    [intent] = table
    assert (intent.state, intent.is_open, intent.is_installing) == ("wanted", True, True)
    table.apply(InstallAdvanced(*KEY, "downloading", 0.5))
    assert state(table) == "downloading"
    table.apply(InstallConfirmed(*KEY))
    [intent] = table
    assert (intent.state, intent.is_open, intent.progress) == ("installed", False, None)


def test_a_failure_is_retried_unless_it_is_final() -> None:
    table = requested()
    table.apply(InstallFailed(*KEY, PROBLEM, is_final=False))
    [intent] = table
    assert (intent.state, intent.tries, intent.error) == ("wanted", 1, PROBLEM)
    table.apply(InstallFailed(*KEY, PROBLEM, is_final=True))
    [intent] = table
    assert (intent.state, intent.tries, intent.is_open) == ("failed", 2, False)


def test_a_new_request_begins_anew() -> None:
    table = requested()
    table.apply(InstallFailed(*KEY, PROBLEM, is_final=True))
    table.apply(InstallRequested(*KEY, "removed", "command"))
    [intent] = table
    assert (intent.target, intent.state, intent.tries, intent.error) == (
        "removed",
        "wanted",
        0,
        None,
    )


def test_a_version_that_the_worker_removed_by_itself_is_not_wanted_again() -> None:
    table = requested()
    with pytest.raises(NoTransition):
        table.apply(InstallWithdrawn(*KEY))
    table.apply(InstallConfirmed(*KEY))
    table.apply(InstallWithdrawn(*KEY))
    [intent] = table
    assert (intent.target, intent.state) == ("removed", "removed")


def test_what_is_no_longer_so_is_wanted_again_but_not_what_failed() -> None:
    table = requested()
    table.apply(InstallConfirmed(*KEY))
    table.apply(InstallReopened(*KEY))
    assert state(table) == "wanted"
    table.apply(InstallFailed(*KEY, PROBLEM, is_final=True))
    with pytest.raises(NoTransition):
        table.apply(InstallReopened(*KEY))


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    table = requested()
    assert table.apply(InstallForgotten(*KEY)) is None
    assert (
        len(table),
        table.of_worker("acme", "w1"),
        table.find(("acme", "w1", "text", "2.0")),
    ) == (0, [], None)
