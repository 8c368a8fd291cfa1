"""schemathesis against the served application: whatever is sent, the answer is one that the description allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from astraflow.api.app import ROUTES
from astraflow.api.openapi import document
from tests.api.rig import definition
from tests.processes.rest import TOKEN
from tests.processes.system import System, running

schema = schemathesis.openapi.from_dict(document(ROUTES))
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """With a run, a workflow and a worker in it."""
    with running(tmp_path_factory.mktemp("contract"), 1) as system:
        system.rest.post("workflows", definition(), wanted=201)
        system.rest.submit(definition())
        yield system


# An open stream does not end by itself: the streams have tests of their own.
@schema.exclude(path=["/api/v1/events", "/api/v1/stream"]).parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_description_allows(case: Any, system: System) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = case.call(base_url=system.url, headers=headers)
    case.validate_response(answer, checks=CHECKS)
