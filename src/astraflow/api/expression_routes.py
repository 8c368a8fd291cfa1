"""Expressions, for who is writing them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, check_values, decode_json
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.expressions import EvaluateRequest, Evaluation
from astraflow.core.errors import Refused
from astraflow.core.ids import RunId
from astraflow.core.runs.previews import names_for, preview
from astraflow.core.security.policy import READ

_request: Final = msgspec.json.Decoder(EvaluateRequest)


class ExpressionEndpoints(Endpoints):
    """The endpoints under `/api/v1/expressions`."""

    @route(
        "POST",
        "/api/v1/expressions/evaluate",
        READ,
        "evaluateExpression",
        "evaluate an expression by the values of a run, or by given ones",
        tag="workflows",
        text="For a preview: nothing changes. An expression without a value is no error of the request: the response "
        "says why. Secrets and addresses of signals cannot be read. Limits are those of expressions in a run.",
        body=EvaluateRequest,
        replies=Evaluation,
    )
    async def evaluate(self, request: Request[NoQuery]) -> AsgiApp:
        wanted = decode_json(await request.json_body(), _request)
        given = b"{}" if wanted.names is UNSET else bytes(wanted.names)
        if not given.lstrip().startswith(b"{"):
            raise Refused(errors.REQUEST_INVALID, "must be an object", pointer="/names")
        check_values(given, "/names")
        names = msgspec.json.decode(given, type=dict[str, object])
        if wanted.run_id is None:
            return json_response(preview(wanted.expression, names))
        run = await self._scheduler.reader.get_record(request.tenant, RunId(wanted.run_id))
        all_names = names_for(run, wanted.node_id, wanted.nodes, names)
        return json_response(preview(wanted.expression, all_names))
