"""Write the blocking client from the asynchronous one, or check that it is fresh.

    python scripts/make_blocking_client.py            write it
    python scripts/make_blocking_client.py --check    exit 1 if it differs from what would be written

The method is that of unasync: `async` and `await` go, and names are replaced by their blocking counterparts. ruff puts
the imports in order and formats the result.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "astraflow" / "client"
RUFF: Final = Path(sys.executable).with_name("ruff")
FILES: Final = {
    "asynchronous.py": "blocking.py",
}
DOCSTRINGS: Final = {
    "blocking.py": '"""`Client`: for programs without an event loop. Made by `make client`: do not edit."""',
}
WORDS: Final = {
    "async ": "",
    "await ": "",
    "AsyncGenerator[Any, None]": "Generator[Any, None, None]",
    "AsyncGenerator[StreamItem, None]": "Generator[StreamItem, None, None]",
    "Async": "",
    "asynchronous": "blocking",
    "asyncio": "time",
    "aclosing": "closing",
    "aclose": "close",
    "aread_pieces": "read_pieces",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}
"""Longer words first where one is a part of another."""
_AWAITABLE: Final = re.compile(r"Awaitable\[((?:[^\[\]]|\[[^\]]*\])*)\]")
_DOCSTRING: Final = re.compile(r'\A""".*?"""', re.DOTALL)


def blocking(source: str, name: str) -> str:
    """The blocking counterpart of a module."""
    text = _DOCSTRING.sub(lambda _: DOCSTRINGS[name], source, count=1)
    text = _AWAITABLE.sub(r"\1", text)
    for word, other in WORDS.items():
        text = text.replace(word, other)
    text = _ruff(
        text, name, "check", "--quiet", "--select", "I,F401,UP028", "--fix", "--unsafe-fixes"
    )
    return _ruff(text, name, "format", "--quiet")


def _ruff(text: str, name: str, *command: str) -> str:
    path = str(FOLDER / name)
    done = subprocess.run(
        [str(RUFF), *command, "--stdin-filename", path, "-"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description="make the blocking client from the asynchronous one"
    )
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    is_check = parser.parse_args().check
    found = 0
    for source, name in FILES.items():
        text = blocking((FOLDER / source).read_text(), name)
        path = FOLDER / name
        if not is_check:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            print(
                f"src/astraflow/client/{name} is not up to date; run: make client", file=sys.stderr
            )
            found = 1
    return found


if __name__ == "__main__":
    raise SystemExit(main())
