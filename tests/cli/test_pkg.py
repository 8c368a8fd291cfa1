"""`astra pkg`, `astra packages` and `astra resources`, typed at a real server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.workflows import node, workflow
from tests.processes.command_line import Done, Up, astra

SEED = {
    "name": "seeded",
    "version": "1.0.0",
    "schemaVersion": "1.0.0",
    "adapters": [
        {"name": "a", "runtime": "own", "entrypoint": "seeded_code.adapter:Adapter", "capabilities": ["seeded.it"]}
    ],
    "nodes": [{"type": "seeded.it", "runtimes": {"own": {"handler": "it"}}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environments that the tests make are gone with them; wheels stay where uv keeps them."""
    folder = tmp_path_factory.mktemp("caches")
    kept = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    return {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "UV_CACHE_DIR": kept,
    }


def good(done: Done) -> Done:
    assert done.code == 0, done
    return done


def new(folder: Path, name: str) -> Path:
    good(astra("pkg", "new", name, cwd=folder))
    return folder / name


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def with_version(package: Path, version: str) -> Path:
    manifest = json.loads((package / "manifest.json").read_text())
    (package / "manifest.json").write_text(json.dumps({**manifest, "version": version}))
    return package


def test_a_built_archive_has_a_whole_manifest_and_the_folder_keeps_its_own(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    package = new(tmp_path, "built")
    before = (package / "manifest.json").read_bytes()
    (package / "resources").mkdir()
    (package / "resources" / "words.txt").write_text("words")
    built = good(astra("pkg", "build", "built", "--json", cwd=tmp_path, **caches)).json
    assert built["nodes"] == ["built.greet"]
    again = good(astra("pkg", "build", "built", "--json", cwd=tmp_path, **caches)).json
    assert again["sha256"] == built["sha256"]
    assert (package / "manifest.json").read_bytes() == before
    assert os.listdir(package / "dist") == ["built-0.1.0.cwx"]
    checked = good(astra("pkg", "verify", built["path"], "--json", cwd=tmp_path)).json
    assert (checked["sha256"], checked["signedBy"]) == (built["sha256"], None)


def test_a_package_in_the_manner_of_the_seeds_is_built_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "adapters" / "seeded_code").mkdir(parents=True)
    (tmp_path / "adapters" / "seeded_code" / "adapter.py").write_text(
        "raise RuntimeError('nobody imports it to build it')"
    )
    (tmp_path / "manifest.json").write_text(json.dumps(SEED))
    built = good(astra("pkg", "build", "--json", "--out", "elsewhere", cwd=tmp_path)).json
    assert built["path"] == "elsewhere/seeded-1.0.0.cwx"
    assert built["nodes"] == ["seeded.it"]


