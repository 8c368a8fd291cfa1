"""Sites of earlier versions, kept as they were: tenants in several shards, one with several lanes.

`site.backup` in a folder beside this file was made by `make_site.py` with the version that the folder is named after.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from astraflow.store.backup_file import reading
from tests.compat.make_site import SITE, client_of, lanes_of, start_worker
from tests.compat.make_store import stable
from tests.compat.test_kept_stores import MAX_BYTES, NEWEST, missing
from tests.processes.command_line import astra
from tests.processes.postgres import ask, database, postgres_server
from tests.processes.system import SECRET, System, running

KEPT = sorted(one.parent for one in Path(__file__).parent.glob("*/site.json"))


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_kept_site_is_small_and_says_what_it_is(kept: Path) -> None:
    expected = json.loads((kept / "site.json").read_text())
    assert kept.name == f"{expected['software']}-schema-{expected['schemaVersion']}"
    assert (kept / "site.backup").stat().st_size < MAX_BYTES
    assert len(set(expected["lanes"].values())) == len(expected["lanes"]) == 3
    with reading(kept / "site.backup") as reader:
        reader.verify()
        assert reader.manifest.store == "postgres"
        assert reader.manifest.schema_version == expected["schemaVersion"] <= NEWEST


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_kept_site_is_served_in_all_its_lanes_and_its_runs_end(
    kept: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    with postgres_server() as server, database(server, "kept") as url:
        place = ["--data-dir", str(folder / "scheduler"), "--database-url", url]
        environ = {**SITE, "ASTRA_SCHEDULER_SECRET": SECRET}
        done = astra("db", "restore", str(kept / "site.backup"), *place, cwd=folder, **environ)
        assert done.code == 0, done
        with running(folder, environ=SITE, database_url=url) as system:
            check_site(kept, system, url)


def check_site(kept: Path, system: System, url: str) -> None:
    expected = json.loads((kept / "site.json").read_text())
    assert lanes_of(url) == expected["lanes"]
    for name, tenant in expected["tenants"].items():
        rest = client_of(system, tenant["token"])
        try:
            system.until(lambda rest=rest: rest.status("/api/v1/me") == 200, "its owner")  # type: ignore[misc]
            wrong = {
                path: problems
                for path, answer in tenant["reads"].items()
                if (problems := missing(answer, stable(rest.ask("GET", f"/api/v1/{path}").json())))
            }
            assert wrong == {}
            start_worker(system, name, tenant["token"])
            for run_id, what in tenant["active"].items():
                if "approve" in what:
                    path, body = f"nodes/{what['approve']}/approval", {"approved": True}
                else:
                    path, body = f"signals/{what['signal']}", {}
                told = rest.ask("POST", f"/api/v1/runs/{run_id}/{path}", json=body)
                assert told.is_success, told.text
                assert rest.finished(run_id)["status"] == "succeeded", (what, rest.nodes(run_id))
                lane = ask(url, f"SELECT lane FROM astraflow.runs WHERE run_id = '{run_id}'")
                assert lane == what["lane"]
            rest.read_everything()
        finally:
            rest.close()
