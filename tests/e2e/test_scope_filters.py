"""Output, artifacts and timelines of one item of a map, over REST, the client and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from astraflow.client.blocking import Client
from tests.definitions import node, workflow
from tests.processes.command_line import Done, astra
from tests.processes.rest import TOKEN
from tests.processes.system import System, running


class Seen(NamedTuple):
    """A run that has ended, with a map over a container and a node beside it."""

    system: System
    run_id: str
    box: str
    says: str

    def scope(self, item: int) -> str:
        return f"{self.box}:{item}"

    def lines(self, **query: Any) -> list[tuple[str, str | None]]:
        page = self.system.rest.get(f"runs/{self.run_id}/logs", **query)
        return [(line["text"].strip(), line.get("scopePath")) for line in page["items"]]

    def astra(self, *arguments: str) -> Done:
        system = self.system
        return astra(*arguments, cwd=system.folder, ASTRA_SERVER=system.url, ASTRA_TOKEN=TOKEN)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    code = "def main(n):\n    print('item', n)\n    return n"
    box = node("core.container", "Box", map={"over": "=range(12)"})
    says = node(
        "core.python",
        "Says",
        parent=box["id"],
        parameters={"code": code, "inputs": {"n": "=item"}},
    )
    file = node(
        "core.file",
        "Writes",
        parent=box["id"],
        parameters={"name": "=f'{item}.txt'", "text": "=str(item)"},
    )
    beside = node("core.python", "Beside", parameters={"code": "def main():\n    print('beside')"})
    with running(tmp_path_factory.mktemp("scopes"), workers=1) as system:
        view = system.rest.run(workflow(box, says, file, beside))
        assert view["status"] == "succeeded", view
        yield Seen(system, view["runId"], box["id"], says["id"])


def test_output_of_a_scope_is_that_of_all_nodes_inside(seen: Seen) -> None:
    inner = f"{seen.scope(1)}/{seen.box}:0"
    assert len(seen.lines()) == 13
    assert seen.lines(scope=seen.scope(1)) == seen.lines(scope=inner) == [("item 1", inner)]
    assert seen.lines(scope=seen.scope(1), nodeId=seen.says) == [("item 1", inner)]
    assert seen.lines(scope=seen.scope(1), nodeId=seen.box) == []


def test_pages_of_output_of_a_scope_end(seen: Seen) -> None:
    path = f"runs/{seen.run_id}/logs"
    found, cursor = [], ""
    while True:
        page = seen.system.rest.get(path, scope=seen.scope(11), limit=1, cursor=cursor)
        found += [line["text"].strip() for line in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert found == ["item 11"]


def test_artifacts_of_a_scope_are_those_of_all_nodes_inside(seen: Seen) -> None:
    path = f"runs/{seen.run_id}/artifacts"
    everything = seen.system.rest.get(path)["items"]
    [one] = seen.system.rest.get(path, scope=seen.scope(11))["items"]
    assert len(everything) == 12
    assert one in everything
    got = seen.system.rest.http.get(f"/api/v1/artifacts/{one['resourceId']}", follow_redirects=True)
    assert got.text == "11"


@pytest.mark.parametrize("route", ["logs", "artifacts"])
@pytest.mark.parametrize("wrong", ["{}:12", "{}:01", "{}", "{}:1/x:0", "x:0", "/", "{}:-1"])
def test_a_scope_that_the_run_does_not_have_is_not_found(
    seen: Seen, route: str, wrong: str
) -> None:
    path = f"/api/v1/runs/{seen.run_id}/{route}"
    answer = seen.system.rest.http.get(path, params={"scope": wrong.format(seen.box)})
    assert (answer.status_code, answer.json()["code"]) == (404, "E.RUN.NODE_NOT_FOUND")


@pytest.mark.parametrize("route", ["logs", "artifacts"])
def test_a_scope_is_a_text_with_a_limit(seen: Seen, route: str) -> None:
    path = f"/api/v1/runs/{seen.run_id}/{route}"
    for wrong in ("x" * 4_097, "a\0b"):
        assert seen.system.rest.http.get(path, params={"scope": wrong}).status_code == 400


def test_the_client_takes_a_scope(seen: Seen) -> None:
    with Client(seen.system.url, TOKEN) as client:
        [line] = client.runs.logs(seen.run_id, scope=seen.scope(3))
        assert (line.text or "").strip() == "item 3"
        assert len(client.runs.artifacts(seen.run_id, scope=seen.scope(3)).items) == 1
        assert len(client.runs.artifacts(seen.run_id).items) == 12


def test_the_command_line_takes_a_scope_and_names_items(seen: Seen) -> None:
    one = ("runs", "logs", seen.run_id, "--scope", seen.scope(2))
    assert seen.astra(*one).out.splitlines() == ["Says[2] | item 2"]
    assert seen.astra(*one, "--follow").out.splitlines() == ["Says[2] | item 2"]
    assert seen.astra(*one, "--node", "Says").out.splitlines() == ["Says[2] | item 2"]
    everything = seen.astra("runs", "logs", seen.run_id).out.splitlines()
    assert sorted(everything) == sorted(
        ["Beside | beside", *(f"Says[{item}] | item {item}" for item in range(12))]
    )
    named = seen.astra("runs", "logs", seen.run_id, "--scope", "Box:2/Box:0")
    assert named.out.splitlines() == ["Says[2] | item 2"]
    shown = seen.astra("runs", "show", seen.run_id, "--node", "Says", "--scope", "Box:2/Box:0")
    assert '"result": 2' in shown.out
    alone = seen.astra("runs", "show", seen.run_id, "--scope", "Box:2")
    assert (alone.code != 0, "--scope needs a node" in alone.err) == (True, True)
    wrong = seen.astra("runs", "logs", seen.run_id, "--scope", seen.scope(12))
    assert wrong.code != 0
    assert "no such item in the run" in wrong.err


def test_the_timeline_of_one_item_is_told_and_that_of_a_run_with_a_map(seen: Seen) -> None:
    inner = f"{seen.scope(2)}/{seen.box}:0"
    told = seen.astra("runs", "story", seen.run_id, "Says", "--scope", inner)
    assert told.code == 0, told.err
    assert told.out.splitlines()[-1].endswith("Says: succeeded with attempt 1")
    everything = seen.astra("runs", "story", seen.run_id)
    assert everything.code == 0, everything.err
    assert "Beside: succeeded" in everything.out
    alone = seen.astra("runs", "story", seen.run_id, "--scope", inner)
    assert alone.code != 0
    assert "--scope needs a node" in alone.err
    missing = seen.astra("runs", "story", seen.run_id, "Says")
    assert "give `scope`" in missing.err


def test_a_map_over_an_empty_list_is_shown_as_any_other(seen: Seen) -> None:
    rest = seen.system.rest
    empty = node("core.echo", "Empty", parameters={"value": "=item"}, map={"over": "=[]"})
    some = node("core.echo", "Some", parameters={"value": "=item"}, map={"over": "=[1, 2]"})
    view = rest.run(workflow(empty, some))
    counts = {one["label"]: one["items"] for one in view["nodes"]}
    assert counts["Empty"].keys() == counts["Some"].keys()
    assert set(counts["Empty"].values()) == {0}
    path = f"runs/{view['runId']}/nodes/{empty['id']}"
    assert rest.get(path)["items"] == counts["Empty"]
    assert rest.get(f"{path}/items") == {"items": [], "nextCursor": None}
    shown = seen.astra("runs", "show", view["runId"]).out
    assert "no items" in shown
    assert "2 items: 2 succeeded" in shown
    listed = seen.astra("runs", "items", view["runId"], "Empty")
    assert (listed.code, listed.out, listed.err.strip()) == (0, "", "No items")
