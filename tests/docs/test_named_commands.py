"""Commands and requests that pages name in a sentence or a table: each exists, with the options that it is named with.
What stands in blocks is run by the tests of the pages."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from astraflow.api.app import ROUTES
from astraflow.api.routes import Route
from astraflow.cli.main import app
from tests.processes.process import ROOT

PAGES = sorted((ROOT / "docs" / "guides").glob("*.md"))
OTHERS = [ROOT / "docs" / name for name in ("cli.md", "client.md", "workflows.md", "resources.md")]
_COMMAND = re.compile(r"`astra ([^`]*)`")
_IN_APP = re.compile(r"""(?:["`]|: )astra ([a-z][^"`]*?)\.?["`]""")
"""A text of the web app that is a command, or ends with one."""
_REQUEST = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/api/[^`\s]*)`")
_BLOCK = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)


def commands_on(page: Path) -> list[str]:
    """What stands behind `astra` in sentences, tables and blocks."""
    text = page.read_text("utf-8")
    lines = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    typed = [one.strip() for line in lines for one in line.split("|") if "astra " in one]
    in_blocks = [one.removeprefix("astra ") for one in typed if one.startswith("astra ")]
    return sorted({*_COMMAND.findall(text), *in_blocks})


def unknown_words(command: str) -> list[str]:
    """The command or the options that `astra` does not have."""
    words = shlex.split(re.sub(r"[\[\]…]", " ", command.split(" | ")[0]))
    here = get_command(app)
    while isinstance(here, TyperGroup) and words and words[0][0].islower():
        found = here.get_command(Context(here), words[0])
        if found is None:
            return words[:1]
        here, words = found, words[1:]
    known = {name for one in here.params for name in (*one.opts, *one.secondary_opts)}
    given = takewhile(lambda word: word != "--", words)
    options = [word.partition("=")[0] for word in given if word.startswith("-") and word != "-"]
    return [word for word in options if word not in {*known, "--help"}]


def route_of(method: str, path: str) -> Route | None:
    """The route that a request is for; a page may give the parts of a path other names."""
    shape = re.sub(r"\{[^}]*\}", "{}", path)
    return next(
        (
            one
            for one in ROUTES
            if (one.method, re.sub(r"\{[^}]*\}", "{}", one.path)) == (method, shape)
        ),
        None,
    )


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("runs lgs RUN", ["lgs"]),
        ("rn FILE", ["rn"]),
        ("runs logs RUN --scop X", ["--scop"]),
        ("runs logs RUN [--node NODE] -f | head -1", []),
        ("--version", []),
    ],
)
def test_what_does_not_exist_is_found(command: str, unknown: list[str]) -> None:
    assert unknown_words(command) == unknown


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    wrong = {command: unknown_words(command) for command in commands_on(page)}
    assert {command: words for command, words in wrong.items() if words} == {}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_every_request_that_a_page_names_exists(page: Path) -> None:
    for method, address in _REQUEST.findall(page.read_text("utf-8")):
        path, _, query = address.partition("?")
        route = route_of(method, path)
        assert route is not None, (method, path)
        known = {field.encode_name for field in msgspec.structs.fields(route.query)}
        given = {part.partition("=")[0] for part in query.split("&") if part}
        assert given <= known, (method, address, known)


def test_every_command_that_the_web_app_names_exists() -> None:
    texts = [page.read_text("utf-8") for page in (ROOT / "web" / "src" / "texts").glob("*.ts")]
    commands = [command for text in texts for command in _IN_APP.findall(text)]
    assert {command.split()[0] for command in commands} >= {"pools", "worker", "runs", "secrets"}
    wrong = {command: unknown_words(command) for command in commands}
    assert {command: words for command, words in wrong.items() if words} == {}
