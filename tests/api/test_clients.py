"""The blocking client is made from the asynchronous one, and both have all of the API that they promise."""

from __future__ import annotations

import importlib.util
import inspect
from types import ModuleType

import pytest

from astraflow import client
from tests.conftest import ROOT

URL = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    path = ROOT / "scripts" / "make_blocking_client.py"
    spec = importlib.util.spec_from_file_location("make_blocking_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_blocking_client_is_what_the_asynchronous_one_says(maker: ModuleType) -> None:
    for source, name in maker.FILES.items():
        made = maker.blocking((maker.FOLDER / source).read_text(), name)
        assert (maker.FOLDER / name).read_text() == made
        assert "async" not in made
        assert "await" not in made


def methods(kind: type) -> dict[str, list[str]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: list(inspect.signature(one).parameters) for name, one in found if name[0] != "_"}


def test_both_clients_have_the_same_methods() -> None:
    assert methods(client.Client) == methods(client.AsyncClient)
    assert methods(client.RunHandle) == methods(client.AsyncRunHandle)


async def test_both_clients_have_the_same_requests() -> None:
    async with client.AsyncClient(URL, "token") as later:
        with client.Client(URL, "token") as now:
            for name in ("runs", "workflows", "workers", "packages", "catalog", "resources"):
                kind = type(getattr(now, name))
                assert type(getattr(later, name)) is kind
                assert methods(kind).keys() >= {"list", "iterate", "get"}


def test_help_shows_the_name_the_parameters_and_the_text_of_a_request() -> None:
    with client.Client(URL, "token") as now:
        cancel = now.runs.cancel
    assert cancel.__name__ == "cancel"
    assert str(inspect.signature(cancel)) == "(run_id: 'str')"
    assert now.runs.list.__doc__ == "One page, newest first."


def test_every_name_of_the_client_is_there() -> None:
    for name in client.__all__:
        assert getattr(client, name).__name__ == name
    with pytest.raises(AttributeError):
        client.Nothing  # noqa: B018
