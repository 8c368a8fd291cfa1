"""Which trace a header names, and the ids of the spans below it."""

from __future__ import annotations

from astraflow.core.trace_context import TraceContext, parse_traceparent
from tests.tables import each_row

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SPAN}-01"


@each_row(
    ("text", "is_sampled"),
    [
        (HEADER, True),
        (f" {HEADER} ", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-fe", False),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_a_header_names_a_span(text: str, is_sampled: bool) -> None:
    assert parse_traceparent(text) == TraceContext(TRACE, SPAN, is_sampled)


@each_row(
    "text",
    [
        None,
        "",
        "00",
        HEADER.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n00-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 300,
        f"00_{TRACE}_{SPAN}_01",
    ],
)
def test_what_is_no_header_is_ignored(text: str | None) -> None:
    assert parse_traceparent(text) is None


def test_a_header_is_written_as_it_was_read() -> None:
    for header in (HEADER, f"00-{TRACE}-{SPAN}-00"):
        found = parse_traceparent(header)
        assert found is not None and found.header() == header


def test_a_child_has_an_id_of_its_own_that_is_always_the_same() -> None:
    parent = TraceContext(TRACE, SPAN, True)
    first, again, other = parent.child(0, 1), parent.child(0, 1), parent.child(0, 2)
    assert first == again != other
    assert (first.trace_id, first.is_sampled) == (TRACE, True)
    assert parse_traceparent(first.header()) == first
    assert parent.child(1, 11) != parent.child(11, 1)
