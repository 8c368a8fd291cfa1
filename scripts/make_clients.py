"""Make a client from the published description of the API, and try it against a real scheduler.

The generator is not ours: if it makes sense of `docs/api/v1/openapi.yaml`, and the client that it writes can submit a
run and read it back with all answers fitting their models, then others can do so in their own languages.

What was tried is kept beside the description as digests, so that it is done once per change of the API:

    python scripts/make_clients.py                try it, and keep the digests
    python scripts/make_clients.py --if-changed   the same, if the digests are not those of the files
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from astraflow.bench.processes import TOKEN, running

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = ROOT / "docs" / "api" / "v1" / "openapi.yaml"
BUILD = ROOT / "build" / "clients"
TRIED = DESCRIPTION.with_name("clients.sha256")
TRIED_FILES = (
    "docs/api/v1/openapi.yaml",
    "requirements/clients.txt",
    "scripts/make_clients.py",
)
PACKAGE = "astraflow_rest"

TRY = """
import sys, time, uuid
import astraflow_rest as rest

url, token = sys.argv[1:]
configuration = rest.Configuration(host=url, access_token=token)
with rest.ApiClient(configuration) as client:
    runs, workers, system = rest.RunsApi(client), rest.WorkersApi(client), rest.SystemApi(client)
    node = {"id": str(uuid.uuid4()), "type": "core.echo", "parameters": {"value": 42}}
    request = rest.RunRequest.from_dict({"workflow": {"id": str(uuid.uuid4()), "nodes": [node]}})
    accepted = runs.create_run(request)
    run = runs.get_run(accepted.run_id)
    while run.status in ("queued", "running"):
        time.sleep(0.05)
        run = runs.get_run(accepted.run_id)
    assert run.status == "succeeded", run
    assert run.nodes[0].result == {"value": 42}, run.nodes[0]
    assert accepted.run_id in [one.run_id for one in runs.list_runs().items]
    assert [one.status for one in workers.list_workers().items] == ["online"]
    try:
        runs.get_run("nobody")
    except rest.ApiException as refused:
        assert refused.status == 404, refused
    else:
        raise AssertionError("a run that is not there was found")
print("the generated client submitted a run and read it back")
"""


def digests() -> str:
    """As `sha256sum` writes them."""
    rows = ((hashlib.sha256((ROOT / name).read_bytes()), name) for name in TRIED_FILES)
    return "".join(f"{digest.hexdigest()}  {name}\n" for digest, name in rows)


def is_tried() -> bool:
    """Whether a client was made from the description as it is, and worked."""
    return TRIED.is_file() and TRIED.read_text() == digests()


def main(arguments: list[str]) -> int:
    if arguments == ["--if-changed"] and is_tried():
        print("a client was made from this description before")
        return 0
    before = digests()
    make_and_try()
    TRIED.write_text(before)
    return 0


def make_and_try() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    tools = BUILD / "tools"
    python = tools / "bin" / "python"
    print("installing the generator …", flush=True)
    _run(sys.executable, "-m", "venv", str(tools))
    lock = ROOT / "requirements" / "clients.txt"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(str(python), *pip, "--require-hashes", "-r", str(lock))
    print("generating …", flush=True)
    made = BUILD / "python"
    generator = tools / "bin" / "openapi-generator-cli"
    _run(str(generator), "generate", "-i", str(DESCRIPTION), "-g", "python", "-o", str(made),
         "--package-name", PACKAGE, quiet=True)  # fmt: skip
    print("trying it …", flush=True)
    with running() as system:
        url = f"http://127.0.0.1:{system.port}"
        environ = {**os.environ, "PYTHONPATH": str(made)}
        subprocess.run([str(python), "-c", TRY, url, TOKEN], check=True, env=environ, timeout=120)
    print(f"kept in {made.relative_to(ROOT)}")


def _run(*command: str, quiet: bool = False) -> None:
    done = subprocess.run(command, check=False, capture_output=quiet, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{Path(command[0]).name} failed\n{done.stdout or ''}{done.stderr or ''}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
