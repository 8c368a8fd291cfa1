"""Processes that an attempt has started."""

from __future__ import annotations

import os

from astraflow_sdk.current import CURRENT
from astraflow_sdk.host import children

from tests.unit.sdk.port import context

NO_PROCESS = 2**22 + 1
"""Above every process id."""


def test_of_many_processes_those_that_have_ended_are_not_kept() -> None:
    ctx = context()
    token = CURRENT.set(ctx)
    try:
        children._note(os.getpid())
        for number in range(3 * children.MAX_NOTED):
            children._note(NO_PROCESS + number)
    finally:
        CURRENT.reset(token)
    assert ctx.children is not None
    assert len(ctx.children) <= children.MAX_NOTED
    assert ctx.children[0][0] == os.getpid()


def test_what_is_started_outside_of_an_attempt_belongs_to_nobody() -> None:
    ctx = context()
    children._note(os.getpid())
    assert ctx.children is None
