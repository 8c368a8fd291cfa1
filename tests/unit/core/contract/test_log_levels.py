from __future__ import annotations

from msgspec import Raw

from astraflow.core.contract.log_levels import is_at_least
from tests.tables import each_row


@each_row(
    ("metadata", "is_warning", "is_info"),
    [
        ({"level": "error"}, True, True),
        ({"level": "CRITICAL", "more": 1}, True, True),
        ({"level": "Warn"}, True, True),
        ({"level": "info"}, False, True),
        ({"level": "debug"}, False, False),
        ({"level": "loud"}, False, True),
        ({"level": 7}, False, True),
        ({}, False, True),
        (None, False, True),
        ([1], False, True),
        (Raw(b'{"level":"warning"}'), True, True),
        (Raw(b'{"level":null}'), False, True),
        (Raw(b"{}"), False, True),
    ],
)
def test_a_line_has_the_level_that_its_metadata_name(
    metadata: object, is_warning: bool, is_info: bool
) -> None:
    assert is_at_least(metadata, "warning") is is_warning
    assert is_at_least(metadata, "info") is is_info
    assert is_at_least(metadata, "debug")