def test_what_is_wrong_with_a_package_is_said_in_its_authors_words(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    nothing = astra("pkg", "build", cwd=tmp_path)
    assert nothing.code == 1 and "astra pkg new" in nothing.err
    package = new(tmp_path, "wrong")
    code = package / "wrong_nodes" / "__init__.py"
    edit(code, "times: int", "times: complex")
    refused = astra("pkg", "build", "wrong", "--json", cwd=tmp_path, **caches)
    assert refused.code == 1
    assert "wrong_nodes:greet, parameter times" in refused.json["detail"]
    edit(code, "times: complex", "times: int")
    (package / "link").symlink_to("/etc/hostname")
    linked = astra("pkg", "build", "wrong", cwd=tmp_path, **caches)
    assert linked.code == 1 and "wrong/link" in linked.err and "staged" not in linked.err
    (package / "link").unlink()
    edit(code, "wrong.greet", "not a type")
    pointed = astra("pkg", "build", "wrong", "--json", cwd=tmp_path, **caches)
    assert [one["pointer"] for one in pointed.json["errors"]][-1] == "/nodes/0/type"
    (package / "manifest.json").write_text('{"name": "wrong"}')
    assert "version is missing" in astra("pkg", "build", "wrong", cwd=tmp_path, **caches).err


def test_a_name_that_cannot_be_one_and_a_folder_that_is_there_are_refused(tmp_path: Path) -> None:
    for name in ("Hello", "core", "../up"):
        refused = astra("pkg", "new", name, cwd=tmp_path)
        assert refused.code == 1 and "lower-case letters" in refused.err, name
    new(tmp_path, "once")
    twice = astra("pkg", "new", "once", "--json", cwd=tmp_path)
    assert twice.code == 2 and "Directory exists" in twice.json["detail"]


def test_tests_of_a_package_run_with_its_dependencies(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    package = new(tmp_path, "needy")
    manifest = json.loads((package / "manifest.json").read_text())
    needs = {"dependencies": ["six==1.16.0"]}
    (package / "manifest.json").write_text(json.dumps({**manifest, "python": needs}))
    edit(
        package / "needy_nodes" / "__init__.py",
        "from astraflow_sdk",
        "import six\nfrom astraflow_sdk",
    )
    (package / "tests" / "test_more.py").write_text(
        "import importlib.util, six\n"
        "def test_it_has_what_it_asked_for_and_nothing_of_the_server():\n"
        "    assert six.__version__ == '1.16.0'\n"
        "    assert importlib.util.find_spec('msgspec') is None\n"
    )  # fmt: skip
    done = good(astra("pkg", "test", "needy", "-q", cwd=tmp_path, **caches))
    assert "3 passed" in done.out
    good(astra("pkg", "build", "needy", cwd=tmp_path, **caches))
    edit(package / "tests" / "test_more.py", "1.16.0", "9")
    failed = astra("pkg", "test", "needy", "-q", "--json", cwd=tmp_path, **caches)
    assert failed.code == 1 and "1 failed" in failed.err
    assert failed.json == {"passed": False, "exitCode": 1}
    assert not list(package.rglob("__pycache__"))
    manifest["python"] = {"dependencies": ["no-such-thing-anywhere==1.0"]}
    (package / "manifest.json").write_text(json.dumps(manifest))
    missing = astra("pkg", "test", "needy", cwd=tmp_path, **caches)
    assert missing.code == 1 and "no-such-thing-anywhere" in missing.err


def test_a_signed_archive_is_verified_and_another_is_not(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    new(tmp_path, "signed")
    trusted = good(astra("pkg", "keygen", "--name", "ada", cwd=tmp_path, **caches)).out.strip()
    again = astra("pkg", "keygen", cwd=tmp_path, **caches)
    assert again.code == 2 and "exists" in again.err
    path = good(astra("pkg", "build", "signed", cwd=tmp_path, **caches)).out.strip()
    good(astra("pkg", "sign", path, "--by", "Ada", cwd=tmp_path, **caches))
    checked = good(astra("pkg", "verify", path, "--trusted", trusted, "--json", cwd=tmp_path)).json
    assert (checked["signedBy"], checked["isTrusted"]) == ("ada", True)
    stranger = good(
        astra("pkg", "keygen", "--out", "other.key", "--json", cwd=tmp_path, **caches)
    ).json
    refused = astra("pkg", "verify", path, "--trusted", stranger["trustedKey"], cwd=tmp_path)
    assert refused.code == 1 and "not trusted" in refused.err
    edit(tmp_path / "signed" / "signed_nodes" / "__init__.py", "Hello", "Servus")
    good(astra("pkg", "build", "signed", cwd=tmp_path, **caches))
    stale = astra("pkg", "verify", path, cwd=tmp_path)
    assert stale.code == 1 and "another digest" in stale.err


def test_a_published_version_is_listed_installed_withdrawn_and_removed(
    server: Up, tmp_path: Path, caches: dict[str, str]
) -> None:
    package = str(new(tmp_path, "shown"))
    assert good(server.astra("pkg", "publish", package, **caches)).out == "shown 0.1.0\n"
    with_version(Path(package), "0.2.0")
    assert good(server.astra("pkg", "publish", package, "--json", **caches)).json["active"] is True
    (listed,) = [
        one
        for one in good(server.astra("packages", "list", "--json")).json["items"]
        if one["name"] == "shown"
    ]
    assert (listed["active"], listed["versions"]) == ("0.2.0", ["0.2.0", "0.1.0"])
    nodes = good(server.astra("packages", "nodes", "shown", "greet")).out
    assert "shown.greet\tGreet\tText\tshown 0.2.0\tGreet somebody." in nodes

    done = good(server.astra("packages", "install", "shown", "0.1.0"))
    assert "\tworker-1\tinstalled\t-" in done.out
    assert _states(server, "shown") == {"0.1.0": "installed"}
    good(server.astra("packages", "activate", "shown", "0.1.0"))
    good(server.astra("packages", "yank", "shown", "0.2.0", "--yes", "--reason", "it is loud"))
    rows = [
        line.split("\t")
        for line in good(server.astra("packages", "show", "shown")).out.splitlines()
    ]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("0.2.0", "yanked", "0"),
        ("0.1.0", "active", "1"),
    ]
    good(server.astra("packages", "unyank", "shown", "0.2.0"))
    gone = good(server.astra("packages", "uninstall", "shown", "0.1.0", "--json")).json
    assert [one["status"] for one in gone["items"]] == ["removed"]
    assert _states(server, "shown") == {}

    unconfirmed = server.astra("packages", "yank", "shown", "0.2.0")
    assert unconfirmed.code == 2 and "Confirmation required" in unconfirmed.err
    unknown = server.astra("packages", "install", "shown", "9.9", "--json")
    assert unknown.code == 1 and unknown.json["code"] == "E.PKG.NOT_FOUND"
    nobody = server.astra("packages", "install", "shown", "0.1.0", "--worker", "nobody")
    assert nobody.code == 1 and "astra worker" in nobody.err


def _states(server: Up, name: str) -> dict[str, str]:
    (worker,) = good(server.astra("workers", "list", "--json")).json["items"]
    return {one["version"]: one["status"] for one in worker["packages"] if one["name"] == name}


def test_a_signature_of_an_older_build_is_not_sent(
    server: Up, tmp_path: Path, caches: dict[str, str]
) -> None:
    package = new(tmp_path, "older")
    good(astra("pkg", "keygen", "--out", "own.key", cwd=tmp_path))
    path = good(astra("pkg", "build", "older", cwd=tmp_path, **caches)).out.strip()
    good(astra("pkg", "sign", path, "--key", "own.key", "--by", "Ada", cwd=tmp_path))
    edit(package / "older_nodes" / "__init__.py", "Hello", "Servus")
    done = good(server.astra("pkg", "publish", str(package), "--json", **caches))
    assert "is not uploaded" in done.err
    assert _signer(server, "older", "0.1.0") is None
    with_version(package, "0.2.0")
    key = str(tmp_path / "own.key")
    good(server.astra("pkg", "publish", str(package), "--key", key, "--by", "Ada", **caches))
    assert _signer(server, "older", "0.2.0") == "Ada"


def _signer(server: Up, name: str, version: str) -> str | None:
    signature = good(server.astra("packages", "show", name, version, "--json")).json["signature"]
    return None if signature is None else str(signature["signedBy"])


def test_an_install_that_fails_says_at_which_step_and_why(server: Up, tmp_path: Path) -> None:
    (tmp_path / "broken_code.py").write_text("raise RuntimeError('cannot be loaded')")
    manifest: dict[str, Any] = {**SEED, "name": "broken"}
    manifest["adapters"] = [{**SEED["adapters"][0], "entrypoint": "broken_code:Adapter"}]  # type: ignore[dict-item]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    good(server.astra("pkg", "publish", str(tmp_path)))
    failed = server.astra("packages", "install", "broken", "1.0.0")
    assert failed.code == 1
    assert "failed" in failed.out and "probe: " in failed.out and "cannot be loaded" in failed.out


def test_a_rollout_is_shown_and_taken_back(
    server: Up, tmp_path: Path, caches: dict[str, str]
) -> None:
    package = new(tmp_path, "rolled")
    good(server.astra("pkg", "publish", str(package), **caches))
    good(server.astra("packages", "activate", "rolled", "0.1.0"))
    good(server.astra("pkg", "publish", str(with_version(package, "0.2.0")), **caches))
    assert "No rollouts" in good(server.astra("packages", "rollout", "rolled")).err
    good(server.astra("packages", "rollout", "rolled", "0.2.0", "--waves", "100", "--soak", "600"))
    assert good(server.astra("packages", "rollout", "rolled")).out.startswith("0.2.0\trunning\t1/1")
    back = good(server.astra("packages", "rollback", "rolled", "--yes"))
    assert "rolled 0.1.0 is active again" in back.err
    wrong = server.astra("packages", "rollout", "rolled", "0.2.0", "--waves", "10")
    assert wrong.code == 1 and "waves" in wrong.err
    worse = server.astra("packages", "rollout", "rolled", "0.2.0", "--waves", "10,all")
    assert worse.code == 2 and "10,50,100" in worse.err


def test_an_artifact_is_listed_kept_longer_fetched_and_let_go(server: Up, tmp_path: Path) -> None:
    made = workflow(node(1, "file", parameters={"text": "a page", "name": "page.txt"}))
    run_id = server.submit(made)
    good(server.astra("runs", "watch", run_id))
    (row,) = good(server.astra("resources", "list", "--run", run_id)).out.splitlines()
    resource_id, kind, state, size = row.split("\t")[:4]
    assert (kind, state, size) == ("file", "ready", "6 B")
    shown = good(server.astra("resources", "show", resource_id, "--json")).json
    assert shown["runId"] == run_id
    longer = good(server.astra("resources", "extend", resource_id, "7200", "--json")).json
    assert longer["expiresAt"] > shown["expiresAt"]
    out = tmp_path / "fetched.txt"
    fetched = good(server.astra("resources", "download", resource_id, "--out", str(out)))
    assert out.read_text() == "a page" and fetched.out.strip() == str(out)
    own = good(server.astra("resources", "download", resource_id, "--json")).json
    assert (own["path"], own["sizeBytes"]) == ("page.txt", 6)
    over = server.astra("resources", "download", resource_id)
    assert over.code == 2 and "--out" in over.err
    assert server.astra("resources", "close", resource_id).code == 2
    good(server.astra("resources", "close", resource_id, "--yes"))
    missing = server.astra("resources", "show", "no/such", "--json")
    assert missing.code == 1 and missing.json["code"] == "E.RESOURCE.MISSING"
