"""python -m tests.fuzz TARGET|all --seconds N [--runs N] [--seed N] [--plain]

Coverage-guided with atheris where it is installed, else a plain mutation loop. A finding is written
to tests/fuzz/corpus/TARGET/, where the tests will replay it for ever, and ends the program with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from random import Random

from tests.fuzz.mutation import mutant, mutants

IS_GUIDED = "--plain" not in sys.argv and importlib.util.find_spec("atheris") is not None
if IS_GUIDED:
    import atheris

    # What is imported here counts the branches it takes, which is what guides the fuzzer.
    with atheris.instrument_imports(include=["astraflow"]):
        from tests.fuzz.targets import KEPT, TARGETS, kept
else:
    from tests.fuzz.targets import KEPT, TARGETS, kept

ROOT = Path(__file__).resolve().parent.parent.parent
INPUT_SECONDS = 5
INPUT_BYTES = 16_384
MEMORY_MB = 2_048


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", choices=["all", *TARGETS])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=0, help="stop after so many inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=KEPT, help="where findings are written")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "fuzz", help="what was learnt")
    parser.add_argument("--plain", action="store_true", help="the mutation loop, without atheris")
    arguments = parser.parse_args()
    if arguments.target == "all":
        return max(_in_a_process_of_its_own(name) for name in TARGETS)
    return _guided(arguments) if IS_GUIDED else _plain(arguments)


def _in_a_process_of_its_own(name: str) -> int:
    """libFuzzer ends the process it runs in, and coverage is counted per process."""
    command = [sys.executable, "-m", "tests.fuzz", name, *sys.argv[2:]]
    return subprocess.run(command, check=False).returncode


def _plain(arguments: argparse.Namespace) -> int:
    target = TARGETS[arguments.target]
    inputs = mutants([*target.seeds(), *kept(arguments.target)], Random(arguments.seed))
    until = time.monotonic() + arguments.seconds
    for number in count(1):
        value = next(inputs)
        try:
            target.run(value)
        except Exception:
            print(f"finding: {_keep(arguments.keep / arguments.target, value)}", file=sys.stderr)
            raise
        if time.monotonic() > until or number == arguments.runs:
            print(f"{arguments.target}: {number} inputs, no finding")
            return 0
    raise AssertionError("unreachable")


def _guided(arguments: argparse.Namespace) -> int:
    target = TARGETS[arguments.target]
    corpus = [*target.seeds(), *kept(arguments.target)]

    def change(value: bytes, max_size: int, seed: int) -> bytes:
        """Half of the changes are ours, which know JSON; half are libFuzzer's, which know nothing."""
        if seed % 2:
            return bytes(atheris.Mutate(value, max_size))
        return mutant(value, corpus, Random(seed))[:max_size]

    # libFuzzer adds what takes new branches, and goes on from there the next time.
    folder = arguments.work / arguments.target
    folder.mkdir(parents=True, exist_ok=True)
    for number, value in enumerate(corpus):
        (folder / f"{number:05}").write_bytes(value)
    found = arguments.keep / arguments.target
    found.mkdir(parents=True, exist_ok=True)
    options = [
        sys.argv[0],
        f"-runs={arguments.runs or -1}",
        f"-max_total_time={int(arguments.seconds)}",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={INPUT_BYTES}",
        "-len_control=0",
        f"-seed={arguments.seed}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        str(folder),
    ]
    atheris.Setup(options, target.run, custom_mutator=change)
    atheris.Fuzz()
    return 0


def _keep(folder: Path, value: bytes) -> Path:
    path = folder / hashlib.sha256(value).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
