"""No server, wrong settings, wrong words: what a person and a script are told."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.workflows import EXAMPLES
from tests.processes.command_line import astra

HELLO = str(EXAMPLES / "hello.json")
NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "command",
    [
        ("run", HELLO),
        ("runs", "list"),
        ("workers", "list"),
    ],
)
def test_without_a_server_a_command_ends_with_3_and_a_hint(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    done = astra(*command, cwd=tmp_path, ASTRA_SERVER=NOWHERE)
    assert (done.code, done.out) == (3, "")
    assert done.err == (
        f"error: cannot connect to {NOWHERE}: the connection was refused\n\n"
        "hint: start one with `astra up`, or say where it is with ASTRA_SERVER and ASTRA_TOKEN\n"
    )


def test_without_a_server_json_is_still_json(tmp_path: Path) -> None:
    done = astra("runs", "list", "--json", cwd=tmp_path, ASTRA_SERVER=NOWHERE)
    assert (done.code, done.err) == (3, "")
    assert done.json["code"] == "E.SERVER.UNREACHABLE"
    assert done.json["hint"].startswith("start one with `astra up`")


def test_wrong_words_are_a_usage_error_in_both_languages(tmp_path: Path) -> None:
    plain = astra("runs", "list", "--nonsense", cwd=tmp_path)
    assert (plain.code, plain.out) == (2, "")
    assert "No such option: --nonsense" in plain.err
    as_json = astra("runs", "list", "--nonsense", "--json", cwd=tmp_path)
    assert as_json.code == 2
    assert "No such option" in as_json.json["detail"]
    assert astra("nonsense", cwd=tmp_path).code == 2


def test_help_lists_every_command(tmp_path: Path) -> None:
    done = astra("--help", cwd=tmp_path)
    assert done.code == 0
    for name in ("up", "server", "worker", "run", "runs", "workflows", "workers", "config", "db"):
        assert f"\n  {name} " in done.out
    assert "watch" in astra("runs", "--help", cwd=tmp_path).out


def test_wrong_settings_are_told_together_and_nothing_starts(tmp_path: Path) -> None:
    done = astra(
        "up",
        cwd=tmp_path,
        ASTRA_SCHEDULER_PORT="many",
        ASTRA_SCHEDULER_HEARTBEAT_INTERVALL_MS="1",
    )
    assert (done.code, done.out) == (2, "")
    assert "2 problems in the settings" in done.err
    assert "did you mean ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS?" in done.err
    assert list(tmp_path.iterdir()) == []


def test_every_setting_is_shown_with_its_source_and_no_secret(tmp_path: Path) -> None:
    environment = {
        "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": "very-secret-indeed",
        "ASTRA_WORKER_NAME": "miller",
    }
    done = astra("config", "show", cwd=tmp_path, **environment)
    assert done.code == 0
    assert "worker.name\tmiller\tASTRA_WORKER_NAME\n" in done.out
    assert "scheduler.port\t8080\tdefault\n" in done.out
    assert "very-secret-indeed" not in done.out + done.err
    shown = astra("config", "show", "--json", cwd=tmp_path, **environment).json
    assert shown["worker"]["name"] == {"value": "miller", "source": "ASTRA_WORKER_NAME"}
    wrong = astra("config", "show", "--json", cwd=tmp_path, ASTRA_WORKER_NAMES="x")
    assert wrong.code == 2
    assert wrong.json["code"] == "E.CONFIG.INVALID"


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = astra("up", "--port", port, cwd=tmp_path)
        assert done.code == 2
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.err
        doctor = astra("doctor", cwd=tmp_path, ASTRA_SCHEDULER_PORT=port)
        assert doctor.code == 1
        assert "fail  port" in doctor.out


def test_a_store_is_made_checked_and_swept_without_a_server(tmp_path: Path) -> None:
    missing = astra("db", "status", cwd=tmp_path)
    assert missing.code == 3
    assert "there is no store yet: var/astraflow.db" in missing.err
    assert astra("db", "migrate", cwd=tmp_path).err.startswith(
        "Upgraded the schema from version 0 to "
    )
    shown = astra("db", "status", "--json", cwd=tmp_path).json
    assert (shown["openedBy"], shown["runs"]) == (None, 0)
    swept = astra("db", "sweep", "--yes", "--json", cwd=tmp_path)
    assert swept.json == {"runs": 0, "events": 0, "audits": 0}
    assert astra("db", "check", "--json", cwd=tmp_path).json["ok"] is True


def test_a_damaged_store_is_found(tmp_path: Path) -> None:
    assert astra("db", "migrate", cwd=tmp_path).code == 0
    file = tmp_path / "var" / "astraflow.db"
    with closing(sqlite3.connect(file)) as connection:
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as stream:
        stream.seek(page * (pages - 1))
        stream.write(os.urandom(page))
    done = astra("db", "check", cwd=tmp_path)
    assert done.code in (1, 3), done
    assert "hint: keep a copy of the file, and restore a backup" in done.err


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir(mode=0o700)
    file = tmp_path / "var" / "astraflow.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = file.read_bytes()
    for command in (("db", "check"), ("db", "migrate")):
        done = astra(*command, cwd=tmp_path)
        assert done.code == 3
        assert "another program" in done.err
    assert file.read_bytes() == before


def test_a_kept_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    folder.mkdir(mode=0o700)
    token = folder / "token"
    token.write_text("a-token-that-is-long-enough\n")
    token.chmod(0o644)
    done = astra("up", "--port", "0", cwd=tmp_path)
    assert done.code == 2
    assert "chmod 600" in done.err
    assert stat.S_IMODE(token.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "command",
    [
        ("worker", ""),
        ("worker", "a/b"),
        ("worker", "w" * 65),
        ("worker", "w-1", "--tenant", "ACME"),
        ("worker", "w-1", "--tenant", ""),
        ("worker", "w-1", "--days", "0"),
        ("server", ""),
        ("server", "not a host"),
        ("server", "127.0.0.1", "a..b"),
        ("server", "x" * 254),
    ],
)
def test_no_certificate_is_made_for_what_is_no_name(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    assert astra("ca", "init", cwd=tmp_path).code == 0
    done = astra("ca", *command, cwd=tmp_path)
    assert done.code == 2 and "Traceback" not in done.err
    assert sorted(one.name for one in (tmp_path / "ca").iterdir()) == ["ca.key", "ca.pem"]


def test_a_certificate_is_made_for_the_longest_names(tmp_path: Path) -> None:
    assert astra("ca", "init", cwd=tmp_path).code == 0
    assert astra("ca", "worker", "w" * 64, "--tenant", "t" * 63, cwd=tmp_path).code == 0
    assert astra("ca", "server", "::1", "*.example.com", "h" * 63, cwd=tmp_path).code == 0
