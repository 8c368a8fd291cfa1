"""When `astra up` opens a browser without being asked."""

from __future__ import annotations

import pytest

from astraflow.cli.web_browser import sees_browser


@pytest.mark.parametrize(
    ("environ", "is_terminal", "platform", "expected"),
    [
        ({"DISPLAY": ":0"}, True, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True, "linux", True),
        ({"DISPLAY": ""}, True, "linux", False),
        ({}, True, "linux", False),
        ({"BROWSER": "w3m"}, True, "linux", True),
        ({}, True, "darwin", True),
        ({}, False, "darwin", False),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "1 2 3 4"}, True, "linux", False),
        ({"DISPLAY": ":0", "CI": "true"}, True, "linux", False),
    ],
)
def test_a_browser_opens_only_where_somebody_sees_it(
    environ: dict[str, str], is_terminal: bool, platform: str, expected: bool
) -> None:
    assert sees_browser(environ, is_terminal=is_terminal, platform=platform) is expected
