"""Say which modules of the core are compiled where this runs; exit 1 if one of the list is not.

    PYTHONPATH=build/compiled/site python scripts/check_compiled.py

It looks in this process, and in one with the environment that the tests give to schedulers and workers.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SUFFIX: Final = ".so"


def main() -> int:
    names = (ROOT / "compiled-modules.txt").read_text().split()
    places = {name: str(importlib.import_module(name).__file__) for name in names}
    pure = [name for name, place in places.items() if not place.endswith(SUFFIX)]
    if pure:
        print("not compiled:", *pure, sep="\n  ", file=sys.stderr)
        return 1
    if "--child" in sys.argv:
        return 0
    print(f"{len(names)} modules are compiled:", *names, sep="\n  ")
    sys.path.insert(0, str(ROOT))
    from tests.processes.process import clean_environment

    again = [sys.executable, str(Path(__file__).resolve()), "--child"]
    return subprocess.run(again, env=clean_environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
