from __future__ import annotations

import itertools

from astraflow.core.workflow.versions import is_prerelease, is_specifier_set, parse_version
from tests.tables import each_row


def test_versions_are_ordered_as_pep_440_orders_them() -> None:
    ordered = [
        "1.0.dev1",
        "1.0a1.dev2",
        "1.0a1",
        "1.0b2",
        "1.0rc1",
        "1.0",
        "1.0+abc",
        "1.0+5",
        "1.0.post1.dev1",
        "1.0.post1",
        "1.1",
        "2025.10.0",
        "1!0.1",
    ]
    keys = [parse_version(text) for text in ordered]
    for earlier, later in itertools.pairwise(keys):
        assert earlier is not None
        assert later is not None
        assert earlier < later


@each_row(
    ("one", "other"),
    [
        ("2025.10", "2025.10.0"),
        ("v1.0", "1.0"),
        ("1.0ALPHA1", "1.0a1"),
        ("1.0-rc.1", "1.0rc1"),
        ("1.0c1", "1.0preview1"),
        ("1.0.rev", "1.0.post0"),
        ("0", "0.0.0"),
    ],
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert parse_version(one) == parse_version(other) is not None


@each_row("text", ["", "latest", "1..0", "1.0 ", "1.x", "1.0+", "1" * 65, "\u0661"])
def test_what_is_no_version_is_told(text: str) -> None:
    assert parse_version(text) is None


@each_row(
    ("text", "expected"),
    [
        ("1.0", False),
        ("1.0rc1", True),
        ("1.0.dev3", True),
        ("1.0.post1", False),
        ("1.0.post1.dev2", True),
    ],
)
def test_prereleases_are_told_from_releases(text: str, expected: bool) -> None:
    key = parse_version(text)
    assert key is not None
    assert is_prerelease(key) is expected


@each_row(
    ("text", "expected"),
    [
        (">=3.10,<3.12", True),
        (" >= 3.10 , != 3.11.* ", True),
        ("==3.11.*", True),
        ("~=3.10", True),
        (">=3.10.*", False),
        ("3.10", False),
        (">=", False),
        ("", False),
        (">=3.10,", False),
        (">=x", False),
    ],
)
def test_version_clauses_are_recognized(text: str, expected: bool) -> None:
    assert is_specifier_set(text) is expected
