"""The middlewares of package `core`, with a rest of the chain that the test plays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk import CallFailed, ConfigurationError, DataQualityError, InfrastructureError
from astraflow_sdk.trial import Outcome, Trial

from tests.processes.process import ROOT

CORE = ROOT / "packages" / "core"


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(tmp_path / "data", CORE)
    yield trial
    trial.close()


class Played:
    """The rest of a chain: fails as often as it is told, then returns what it was given, or a count."""

    def __init__(self, *errors: CallFailed, returns: Callable[[Any], Any] | None = None) -> None:
        self.errors = list(errors)
        self.returns = returns
        self.given: list[Any] = []

    def __call__(self, payload: Any) -> Any:
        self.given.append(payload)
        if self.errors:
            raise self.errors.pop(0)
        return {"calls": len(self.given)} if self.returns is None else self.returns(payload)


def failure(category: str = "USER_CODE", retryable: bool | None = None) -> CallFailed:
    return CallFailed("boom", category=category, retryable=retryable, code="E.RUNNER.FAILURE")


class TestRetry:
    def test_it_calls_again_until_a_call_succeeds(self, trial: Trial) -> None:
        rest = Played(failure(), failure("TIMEOUT"))
        outcome = trial.run("core.retry", {"attempts": 3, "backoffSeconds": 0}, next=rest)
        assert outcome.result == {"calls": 3}
        assert [level for level, _ in outcome.logs] == ["warning", "warning"]

    def test_the_last_failure_is_its_own(self, trial: Trial) -> None:
        rest = Played(*[failure() for _ in range(5)])
        with pytest.raises(CallFailed, match="boom") as caught:
            trial.run("core.retry", {"attempts": 2, "backoffSeconds": 0}, next=rest)
        assert (caught.value.code, len(rest.given)) == ("E.RUNNER.FAILURE", 2)

    @pytest.mark.parametrize(
        ("error", "categories", "calls"),
        [
            (failure("CONFIGURATION"), None, 1),
            (failure("DATA_QUALITY"), ["DATA_QUALITY"], 2),
            (failure("TIMEOUT"), ["USER_CODE"], 1),
            (failure("USER_CODE", retryable=False), None, 1),
            (failure("CONFIGURATION", retryable=True), None, 2),
        ],
    )
    def test_what_is_worth_another_call_is_said_by_the_error_or_the_categories(
        self, trial: Trial, error: CallFailed, categories: list[str] | None, calls: int
    ) -> None:
        rest = Played(error)
        given = {"backoffSeconds": 0, **({"categories": categories} if categories else {})}
        if calls == 1:
            with pytest.raises(CallFailed):
                trial.run("core.retry", given, next=rest)
        else:
            trial.run("core.retry", given, next=rest)
        assert len(rest.given) == calls

    def test_no_attempts_are_refused(self, trial: Trial) -> None:
        with pytest.raises(ConfigurationError):
            trial.run("core.retry", {"attempts": 0}, next=Played())


class TestCache:
    def test_the_same_input_is_called_once(self, trial: Trial) -> None:
        rest = Played()
        for _ in range(2):
            outcome = trial.run("core.cache", {}, next=rest, host={"test": "same input"})
            assert outcome.result == {"calls": 1}
        assert outcome.metrics == {"cacheHits": 1}
        assert trial.run("core.cache", {}, next=rest, host={"test": "other"}).result == {"calls": 2}

    def test_a_key_takes_the_place_of_the_input(self, trial: Trial) -> None:
        rest = Played()
        for number in range(3):
            trial.run("core.cache", {"key": ["k", 1]}, next=rest, host={"n": number})
        assert len(rest.given) == 1

    @pytest.mark.parametrize(
        ("parameters", "returned"),
        [
            ({"key": "ttl", "ttlSeconds": 0}, {}),
            ({"key": "large", "maxBytes": 10}, {"text": "x" * 20}),
            ({"key": "ref"}, {"file": {"resourceRef": {"resourceId": "r"}}}),
        ],
    )
    def test_what_may_not_be_kept_is_called_again(
        self, trial: Trial, parameters: dict[str, Any], returned: dict[str, Any]
    ) -> None:
        rest = Played(returns=lambda _: returned)
        for _ in range(2):
            assert trial.run("core.cache", parameters, next=rest).result == returned
        assert len(rest.given) == 2

    def test_a_failure_is_not_kept(self, trial: Trial) -> None:
        rest = Played(failure())
        with pytest.raises(CallFailed):
            trial.run("core.cache", {"key": "failing"}, next=rest)
        assert trial.run("core.cache", {"key": "failing"}, next=rest).result == {"calls": 2}


class TestRateLimit:
    def test_calls_within_the_limit_do_not_wait_and_the_next_does(self, trial: Trial) -> None:
        given = {"count": 2, "perSeconds": 0.05, "key": "waits"}
        said = [trial.run("core.rate_limit", given, next=Played()).logs for _ in range(3)]
        assert [len(logs) for logs in said] == [0, 0, 1]

    def test_one_that_would_wait_too_long_fails_and_takes_no_place(self, trial: Trial) -> None:
        given = {"count": 1, "perSeconds": 3600, "key": "fails", "maxWaitSeconds": 1}
        trial.run("core.rate_limit", given, next=Played())
        for _ in range(2):
            with pytest.raises(InfrastructureError, match="1 calls per 3600 s"):
                trial.run("core.rate_limit", given, next=Played())


HOST = {"value": 1, "other": True}


class TestLoop:
    def test_a_number_of_times(self, trial: Trial) -> None:
        rest = Played()
        outcome = trial.run("core.loop", {"times": 3}, next=rest, host=HOST)
        assert (outcome.result, rest.given) == ({"calls": 3}, [None, None, None])

    def test_over_a_list_with_all_results(self, trial: Trial) -> None:
        rest = Played(returns=lambda payload: {"value": payload["value"] * 10})
        given = {"over": [1, 2], "collect": True}
        outcome = trial.run("core.loop", given, next=rest, host=HOST)
        assert outcome.result == {"value": 20, "rounds": [{"value": 10}, {"value": 20}]}
        assert rest.given == [{"value": 1, "other": True}, {"value": 2, "other": True}]

    def test_nothing_to_do_calls_nothing(self, trial: Trial) -> None:
        rest = Played()
        assert trial.run("core.loop", {"over": [], "collect": True}, next=rest).result == {
            "rounds": []
        }
        assert rest.given == []

    def test_a_result_is_fed_into_the_next_round_until_it_fits(self, trial: Trial) -> None:
        rest = Played(returns=lambda payload: {"doc": {"n": [payload["value"] * 2]}})
        given = {"feed": {"value": "doc.n.0"}, "until": {"path": "doc.n.0", "atLeast": 16}}
        outcome = trial.run("core.loop", given, next=rest, host=HOST)
        assert outcome.result == {"doc": {"n": [16]}}
        assert [one["value"] for one in rest.given] == [1, 2, 4, 8]

    @pytest.mark.parametrize(
        ("until", "calls"),
        [
            ({"path": "calls", "equals": 2}, 2),
            ({"path": "calls", "atMost": 5}, 1),
            ({"path": "calls"}, 1),
        ],
    )
    def test_the_comparisons(self, trial: Trial, until: dict[str, Any], calls: int) -> None:
        rest = Played()
        trial.run("core.loop", {"until": until}, next=rest)
        assert len(rest.given) == calls

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({}, ConfigurationError),
            ({"times": 1, "over": []}, ConfigurationError),
            ({"times": 101}, ConfigurationError),
            ({"over": [1, 2], "maxRounds": 1}, ConfigurationError),
            ({"until": {"path": "no"}, "maxRounds": 2}, DataQualityError),
            ({"until": {"path": "calls", "atLeast": "x"}}, DataQualityError),
            ({"times": 2, "feed": {"value": "no.where"}}, DataQualityError),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, trial: Trial, given: dict[str, Any], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            trial.run("core.loop", given, next=Played(), host=HOST)


class TestLogCalls:
    def test_a_success_is_told_before_and_after(self, trial: Trial) -> None:
        given = {"level": "debug", "input": True, "result": True}
        outcome = trial.run("core.log_calls", given, next={"x": 1}, host={"a": "ü"})
        (first, before), (second, after) = outcome.logs
        assert (first, second, outcome.result) == ("debug", "debug", {"x": 1})
        assert before == 'calls host with {"a": "ü"}'
        assert after.startswith("host succeeded after ")
        assert after.endswith(' s: {"x": 1}')

    def test_a_failure_is_told_and_raised(self, trial: Trial) -> None:
        seen: list[str] = []

        def look(outcome: Outcome) -> bool:
            seen.extend(text for _, text in outcome.logs)
            return False

        with pytest.raises(CallFailed):
            trial.run("core.log_calls", {}, next=Played(failure()), cancel=look)
        assert any("failed after" in text and "E.RUNNER.FAILURE: boom" in text for text in seen)


def test_outside_of_a_chain_they_say_where_they_belong(trial: Trial) -> None:
    for kind in ("core.cache", "core.log_calls"):
        with pytest.raises(ConfigurationError, match="wraps another node"):
            trial.run(kind, {})


class TestMemory:
    @pytest.fixture
    def memory(self, trial: Trial) -> Any:
        trial.run("core.noop", {})
        return sys.modules["astraflow_core.memory"]

    def test_the_result_that_was_used_longest_ago_gives_way(self, memory: Any) -> None:
        kept = memory.CachedResults(max_entries=2, max_bytes=100)
        kept.keep("a", "1", 10)
        kept.keep("b", "2", 10)
        assert kept.find("a", 0) == "1"
        kept.keep("c", "3", 10)
        assert [kept.find(key, 0) for key in "abc"] == ["1", None, "3"]

    def test_the_bytes_are_bounded_and_a_new_value_replaces_the_old(self, memory: Any) -> None:
        kept = memory.CachedResults(max_entries=10, max_bytes=10)
        kept.keep("a", "x" * 6, 10)
        kept.keep("a", "y" * 6, 10)
        assert kept.find("a", 0) == "y" * 6
        kept.keep("b", "z" * 5, 10)
        assert (kept.find("a", 0), len(kept)) == (None, 1)
        kept.keep("c", "w" * 11, 10)
        assert len(kept) == 0

    def test_a_result_is_gone_after_its_time(self, memory: Any) -> None:
        kept = memory.CachedResults()
        kept.keep("a", "1", 10)
        assert (kept.find("a", 9.9), kept.find("a", 10), len(kept)) == ("1", None, 0)

    def test_a_window_gives_each_call_the_first_time_that_is_free(self, memory: Any) -> None:
        windows = memory.CallWindows()
        waits = [windows.reserve("k", 2, 1.0, 0.0, None) for _ in range(5)]
        assert waits == [0, 0, 1.0, 1.0, 2.0]
        assert windows.reserve("other", 2, 1.0, 0.0, None) == 0
        assert windows.reserve("k", 2, 1.0, 10.0, None) == 0

    def test_the_number_of_keys_is_bounded(self, memory: Any) -> None:
        windows = memory.CallWindows(max_keys=3)
        for key in range(10):
            windows.reserve(key, 1, 1.0, 0.0, None)
        assert len(windows) == 3
