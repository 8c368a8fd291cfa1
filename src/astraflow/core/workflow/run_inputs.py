"""The inputs of a run: what the workflow declares, and what a submission gives.

Rules:
1. Only declared inputs are taken; all problems of a submission are reported together, each with its pointer.
2. An input that is not given has its default. One that is required and has none must be given.
3. A value fits the schema of its input as it is: nothing is converted. What is stored by reference is
   taken to fit: the scheduler does not read it.
4. What a run is started with is kept with it, defaults included: a later version of the workflow changes nothing.
5. What a node gives to a workflow that it calls is held against the same rules twice: as its author wrote it, as far
   as no edge and no expression gives it, and when the call begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from astraflow.core.errors import WORKFLOW_INPUT, WORKFLOW_LIMIT
from astraflow.core.expressions.stored_value import is_stored_value
from astraflow.core.workflow.limits import MAX_INPUTS_BYTES
from astraflow.core.workflow.parameters import find_unfit
from astraflow.core.workflow.plan import DeclaredInput
from astraflow.core.workflow.problems import InvalidDocument, Problems, pointer_token
from astraflow.core.workflow.schema_rules import check_schema
from astraflow.core.workflow.value_schemas import Violation, compile_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from astraflow.core.errors import Code
    from astraflow.core.workflow.bindings import Path
    from astraflow.core.workflow.definition import RunInput, WorkflowSpec

INPUTS: Final = "inputs"
"""The parameter of a call that has the inputs of the other workflow."""
MISSING_INPUT: Final = "the input is required and missing"


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
    _check_names(values, known, "/inputs", problems)
    for one in declared:
        _take(one, values, problems)
    if problems.count:
        raise InvalidDocument(WORKFLOW_INPUT, problems.found())
    # On one line: that is how facts are stored, and a definition may be written on many.
    return Raw(msgspec.json.format(msgspec.json.encode(values), indent=-1))


def check_constants(
    declared: Sequence[DeclaredInput],
    parameters: bytes,
    wired: Sequence[Path],
    pointer: str,
    problems: Problems,
) -> None:
    """Report what the author of a call wrote and what the workflow that is called can never take. `wired`: the paths
    in the parameters that edges and items of a map write."""
    given = msgspec.json.decode(parameters).get(INPUTS, {})
    if not isinstance(given, dict) or () in wired or (INPUTS,) in wired:
        return  # an expression or an edge gives all of them; other values do not fit the schema of the node
    written = [path[1:] for path in wired if path[0] == INPUTS]
    _check_names(given, {one.name for one in declared}, f"{pointer}/{INPUTS}", problems)
    for one in declared:
        place = f"{pointer}/{INPUTS}/{pointer_token(one.name)}"
        inside = [path[1:] for path in written if path[0] == one.name]
        if one.name in given:
            value = given[one.name]
            if not one.schema or () in inside or is_stored_value(value):
                continue
            for found in compile_schema(one.schema).authored_violations(value, inside):
                problems.add(f"{place}{found.pointer}", WORKFLOW_INPUT, found.message)
        elif one.is_required and not one.default and not inside:
            problems.add(place, WORKFLOW_INPUT, MISSING_INPUT)


def _check_names(
    given: Iterable[str], known: Collection[str], pointer: str, problems: Problems
) -> None:
    for name in given:
        if name not in known:
            near = problems.did_you_mean(name, known)
            message = f"the workflow declares no input of this name: {name[:80]!r}{near}"
            problems.add(f"{pointer}/{pointer_token(name[:80])}", WORKFLOW_INPUT, message)


def _take(declared: DeclaredInput, values: dict[str, Raw], problems: Problems) -> None:
    name, pointer = declared.name, f"/inputs/{pointer_token(declared.name)}"
    if name in values:
        found = _violations(declared.schema, bytes(values[name])) if declared.schema else []
        for one in found:
            problems.add(f"{pointer}{one.pointer}", WORKFLOW_INPUT, one.message)
    elif declared.default:
        values[name] = Raw(declared.default)
    elif declared.is_required:
        problems.add(pointer, WORKFLOW_INPUT, MISSING_INPUT)


def _unfit(given: bytes) -> tuple[Code, str] | None:
    if len(given) > MAX_INPUTS_BYTES:
        message = f"the inputs are larger than {MAX_INPUTS_BYTES} bytes: {len(given)}"
        return WORKFLOW_LIMIT, message
    try:
        return find_unfit(msgspec.json.decode(given))
    except (msgspec.DecodeError, RecursionError) as error:
        return WORKFLOW_INPUT, f"the inputs cannot be read: {str(error)[:80]}"


def _violations(schema: bytes, value: bytes) -> list[Violation]:
    decoded = msgspec.json.decode(value)
    return [] if is_stored_value(decoded) else compile_schema(schema).violations(decoded)
