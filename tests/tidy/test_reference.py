"""The generated pages are fresh, and the check would notice if they were not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.processes.process import ROOT


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_reference", ROOT / "scripts" / "make_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_say_what_the_code_says(maker: ModuleType) -> None:
    assert maker.stale(ROOT / "docs" / "reference") == []


def test_a_changed_page_and_a_missing_page_are_noticed(maker: ModuleType, tmp_path: Path) -> None:
    assert maker.stale(tmp_path) == list(maker.PAGES)
    maker.write(tmp_path)
    assert maker.stale(tmp_path) == []
    page = tmp_path / "errors.md"
    page.write_text(page.read_text().replace("401", "402", 1))
    assert maker.stale(tmp_path) == ["errors.md"]


def test_every_code_is_on_its_page(maker: ModuleType) -> None:
    page = maker.errors_page()
    assert all(f"`{code}`" in page for code in maker.CATALOGUE)


def test_every_transition_of_a_session_is_in_the_picture(maker: ModuleType) -> None:
    lines = maker.session_states_page().splitlines()
    for (state, trigger), target in maker.session_states.TRANSITIONS.items():
        start = f"    {state.value} --> {target.value}: "
        assert any(line.startswith(start) and trigger.value in line for line in lines)


def test_every_transition_of_a_task_is_in_the_picture(maker: ModuleType) -> None:
    page = maker.task_states_page()
    for state, fact in maker.TRANSITIONS:
        assert any(
            state.__name__ in line and fact.__name__ in line for line in page.splitlines()
        ), (state, fact)
