"""Every route is answered alike by every node, about runs of every lane: whichever node is asked, the answer is the
same. All operations of the description are asked, so that none is forgotten that comes later."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from astraflow.api.app import ROUTES
from astraflow.api.openapi import document
from tests.chaos.test_lanes import Site, key_of, site
from tests.compat.make_store import stable
from tests.definitions import link, node, workflow

__all__ = ["site"]

STREAMS: Final = ("/api/v1/events", "/api/v1/stream")
"""They do not end; `test_feeds` has them."""
OF_THE_NODE: Final = ("/healthz", "/readyz", "/metrics", "/api/v1/about")
"""What a node says of itself."""
ONCE: Final = ("/api/v1/auth/", "/api/v1/tokens/renew", "/api/v1/secrets/rotate-key")
"""What changes with each request."""
ASKS: Final = ("get", "head")


class Request(NamedTuple):
    """An operation with values for what is in its path."""

    method: str
    path: str


def operations() -> Iterator[Request]:
    for path, methods in document(ROUTES)["paths"].items():
        for method in methods:
            if method in (*ASKS, "post", "put", "patch", "delete"):
                yield Request(method, path)


def filled(request: Request, known: dict[str, str]) -> Request:
    """With what exists where the request only reads, else with what does not."""

    def value(found: re.Match[str]) -> str:
        missing = f"no-such-{found[1].lower()}"
        return known.get(found[1], missing) if request.method in ASKS else missing

    return Request(request.method, re.sub(r"\{(\w+)\}", value, request.path))


def is_asked(request: Request) -> bool:
    return not request.path.startswith((*STREAMS, *OF_THE_NODE, *ONCE))


def answer_of(site: Site, number: int, request: Request) -> tuple[Any, ...]:
    """What is the same wherever it comes from."""
    body = None if request.method in ASKS else {"no": "such member"}
    answer = site.at(number).http.request(request.method.upper(), request.path, json=body)
    kind = answer.headers.get("content-type", "")
    is_json = kind.startswith(("application/json", "application/problem+json"))
    if request.method == "head" or not is_json:
        return answer.status_code, kind, len(answer.content)
    said = answer.json()
    if answer.status_code >= 400:
        return answer.status_code, said.get("code"), said.get("detail")
    return answer.status_code, kind, json.dumps(stable(said), sort_keys=True)


def _known(site: Site) -> Iterator[dict[str, str]]:
    """Values of paths, once for a run of each lane."""
    first = node("core.python", "first", parameters={"code": "def main():\n    print('a line')"})
    second = node("core.echo", "second", parameters={"value": 2})
    flow = workflow(first, second, edges=[link(first, second)])
    saved = site.at(0).http.post("/api/v1/workflows", json=flow)
    assert saved.status_code == 201, saved.text
    for lane in (0, 1):
        body = {"workflow": flow}
        headers = {"Idempotency-Key": key_of(lane, f"routes-{lane}")}
        made = site.at(0).http.post("/api/v1/runs", json=body, headers=headers).json()["runId"]
        assert site.at(1).finished(made)["status"] == "succeeded"
        assert site.lane_of_runs()[made] == lane
        yield {
            "runId": made, "first": made, "second": made, "nodeId": second["id"], "id": flow["id"],
            "type": "core.echo", "tenant": "default", "name": "core",
        }  # fmt: skip


@pytest.mark.timeout(300)
def test_every_route_gives_the_same_answer_at_every_node(site: Site) -> None:
    site.start()
    asked = {
        filled(request, known)
        for known, request in itertools.product(list(_known(site)), operations())
        if is_asked(request)
    }
    assert len(asked) > 100
    found = {
        request: [answer_of(site, number, request) for number in (0, 1)]
        for request in sorted(asked)
    }
    assert {one: answers for one, answers in found.items() if answers[0] != answers[1]} == {}
    codes = {answers[0][0] for answers in found.values()}
    assert 200 in codes and 404 in codes
    assert not [one for one, answers in found.items() if answers[0][0] >= 500], "none breaks"
    assert not [one for one, answers in found.items() if answers[0][0] == 421], "none is left alone"


def test_the_operations_are_those_of_the_description() -> None:
    described = (Path(__file__).parents[2] / "docs/api/v1/openapi.yaml").read_text()
    assert {one.path for one in operations()} == set(
        re.findall(r'^  "(/[^"]*)":$', described, re.M)
    )
