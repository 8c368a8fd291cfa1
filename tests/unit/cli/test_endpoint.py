"""Where the scheduler is found."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from astraflow.client import requests
from astraflow.client.endpoint import (
    DEFAULT_URL,
    Endpoint,
    find_endpoint,
    keep_endpoint,
    place_of,
)
from astraflow.client.responses import raise_problem
from astraflow.core import errors
from tests.tables import each_row


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"ASTRA_SCHEDULER_DATA_DIR": str(tmp_path)}


def test_without_a_word_it_is_here(environ: dict[str, str]) -> None:
    assert find_endpoint(environ=environ) == Endpoint(DEFAULT_URL)


def test_the_file_is_for_its_owner_and_found(environ: dict[str, str], tmp_path: Path) -> None:
    place = place_of(tmp_path)
    keep_endpoint(place, Endpoint("http://127.0.0.1:1", "kept", 42))
    keep_endpoint(place, Endpoint("http://127.0.0.1:2", "kept", 42))
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    found = find_endpoint(environ=environ)
    assert (found.url, found.token, found.source) == ("http://127.0.0.1:2", "kept", str(place))
    assert "kept" not in repr(found)


def test_the_environment_wins_over_the_file(environ: dict[str, str], tmp_path: Path) -> None:
    keep_endpoint(place_of(tmp_path), Endpoint("http://127.0.0.1:1", "kept"))
    named = {**environ, "ASTRA_SERVER": "https://elsewhere/", "ASTRA_TOKEN": "mine"}
    assert find_endpoint(environ=named) == Endpoint(
        "https://elsewhere", "mine", source="ASTRA_SERVER"
    )
    token_only = find_endpoint(environ={**environ, "ASTRA_TOKEN": "mine"})
    assert (token_only.url, token_only.token) == ("http://127.0.0.1:1", "mine")


def test_a_kept_token_goes_to_its_own_server_only(environ: dict[str, str], tmp_path: Path) -> None:
    keep_endpoint(place_of(tmp_path), Endpoint("http://127.0.0.1:1", "kept"))
    same = find_endpoint(environ={**environ, "ASTRA_SERVER": "http://127.0.0.1:1"})
    assert same.token == "kept"
    other = find_endpoint(environ={**environ, "ASTRA_SERVER": "http://attacker.example"})
    assert other.token == ""
    assert find_endpoint("http://127.0.0.1:1", "given", environ).token == "given"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"url": 1}', b"\xff"])
def test_a_file_that_cannot_be_read_is_no_hint(
    environ: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    place_of(tmp_path).write_bytes(content)
    assert find_endpoint(environ=environ).url == DEFAULT_URL


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://[::1", "http://a b", "http://x:99999", "http://x:0"]
)
def test_what_is_no_address_is_refused(environ: dict[str, str], url: str) -> None:
    with pytest.raises(errors.Refused, match="address") as raised:
        find_endpoint(url, "t", environ)
    assert raised.value.code is errors.CONFIG_INVALID


@pytest.mark.parametrize("token", ["a\nb", "tökén", "a\x00"])
def test_what_cannot_be_a_token_is_refused_before_it_is_sent(
    environ: dict[str, str], token: str
) -> None:
    with pytest.raises(errors.Refused, match="no token has") as raised:
        find_endpoint("http://x", token, environ)
    assert token not in str(raised.value)


@each_row("key", ["", "a b", "é", "a\n", "k" * 256])
def test_what_cannot_be_a_key_is_refused_before_it_is_sent(key: str) -> None:
    with pytest.raises(errors.Refused, match="idempotency key"):
        requests.submit("x", None, key)


@each_row(
    ("status", "body", "kind", "code"),
    [
        (404, b'{"code": "E.RUN.NOT_FOUND", "detail": "no"}', errors.NotFound, "E.RUN.NOT_FOUND"),
        (409, b'{"code": "E.RUN.TERMINAL"}', errors.Conflict, "E.RUN.TERMINAL"),
        (422, b'{"code": "E.WORKFLOW.CYCLE"}', errors.Refused, "E.WORKFLOW.CYCLE"),
        (503, b'{"code": "E.OVERLOADED"}', errors.Unavailable, "E.OVERLOADED"),
        (401, b"<html>", errors.Refused, "E.AUTH.INVALID_TOKEN"),
        (502, b"<html>", errors.Unavailable, "E.INTERNAL"),
        (500, b"[]", errors.AstraflowError, "E.INTERNAL"),
        (418, b'{"code": "E.FROM.THE_FUTURE"}', errors.Refused, "E.REQUEST.INVALID"),
    ],
)
def test_an_answer_becomes_one_of_our_errors(
    status: int, body: bytes, kind: type[errors.AstraflowError], code: str
) -> None:
    with pytest.raises(kind) as raised:
        raise_problem(status, body)
    assert raised.value.code.code == code
    assert raised.value.message
