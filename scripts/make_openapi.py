"""Write docs/api/v1/openapi.yaml from the routes and their structs, or check that it is fresh.

    python scripts/make_openapi.py            write it
    python scripts/make_openapi.py --check    exit 1 if it differs from what would be written

The YAML is of the plainest kind: block style, every text in double quotes as JSON writes it. It needs no library to be
written, and every reader of YAML 1.2 understands it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from astraflow.api.app import ROUTES
from astraflow.api.openapi import document

PATH: Final = Path(__file__).resolve().parent.parent / "docs" / "api" / "v1" / "openapi.yaml"
MADE_BY: Final = "# Made by scripts/make_openapi.py. Do not edit.\n"

# A key that YAML could take for something else (a number, a truth value, a null) is quoted.
_PLAIN: Final = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z$][A-Za-z0-9_./-]*")


def yaml_text() -> str:
    """The whole file."""
    return MADE_BY + "\n".join(_lines(document(ROUTES), "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _entry(f"{indent}{_key(key)}:", member, indent + "  ")
    else:
        for member in value:
            yield from _entry(f"{indent}-", member, indent + "  ")


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and value:
        yield head
        yield from _lines(value, indent)
    else:
        yield f"{head} {json.dumps(value, ensure_ascii=False)}"


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="make docs/api/v1/openapi.yaml from the code")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    text = yaml_text()
    if not parser.parse_args().check:
        PATH.parent.mkdir(parents=True, exist_ok=True)
        PATH.write_text(text)
        return 0
    if PATH.is_file() and PATH.read_text() == text:
        return 0
    print("docs/api/v1/openapi.yaml is not what the code says; run: make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
