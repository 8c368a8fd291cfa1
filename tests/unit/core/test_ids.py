"""Ids that follow from others."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from astraflow.core.ids import uuid5
from tests.tables import each_row

NAMES = ("run1", "host", "0", "1", "req1")


def test_an_id_of_names_is_the_same_whenever_it_is_asked_for() -> None:
    assert uuid5(*NAMES) == uuid5(*NAMES) == "c7be96da-7139-56eb-9e8f-aff5c4ee36b2"


@each_row("names", [(), ("",), NAMES, ("run é 走",), ("x" * 1000,)])
def test_it_is_a_uuid_of_version_5_in_its_plain_form(names: tuple[str, ...]) -> None:
    made = uuid5(*names)
    read = UUID(made)
    assert str(read) == made
    assert (read.version, read.variant) == (5, RFC_4122)


@each_row("place", range(len(NAMES)))
def test_it_differs_by_any_of_the_names(place: int) -> None:
    others = [*NAMES]
    others[place] += "1"
    assert uuid5(*others) != uuid5(*NAMES)


def test_names_do_not_run_into_each_other() -> None:
    assert uuid5("run1", "1") != uuid5("run", "11")
    assert uuid5("a", "b") != uuid5("b", "a")
    assert (
        len({uuid5("run1", str(task), str(attempt)) for task in range(30) for attempt in range(30)})
        == 900
    )
