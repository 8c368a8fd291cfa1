"""Workflows that are written in Python: a file that defines `workflow`, a flow of the builder or a definition.

The script runs in the process of the command, with the rights of whoever typed it, as `python FILE` would. It is read
from the disk of this machine only; no server ever runs it: a server gets the JSON that the script has made.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.builder import Flow
from astraflow.cli.inputs import WorkflowFile, read_definition, unreadable

SUFFIX: Final = ".py"
VARIABLE: Final = "workflow"
RUN_NAME: Final = "__workflow__"
"""`__name__` in the script: what stands under `if __name__ == "__main__"` is not run."""


def read_workflow(name: str) -> WorkflowFile:
    """Read a definition from a JSON file, or from a script that makes one.

    Raises:
        Refused: the file has none.
    """
    if not name.endswith(SUFFIX) or not Path(name).is_file():
        return read_definition(name)
    made = _run(Path(name)).get(VARIABLE)
    if callable(made):
        made = made()
    if isinstance(made, Flow):
        made = made.document()
    if not isinstance(made, dict):
        raise unreadable(
            f"{name} defines no workflow",
            hint="assign a Flow of astraflow.builder to the name `workflow`",
        )
    return WorkflowFile(msgspec.json.encode(made), made, {})


def _run(path: Path) -> dict[str, Any]:
    """Its names. What it prints is not a result of the command: it goes to stderr."""
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with redirect_stdout(sys.stderr):
            return runpy.run_path(str(path), run_name=RUN_NAME)
    except Exception as error:
        lines = traceback.format_exception_only(error)
        raise unreadable(f"{path} fails: {lines[-1].strip()}") from error
    finally:
        sys.path.remove(str(path.parent.resolve()))
