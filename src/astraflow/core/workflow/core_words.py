"""What the nodes of package `core` are called and drawn with: words for people, apart from what the nodes do."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

COLORS: Final = {
    "Flow": "#4263eb",
    "Text": "#0b7a86",
    "Code": "#7a4f9a",
    "Web": "#1a7f45",
    "Files": "#9a6700",
    "People": "#c7362f",
    "Middleware": "#6b7280",
}
"""By category."""

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+")
_UNITS: Final = {"ms": "(ms)", "bytes": "(bytes)", "seconds": "(s)"}


class NodeWords(NamedTuple):
    """The icon is a name of Tabler's set."""

    icon: str
    description: str
    help: str = ""
    """Markdown."""


NODE_WORDS: Final = {
    "noop": NodeWords("circle", "Does nothing. Use it to join or to name a point in the flow."),
    "echo": NodeWords("repeat", "Returns the value that it is given."),
    "sleep": NodeWords("moon", "Waits on a worker for a number of seconds."),
    "fail": NodeWords(
        "alert-triangle",
        "Fails on purpose, to try retries and error ports.",
        "With `times`, the first attempts fail and the next one succeeds.",
    ),
    "log": NodeWords("file-text", "Writes a line to the log of the run."),
    "stream": NodeWords("wave-sine", "Writes a text word by word, as a language model does."),
    "template": NodeWords(
        "template",
        "Fills a template with values.",
        "`{{ name }}` in the template becomes the value of that name.",
    ),
    "python": NodeWords(
        "brand-python",
        "Runs a Python function.",
        "Define `main`. It is called with the inputs by name:\n\n```python\ndef main(a, b):\n    return a + b\n```",
    ),
    "http": NodeWords("world", "Sends an HTTP request, and returns status, headers and body."),
    "file": NodeWords("file-plus", "Makes a file of a size or with a text."),
    "read_file": NodeWords("file-search", "Reads a file, and returns its size and its digest."),
    "if": NodeWords("git-branch", "Goes on at `true` or at `false`, as the condition says."),
    "switch": NodeWords("arrows-split", "Goes on at the port of the case that fits."),
    "container": NodeWords("box", "Holds a part of the workflow together."),
    "call": NodeWords("arrow-forward-up", "Runs another saved workflow, and returns its outputs."),
    "wait": NodeWords("hourglass", "Waits for a time, without a worker."),
    "approval": NodeWords("user-check", "Waits until somebody approves or rejects."),
    "signal": NodeWords("bell", "Waits for a message from outside."),
    "retry": NodeWords("refresh", ""),
    "cache": NodeWords("bolt", ""),
    "rate_limit": NodeWords("gauge", ""),
    "timeout": NodeWords("clock-stop", ""),
    "loop": NodeWords("repeat-once", ""),
    "log_calls": NodeWords("list-details", ""),
}
"""By the name of the node. Middlewares say themselves what they do."""


def label_of(key: str) -> str:
    """A key as people read it: `timeoutSeconds` is `Timeout (s)`."""
    first, *rest = (one.lower() for one in _WORD.findall(key))
    shown = "URL" if first == "url" else first.capitalize()
    return " ".join((shown, *(_UNITS.get(one, one) for one in rest)))
