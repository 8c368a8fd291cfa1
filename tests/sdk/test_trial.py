"""Nodes run without a server: what a test can give them, and what it can see of them."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from astraflow_sdk import (
    CallFailed,
    ConfigurationError,
    Context,
    DataQualityError,
    NodeError,
    artifact,
    node,
    resource,
)
from astraflow_sdk.trial import Outcome, Trial

# Hints are read when a handler is made, in the module of its function.
Path = pathlib.Path


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(tmp_path / "data")
    yield trial
    trial.close()


def test_what_a_node_says_and_returns_is_there(trial: Trial) -> None:
    @node("demo.talk")
    async def talk(ctx: Context, text: str) -> dict[str, str]:
        ctx.progress(0.5, "half")
        ctx.log("warning", "careful")
        ctx.emit("one ")
        ctx.emit("two")
        return {"text": text + ctx.secrets["KEY"], "type": ctx.node_type}

    outcome = trial.run(talk, text="a", secrets={"KEY": "b"})
    assert (outcome.status, outcome.result) == ("succeeded", {"text": "ab", "type": "demo.talk"})
    assert outcome.progress == [(0.5, "half")]
    assert outcome.logs == [("warning", "careful")]
    assert outcome.text == "one two"


def test_a_plain_function_and_parameters_as_one_mapping(trial: Trial) -> None:
    def failures(ctx: Context, secrets: int) -> int:
        return ctx.failures * 10 + ctx.attempt + secrets

    assert trial.run(failures, {"secrets": 100}, failures=2).result == {"result": 123}


def test_what_a_node_raises_is_raised(trial: Trial) -> None:
    def picky(text: str) -> None:
        raise DataQualityError(f"not {text}", code="E.RESULT.INVALID")

    with pytest.raises(DataQualityError, match="not this") as raised:
        trial.run(picky, text="this")
    assert raised.value.code == "E.RESULT.INVALID"
    with pytest.raises(ConfigurationError, match="text"):
        trial.run(picky)


def test_a_result_that_no_worker_would_take_fails_as_it_would_there(trial: Trial) -> None:
    with pytest.raises(NodeError, match="JSON") as raised:
        trial.run(lambda: {"x": object()})
    assert raised.value.code == "E.RESULT.INVALID"
    with pytest.raises(NodeError) as raised:
        trial.run(lambda: "x" * 3_000_000)
    assert raised.value.code == "E.RESULT.TOO_LARGE"


def test_a_node_that_is_cancelled_ends(trial: Trial) -> None:
    reached = []

    def plain(ctx: Context) -> None:
        reached.append("begun")
        ctx.raise_if_cancelled()
        reached.append("not cancelled")

    async def patient(ctx: Context) -> None:
        ctx.progress(0.1)
        await asyncio.Event().wait()

    def has_begun(outcome: Outcome) -> bool:
        return bool(outcome.progress)

    assert trial.run(plain, cancel=True).status == "cancelled"
    assert reached == ["begun"]
    outcome = trial.run(patient, cancel=has_begun)
    assert (outcome.status, outcome.progress) == ("cancelled", [(0.1, None)])


def test_resources_of_one_run_are_there_for_the_next_and_closed_on_their_loop(
    tmp_path: Path,
) -> None:
    closed: list[Any] = []

    async def login(ctx: Context) -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        async def close() -> None:
            closed.append(asyncio.get_running_loop() is loop)

        return {"session": resource.keep({"user": "ada"}, type="session", close=close).ref()}

    async def use(ctx: Context, session: dict[str, Any]) -> dict[str, Any]:
        (leased,) = ctx.leased_resources.values()
        with resource.lease(session) as handle:
            return {"user": handle.value["user"], "same": leased is handle}

    trial = Trial(tmp_path)
    first = trial.run(login)
    assert len(first.resources) == 1
    second = trial.run(use, session=first.result["session"])
    assert second.result == {"user": "ada", "same": True}
    assert closed == []
    trial.close()
    assert closed == [True]


def test_files_are_artifacts_that_can_be_read(trial: Trial) -> None:
    def render() -> dict[str, Any]:
        return {"page": artifact.store_bytes(b"body", name="page.txt", mime="text/plain").ref()}

    outcome = trial.run(render)
    (listed,) = outcome.artifacts
    assert listed["size_bytes"] == 4
    assert outcome.resources[listed["resource_id"]].read_bytes() == b"body"


def test_a_middleware_gets_the_rest_of_its_chain_from_the_test(trial: Trial) -> None:
    async def twice(ctx: Context) -> dict[str, Any]:
        return {"all": [await ctx.next({"n": n}) for n in (1, 2)]}

    def once(ctx: Context) -> Any:
        return ctx.next("payload")

    outcome = trial.run(twice, next=lambda payload: payload["n"] * 10)
    assert outcome.result == {"all": [10, 20]}
    assert outcome.calls == [{"n": 1}, {"n": 2}]
    assert trial.run(once, next={"fixed": 1}).result == {"fixed": 1}
    with pytest.raises(ConfigurationError, match="next="):
        trial.run(once)

    def fails(payload: Any) -> None:
        raise CallFailed("it broke", category="USER_CODE")

    with pytest.raises(CallFailed, match="it broke"):
        trial.run(twice, next=fails)


async def test_it_also_runs_in_a_test_that_has_a_loop(trial: Trial) -> None:
    async def greet(name: str) -> str:
        await asyncio.sleep(0)
        return f"hello {name}"

    assert trial.run(greet, name="ada").result == {"result": "hello ada"}


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@dataclasses.dataclass
class Box:
    width: int
    mode: Mode = Mode.SLOW


def test_parameters_are_what_their_hints_promise(trial: Trial) -> None:
    def typed(
        mode: Mode, boxes: list[Box], where: Path | None = None, body: bytes = b"", n: int = 1
    ) -> dict[str, Any]:
        kinds = [type(one).__name__ for one in (mode, boxes[0], boxes[0].mode, body)]
        return {"kinds": kinds, "is_path": isinstance(where, Path), "width": boxes[0].width}

    outcome = trial.run(
        typed, mode="fast", boxes=[{"width": 2, "mode": "slow", "more": 1}], where="/x", body="YQ=="
    )
    assert outcome.result == {
        "kinds": ["Mode", "Box", "Mode", "bytes"],
        "is_path": True,
        "width": 2,
    }
    with pytest.raises(DataQualityError, match=r"mode.*'warp' is none of 'fast', 'slow'"):
        trial.run(typed, mode="warp", boxes=[])
    with pytest.raises(DataQualityError, match=r"boxes.*width"):
        trial.run(typed, mode="fast", boxes=[{}])
    ref = {"resourceRef": {"resourceId": "run/x"}}
    with pytest.raises(NodeError, match="run/x"):
        trial.run(lambda ctx: ctx.leased_resources, {"where": ref})


def test_a_dataclass_is_a_result(trial: Trial) -> None:
    assert trial.run(lambda: Box(3)).result == {"width": 3, "mode": "slow"}
    assert trial.run(lambda: Mode.FAST).result == {"result": "fast"}
