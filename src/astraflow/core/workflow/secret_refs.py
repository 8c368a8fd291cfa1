"""References to secrets in parameters: `{"secretRef": {"name": "openai"}}` in the place of a value, which may also be
written as the expression `=secrets.openai`.

Only what the author wrote counts: a reference that comes with a result of another node is a value like any other. The
value of a secret is in no definition, plan or fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.problems import pointer_token

KEY: Final = "secretRef"
MAX_SECRET_REFS: Final = 64
"""Different secrets of one node."""
_is_name: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}").fullmatch


class SecretRefs:
    """The references of one node: each name with the pointer to its first place, and the first that is malformed."""

    __slots__ = ("malformed", "places")

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.malformed: tuple[str, str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)


NO_REFS: Final = SecretRefs()


def is_secret_name(text: str) -> bool:
    return _is_name(text) is not None


def may_refer_to_secrets(text: bytes) -> bool:
    """Whether a JSON text is worth a look: a key can be spelt with escapes."""
    return b"secretRef" in text or b"secrets" in text or b"\\u" in text


def secret_of(written: str) -> str | None:
    """The name of the secret, if a text is an expression that is one and nothing else."""
    if not is_expression(written):
        return None
    root, dot, name = written[1:].strip().partition(".")
    return name if root == "secrets" and dot and is_secret_name(name) else None


def find_secret_refs(parameters: bytes) -> SecretRefs:
    """What sound parameters refer to, in either form."""
    if not may_refer_to_secrets(parameters):
        return NO_REFS
    found = SecretRefs()
    pending: list[tuple[str, Any]] = [("", msgspec.json.decode(parameters))]
    while pending:
        pointer, value = pending.pop()
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            if KEY in value:
                _take(found, pointer, value)
                continue
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        elif isinstance(value, str) and (name := secret_of(value)) is not None:
            _take(found, pointer, {KEY: {"name": name}})
        below = [(f"{pointer}/{pointer_token(str(key))}", one) for key, one in items]
        pending.extend(reversed(below))
    return found


def _take(found: SecretRefs, pointer: str, value: Mapping[str, Any]) -> None:
    ref = value[KEY]
    name = ref.get("name") if isinstance(ref, dict) and set(ref) == {"name"} else None
    if len(value) != 1 or not isinstance(name, str) or not is_secret_name(name):
        message = 'a reference to a secret is {"secretRef": {"name": "…"}} and nothing else'
        found.malformed = found.malformed or (pointer, message)
    elif len(found.places) >= MAX_SECRET_REFS and name not in found.places:
        message = f"a node can refer to at most {MAX_SECRET_REFS} secrets"
        found.malformed = found.malformed or (pointer, message)
    else:
        found.places.setdefault(name, pointer)
