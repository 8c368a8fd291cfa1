"""Say which modules of the core are compiled in a folder, and that worlds go the same way there as with the sources.

    python scripts/check_compiled.py build/compiled/site

Exits with 1 if a module of the list is not compiled, for us or for the processes that tests start; if the sources are
not pure; or if a simulated world went another way: its digest is made from every step.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SUFFIX: Final = ".so"
WHERE: Final = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""
WORLDS: Final = """
from tests.sim.shells.simulation import simulate_shells
from tests.sim.simulation import simulate
for seed in range(150):
    print("tier A", seed, simulate(seed).digest)
for seed in range(15):
    print("tier C", seed, simulate_shells(seed).digest)
"""


def lines_of(folder: Path, program: str, *arguments: str) -> list[str]:
    """What a program says that finds the product in this folder, with the environment that tests give to processes."""
    sys.path.insert(0, str(ROOT))
    from tests.processes.process import clean_environment

    environment = clean_environment(PYTHONPATH=str(folder), PYTHONHASHSEED="0")
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def main() -> int:
    compiled, sources = Path(sys.argv[1]).resolve(), ROOT / "src"
    names = (ROOT / "compiled-modules.txt").read_text().split()
    places = dict(zip(names, lines_of(compiled, WHERE, *names), strict=True))
    pure = [name for name, place in places.items() if not place.endswith(SUFFIX)]
    if pure:
        print("not compiled:", *pure, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{len(names)} modules are compiled:", *names, sep="\n  ")
    beside = [place for place in lines_of(sources, WHERE, *names) if place.endswith(SUFFIX)]
    if beside:
        print("compiled beside the sources:", *beside, sep="\n  ", file=sys.stderr)
        return 1
    ways = zip(lines_of(sources, WORLDS), lines_of(compiled, WORLDS), strict=True)
    other = [one for one, there in ways if one != there]
    if other:
        print("worlds that went another way:", *other, sep="\n  ", file=sys.stderr)
        return 1
    print("every world went the same way, compiled and not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
