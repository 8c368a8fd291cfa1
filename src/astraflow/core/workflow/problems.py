"""Problems of a document: all of them, as JSON pointers, bounded.

A person who has to fix a workflow wants the whole list, not the first entry. A machine that sends
nonsense gets a bounded answer: at most `MAX_PROBLEMS` entries, the last of which counts the rest.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from astraflow.core.errors import WORKFLOW_BAD_TEXT, WORKFLOW_LIMIT, Refused
from astraflow.core.workflow.limits import MAX_PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized

    from astraflow.core.errors import Code

MAX_COMPARED: Final = 500
MAX_SUGGESTIONS: Final = 10
"""Of one document: each name that is compared takes some ten microseconds."""

# Controls other than tab and line ends, and the characters that turn the direction of text round,
# with which one label can be made to look like another.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def pointer_token(name: str) -> str:
    """A name as a token of a JSON pointer (RFC 6901 §4)."""
    return name.replace("~", "~0").replace("/", "~1")


class DefinitionProblem(Struct, frozen=True, gc=False):
    """One thing to fix. `pointer` is a JSON pointer (RFC 6901) into the document."""

    pointer: str
    code: str
    message: str
    members: tuple[str, ...] = ()
    """The ids of the nodes that it is about, if it is about several."""


class InvalidDocument(Refused):
    """The definition or manifest has problems; `problems` lists them."""

    def __init__(self, code: Code, problems: Sequence[DefinitionProblem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            code,
            f"{first.message}{more}",
            pointer=first.pointer,
            detail={"problems": [_as_json(problem) for problem in problems]},
        )
        self.problems = tuple(problems)


def _as_json(problem: DefinitionProblem) -> dict[str, str]:
    return {"pointer": problem.pointer, "code": problem.code, "message": problem.message}


class Problems:
    """Collects problems; keeps the first ones and counts the others.

    With `only`, every problem carries that code: all that can be wrong with a manifest is one code,
    and the pointer says the rest.
    """

    __slots__ = ("_found", "_only", "_suggested", "count")

    def __init__(self, only: Code | None = None) -> None:
        self._found: list[DefinitionProblem] = []
        self._only = only
        self._suggested = 0
        self.count = 0

    def add(self, pointer: str, code: Code, message: str, members: tuple[str, ...] = ()) -> None:
        self.count += 1
        if len(self._found) < MAX_PROBLEMS:
            self._found.append(
                DefinitionProblem(pointer, (self._only or code).code, message, members)
            )

    def did_you_mean(self, given: str, known: Iterable[str]) -> str:
        """Words behind a message about a name that nobody knows; empty if no known one is like it."""
        self._suggested += 1
        if self._suggested > MAX_SUGGESTIONS:
            return ""
        near = get_close_matches(given[:80], islice(known, MAX_COMPARED), n=1, cutoff=0.6)
        return f"; did you mean {near[0]!r}?" if near else ""

    def check_text(self, pointer: str, text: str, limit: int) -> None:
        """Report a text that is too long or that holds characters nobody can see."""
        if len(text) > limit:
            message = f"the text is longer than {limit} characters: {len(text)}"
            self.add(pointer, WORKFLOW_LIMIT, message)
        elif not text.isprintable() and _UNSEEN.search(text):
            message = "the text holds control or direction characters"
            self.add(pointer, WORKFLOW_BAD_TEXT, message)

    def check_key(self, pointer: str, text: str, limit: int) -> None:
        """As `check_text`, for a text that must not be empty."""
        if text:
            self.check_text(pointer, text, limit)
        else:
            self.add(pointer, WORKFLOW_BAD_TEXT, "the text is empty")

    def check_count(self, pointer: str, items: Sized, limit: int, what: str = "items") -> bool:
        """Report a list that is too long; whether it is not."""
        if len(items) > limit:
            message = f"there are more than {limit} {what}: {len(items)}"
            self.add(pointer, WORKFLOW_LIMIT, message)
        return len(items) <= limit

    def found(self) -> list[DefinitionProblem]:
        """The problems in the order they were found, at most `MAX_PROBLEMS`."""
        if self.count <= MAX_PROBLEMS:
            return list(self._found)
        kept = self._found[: MAX_PROBLEMS - 1]
        rest = self.count - len(kept)
        code = self._only or WORKFLOW_LIMIT
        return [*kept, DefinitionProblem("", code.code, f"and {rest} more")]
