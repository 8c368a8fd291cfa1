"""The inputs of a run: what the workflow declares, and what a submission gives.

Rules:
1. Only declared inputs are taken; all problems of a submission are reported together, each with its pointer.
2. An input that is not given has its default. One that is required and has none must be given.
3. A value fits the schema of its input as it is: nothing is converted.
4. What a run is started with is kept with it, defaults included: a later version of the workflow changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from astraflow.core.errors import WORKFLOW_INPUT, WORKFLOW_LIMIT
from astraflow.core.workflow.limits import MAX_INPUTS_BYTES
from astraflow.core.workflow.parameters import find_unfit
from astraflow.core.workflow.plan import DeclaredInput
from astraflow.core.workflow.problems import InvalidDocument, Problems, pointer_token
from astraflow.core.workflow.schema_rules import check_schema
from astraflow.core.workflow.value_schemas import Violation, compile_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astraflow.core.errors import Code
    from astraflow.core.workflow.definition import RunInput, WorkflowSpec


def declared_inputs(workflow: WorkflowSpec) -> tuple[DeclaredInput, ...]:
    """The inputs of a sound workflow, in the order of the definition."""
    return tuple(
        DeclaredInput(name, schema_of(one), default_of(one), one.required)
        for name, one in workflow.inputs.items()
    )


def schema_of(declared: RunInput) -> bytes:
    return b"" if declared.schema is None else msgspec.json.encode(declared.schema)


def default_of(declared: RunInput) -> bytes:
    """As everywhere in a definition, null is the same as nothing."""
    raw = bytes(declared.default)
    return b"" if raw == b"null" else raw


def check_declared(inputs: Mapping[str, RunInput], problems: Problems) -> None:
    """Report schemas that are none, and defaults that do not fit theirs."""
    for name, one in inputs.items():
        pointer, schema, default = f"/inputs/{pointer_token(name)}", schema_of(one), default_of(one)
        refusal = _unfit(default) if default else None
        if refusal is not None:
            problems.add(f"{pointer}/default", *refusal)
            continue
        if not schema or not check_schema(problems, f"{pointer}/schema", schema) or not default:
            continue
        for found in _violations(schema, default):
            problems.add(f"{pointer}/default{found.pointer}", WORKFLOW_INPUT, found.message)


def take_inputs(declared: Sequence[DeclaredInput], given: Raw) -> Raw:
    """The inputs that a run is started with: those that are given, and the defaults of the others.

    Raises:
        InvalidDocument: with a pointer to everything that is not declared, is missing or does not fit.
    """
    if not declared and bytes(given) == b"{}":
        return given
    problems = Problems()
    refusal = _unfit(bytes(given))
    if refusal is not None:
        problems.add("/inputs", *refusal)
        raise InvalidDocument(WORKFLOW_INPUT, problems.found())
    values = msgspec.json.decode(given, type=dict[str, Raw])
    known = {one.name: one for one in declared}
    for name in values:
        if name not in known:
            near = problems.did_you_mean(name, known)
            message = f"the workflow declares no input of this name: {name[:80]!r}{near}"
            problems.add(f"/inputs/{pointer_token(name[:80])}", WORKFLOW_INPUT, message)
    for one in declared:
        _take(one, values, problems)
    if problems.count:
        raise InvalidDocument(WORKFLOW_INPUT, problems.found())
    # On one line: that is how facts are stored, and a definition may be written on many.
    return Raw(msgspec.json.format(msgspec.json.encode(values), indent=-1))


def _take(declared: DeclaredInput, values: dict[str, Raw], problems: Problems) -> None:
    name, pointer = declared.name, f"/inputs/{pointer_token(declared.name)}"
    if name in values:
        found = _violations(declared.schema, bytes(values[name])) if declared.schema else []
        for one in found:
            problems.add(f"{pointer}{one.pointer}", WORKFLOW_INPUT, one.message)
    elif declared.default:
        values[name] = Raw(declared.default)
    elif declared.is_required:
        problems.add(pointer, WORKFLOW_INPUT, "the input is required and missing")


def _unfit(given: bytes) -> tuple[Code, str] | None:
    if len(given) > MAX_INPUTS_BYTES:
        message = f"the inputs are larger than {MAX_INPUTS_BYTES} bytes: {len(given)}"
        return WORKFLOW_LIMIT, message
    try:
        return find_unfit(msgspec.json.decode(given))
    except (msgspec.DecodeError, RecursionError) as error:
        return WORKFLOW_INPUT, f"the inputs cannot be read: {str(error)[:80]}"


def _violations(schema: bytes, value: bytes) -> list[Violation]:
    return compile_schema(schema).violations(msgspec.json.decode(value))
