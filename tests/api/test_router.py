from __future__ import annotations

import pytest

from astraflow.api.queries import QueryDecoder
from astraflow.api.router import Router
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.runs import ListRuns, ShowRun
from astraflow.core.errors import Refused


def router() -> Router[str]:
    made: Router[str] = Router()
    for method, path in (
        ("GET", "/"),
        ("GET", "/runs"),
        ("POST", "/runs"),
        ("GET", "/runs/{runId}"),
        ("GET", "/runs/{runId}/nodes/{nodeId}"),
        ("POST", "/runs/validate"),
        ("PUT", "/packages/{name}/active"),
        ("GET", "/packages/{name}/{version}"),
    ):
        made.add(method, path, f"{method} {path}")
    made.add("GET", "/files/{id}", "a file", is_deep=True)
    made.add("GET", "/files", "files")
    return made


@pytest.mark.parametrize(
    ("path", "target", "params"),
    [
        ("/", "GET /", {}),
        ("/runs", "GET /runs", {}),
        ("/runs/", "GET /runs", {}),
        ("//runs", "GET /runs", {}),
        ("/runs/a", "GET /runs/{runId}", {"runId": "a"}),
        ("/runs/a/nodes/b", "GET /runs/{runId}/nodes/{nodeId}", {"runId": "a", "nodeId": "b"}),
        ("/packages/a/1", "GET /packages/{name}/{version}", {"name": "a", "version": "1"}),
        ("/files", "files", {}),
        ("/files/", "files", {}),
        ("/files/a/b/c", "a file", {}),
    ],
)
def test_a_path_leads_to_its_target(path: str, target: str, params: dict[str, str]) -> None:
    assert router().find(path, "GET") == (target, params)


@pytest.mark.parametrize("path", ["/nothing", "/runs/a/b", "/runs/a/nodes", "/filesx", "/packages"])
def test_other_paths_lead_nowhere(path: str) -> None:
    assert router().find(path, "GET") is None
    assert router().methods(path) == {}


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/runs", {"GET", "POST"}), ("/runs/validate", {"POST"}), ("/packages/a/active", {"PUT"})],
)
def test_a_fixed_segment_wins_over_a_parameter_whatever_the_method(
    path: str, methods: set[str]
) -> None:
    assert router().methods(path).keys() == methods
    assert router().find(path, "DELETE") is None


def test_a_query_is_decoded_into_its_struct() -> None:
    decoder = QueryDecoder(ListRuns)
    assert decoder.decode(b"") == ListRuns()
    assert decoder.decode(b"limit=7&status=failed&workflowId=null&cursor=") == ListRuns(
        limit=7, status="failed", workflow_id="null"
    )
    assert decoder.decode(b"status=") == ListRuns()
    assert QueryDecoder(ShowRun).decode(b"nodes=false") == ShowRun(nodes=False)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        (b"limit=0", "limit"),
        (b"limit=", "limit"),
        (b"limit=1&limit=2", "limit"),
        (b"status=null", "status"),
        (b"workflowId=" + b"x" * 257, "workflowId"),
        (b"workflow_id=x", "workflow_id"),
    ],
)
def test_a_parameter_that_is_refused_is_named(query: bytes, parameter: str) -> None:
    with pytest.raises(Refused) as refused:
        QueryDecoder(ListRuns).decode(query)
    assert refused.value.detail == {"parameter": parameter}
    assert parameter in refused.value.message


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (b"limit=x", "a whole number"),
        (b"limit=0", "a whole number of at least 1"),
        (b"status=odd", "one of cancelled, failed, queued, running, succeeded"),
        (b"workflowId=" + b"x" * 257, "a text of at most 256 characters"),
    ],
)
def test_a_refusal_says_what_the_parameter_must_be(query: bytes, rule: str) -> None:
    with pytest.raises(Refused, match=f"^[^ ]+ the parameter must be {rule}: "):
        QueryDecoder(ListRuns).decode(query)


def test_a_flag_is_true_or_false() -> None:
    with pytest.raises(Refused, match="must be true or false: nodes"):
        QueryDecoder(ShowRun).decode(b"nodes=maybe")


def test_a_route_without_parameters_takes_none() -> None:
    with pytest.raises(Refused, match=r"no query parameter of this name: a$"):
        QueryDecoder(NoQuery).decode(b"a=1")
