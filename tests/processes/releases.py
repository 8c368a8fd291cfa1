"""The releases after this one: copies of the product whose schema and facts have something more, as theirs will.

Release 1 is the next one. Its schema has one column more, which this release can do without; it reads facts of one
version more, and writes with each run which release has accepted it, once it may. Release 2 is the one after that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import astraflow
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.statements import load_migrations
from tests.processes.process import ROOT

__all__ = ["LaterRelease"]

NEWEST = len(load_migrations("postgres"))


class LaterRelease:
    """One of them. `environ` makes a process run it; that of release 0 is empty: it is this one."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.version = f"99.{number}.0" if number else astraflow.__version__
        self.facts_version = FACTS_VERSION + number
        self.environ = {"PYTHONPATH": str(folder)} if number else {}
        self._code = folder / "astraflow"

    def make(self) -> LaterRelease:
        shutil.copytree(ROOT / "src" / "astraflow", self._code)
        self._edit(
            "__init__.py",
            f'__version__ = "{astraflow.__version__}"',
            f'__version__ = "{self.version}"',
        )
        self._migrate()
        constant = "FACTS_VERSION: Final = "
        self._edit(
            "core/facts_version.py",
            f"{constant}{FACTS_VERSION}\n",
            f"{constant}{self.facts_version}\n",
        )
        facts = "core/runs/facts.py"
        self._edit(facts, "from typing import Final,", "from typing import ClassVar, Final,")
        last = '    trigger: str = ""\n'
        field = (
            f'    newer_fields: ClassVar[Mapping[str, int]] = {{"release": {self.facts_version}}}\n'
        )
        self._edit(facts, last, f'{last}    release: str = ""\n{field}')
        self._edit(
            "core/engine/intake.py",
            "        request.trigger,\n",
            f'        request.trigger,\n        "{self.version}" if view.may_write({self.facts_version}) else "",\n',
        )
        return self

    @property
    def mark(self) -> str:
        """What is in the facts of a run that it has accepted."""
        return f'"release":"{self.version}"'

    def _migrate(self) -> None:
        """Each release has a migration, which those before it can do without."""
        for number in range(1, self.number + 1):
            version = NEWEST + number
            text = (
                f"-- readable by schema: {NEWEST}\n"
                f"ALTER TABLE runs ADD COLUMN release_{number} {{text}} NOT NULL DEFAULT '';\n"
            )
            (self._code / f"store/sql/migrations/{version:04}_release.sql").write_text(text)

    def _edit(self, name: str, before: str, after: str) -> None:
        path = self._code / name
        text = path.read_text()
        assert text.count(before) == 1, (name, before)
        path.write_text(text.replace(before, after))
