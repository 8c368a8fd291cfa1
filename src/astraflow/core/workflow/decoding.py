"""From bytes to typed documents, with every problem of shape reported.

The fast way is one typed decode. msgspec stops at the first value of the wrong shape and does not
say which item of a list it was in, so a document that fails is taken apart and its parts are
decoded one by one: slower, and only for documents that are refused.

Refused besides, because a store or a peer could not hold them: bytes that are not UTF-8 (msgspec
does not look inside what it skips), U+0000, and nesting beyond what a decoder can follow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from astraflow.core.errors import PKG_INVALID, WORKFLOW_INVALID, WORKFLOW_LIMIT
from astraflow.core.workflow.definition import Edge, NodeSpec, WorkflowDocument, WorkflowSpec
from astraflow.core.workflow.limits import MAX_DEFINITION_BYTES, MAX_MANIFEST_BYTES
from astraflow.core.workflow.manifest import Adapter, Manifest, ManifestBody, ManifestNode
from astraflow.core.workflow.problems import DefinitionProblem, InvalidDocument, Problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.errors import Code

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_AT: Final = re.compile(r" - at `\$([^`]*)`$", re.DOTALL)

_WORKFLOW: Final = msgspec.json.Decoder(WorkflowSpec)
_MANIFEST: Final = msgspec.json.Decoder(ManifestBody)
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_ITEMS: Final = msgspec.json.Decoder(list[Raw])

# The least that a document of each kind holds: one field at a time is tried in its place.
_LEAST_WORKFLOW: Final = {"id": b'""', "nodes": b"[]"}
_LEAST_MANIFEST: Final = {"name": b'""', "version": b'""', "schemaVersion": b'""'}
_WORKFLOW_LISTS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "nodes": msgspec.json.Decoder(NodeSpec),
    "edges": msgspec.json.Decoder(Edge),
}
_MANIFEST_LISTS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "nodes": msgspec.json.Decoder(ManifestNode),
    "adapters": msgspec.json.Decoder(Adapter),
}


def decode_definition(raw: bytes) -> WorkflowDocument:
    """Decode a workflow definition. Next: `validate` it, or `plan_workflow`, which validates.

    Raises:
        InvalidDocument: a `Refused` with all problems of shape.
    """
    _check_bytes(raw, MAX_DEFINITION_BYTES, WORKFLOW_INVALID)
    try:
        return WorkflowDocument(raw, _WORKFLOW.decode(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        problems = Problems()
        _take_apart(raw, error, _WORKFLOW, _LEAST_WORKFLOW, _WORKFLOW_LISTS, problems)
    raise InvalidDocument(WORKFLOW_INVALID, problems.found())


class DraftHead(msgspec.Struct, frozen=True, gc=False):
    """All that a draft must have: the id of its workflow. `name` is empty where it has none yet."""

    id: str
    name: str


def decode_draft(raw: bytes) -> DraftHead:
    """Read the head of a draft: a JSON object with an id. Whatever else is wrong with it is said when it is published.

    Raises:
        InvalidDocument: it is not even that.
    """
    _check_bytes(raw, MAX_DEFINITION_BYTES, WORKFLOW_INVALID)
    problems = Problems()
    found: Any = None
    try:
        found = msgspec.json.decode(raw)
    except RecursionError:
        problems.add("", WORKFLOW_LIMIT, "the document is nested too deeply")
    except msgspec.DecodeError as broken:
        problems.add("", WORKFLOW_INVALID, f"the document cannot be read: {broken}")
    if isinstance(found, dict) and isinstance(found.get("id"), str):
        metadata = found.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return DraftHead(found["id"], name if isinstance(name, str) else "")
    if not problems.count:
        problems.add("", WORKFLOW_INVALID, "a draft is a JSON object with the id of its workflow")
    raise InvalidDocument(WORKFLOW_INVALID, problems.found())


def decode_manifest(raw: bytes) -> Manifest:
    """Decode a package manifest. Next: `validate_manifest`.

    Raises:
        InvalidDocument: a `Refused` with all problems of shape.
    """
    _check_bytes(raw, MAX_MANIFEST_BYTES, PKG_INVALID)
    try:
        return Manifest(raw, _MANIFEST.decode(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        problems = Problems(only=PKG_INVALID)
        _take_apart(raw, error, _MANIFEST, _LEAST_MANIFEST, _MANIFEST_LISTS, problems)
    raise InvalidDocument(PKG_INVALID, problems.found())


def _check_bytes(raw: bytes, limit: int, code: Code) -> None:
    if len(raw) > limit:
        code = WORKFLOW_LIMIT if code is WORKFLOW_INVALID else code
        message = f"the document is larger than {limit} bytes: {len(raw)}"
        raise InvalidDocument(code, [DefinitionProblem("", code.code, message)])
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            message = f"the document is not UTF-8 at byte {error.start}"
            raise InvalidDocument(code, [DefinitionProblem("", code.code, message)]) from None
    if b"\\u0000" in raw and _NUL.search(raw):
        message = "the document holds the character U+0000"
        raise InvalidDocument(code, [DefinitionProblem("", code.code, message)])


def _take_apart(
    raw: bytes,
    error: Exception,
    whole: msgspec.json.Decoder[Any],
    least: Mapping[str, bytes],
    lists: Mapping[str, msgspec.json.Decoder[Any]],
    problems: Problems,
) -> None:
    try:
        fields = _FIELDS.decode(raw)
        for name in least:
            if name not in fields:
                problems.add("", WORKFLOW_INVALID, f"a required field is missing: {name}")
        for name, value in fields.items():
            if name in lists:
                _try_items(value, lists[name], f"/{name}", problems)
            else:
                _try(_join({**least, name: bytes(value)}), whole, "", problems)
    except RecursionError:
        problems.add("", WORKFLOW_LIMIT, "the document is nested too deeply")
    except msgspec.DecodeError as broken:
        problems.add("", WORKFLOW_INVALID, f"the document cannot be read: {broken}")
    if not problems.count:
        # A field that is there twice: the first was wrong, and taken apart only the last is seen.
        _report(error, "", problems)


def _join(fields: Mapping[str, bytes]) -> bytes:
    rows = (msgspec.json.encode(name) + b":" + value for name, value in fields.items())
    return b"{" + b",".join(rows) + b"}"


def _try_items(
    value: Raw, item: msgspec.json.Decoder[Any], pointer: str, problems: Problems
) -> None:
    try:
        items = _ITEMS.decode(value)
    except msgspec.DecodeError as error:
        _report(error, pointer, problems)
        return
    for place, raw in enumerate(items):
        _try(raw, item, f"{pointer}/{place}", problems)


def _try(
    raw: bytes | Raw, decoder: msgspec.json.Decoder[Any], pointer: str, problems: Problems
) -> None:
    try:
        decoder.decode(raw)
    except msgspec.DecodeError as error:
        _report(error, pointer, problems)


def _report(error: Exception, pointer: str, problems: Problems) -> None:
    text = str(error)
    problems.add(pointer + _pointer(text), WORKFLOW_INVALID, _reason(text))


def _pointer(text: str) -> str:
    """The pointer in msgspec's message, as far as it can be known: it names no list index."""
    match = _AT.search(text)
    names = match[1].split(".")[1:] if match is not None else []
    pointer = ""
    for name in names:
        field, bracket, _ = name.partition("[")
        pointer += f"/{field}"
        if bracket:
            break
    return pointer


def _reason(text: str) -> str:
    reason = _AT.sub("", text)
    return reason[:1].lower() + reason[1:]
