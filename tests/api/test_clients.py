"""The blocking client is made from the asynchronous one, and both have all of the API that they promise."""

from __future__ import annotations

import importlib.util
import inspect
import re
from types import ModuleType

import pytest

from astraflow import client
from astraflow.client import asynchronous_apis, blocking_apis
from tests.conftest import ROOT

APIS = [name for name in vars(asynchronous_apis) if re.fullmatch(r"Async\w+Api", name)]


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


@pytest.mark.parametrize("part", APIS)
def test_both_clients_have_the_same_methods(part: str) -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        assert found
        return {name: list(inspect.signature(one).parameters) for name, one in found}

    blocking = getattr(blocking_apis, part.removeprefix("Async"))
    assert methods(blocking) == methods(getattr(asynchronous_apis, part))


def test_every_name_of_the_client_is_there() -> None:
    for name in client.__all__:
        assert getattr(client, name).__name__ == name
    with pytest.raises(AttributeError):
        client.Nothing  # noqa: B018
