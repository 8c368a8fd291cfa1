from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.workflow.bindings import MISSING, BadPath, compile_path, read, write
from tests.tables import each_row

segments = st.text(st.characters(categories=["L", "N"], max_codepoint=0x17F), min_size=1).filter(
    lambda text: not text.isdecimal() and text not in ("prototype",)
)
documents = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "0", "1"]), inner, max_size=3)
    ),
    max_leaves=8,
)
paths = st.lists(st.sampled_from(["a", "b", "0", "1", "7"]), max_size=4).map(tuple)


@pytest.mark.parametrize("text", ["results.page.url", "/results/page/url"])
def test_both_spellings_mean_the_same(text: str) -> None:
    assert compile_path(text) == ("results", "page", "url")


def test_a_pointer_can_name_a_key_with_dots_slashes_and_tildes() -> None:
    assert compile_path("/results/a.b/c~1d/~01") == ("results", "a.b", "c/d", "~1")


@each_row(
    "text",
    [
        "",
        "/",
        ".",
        "results.",
        ".results",
        "results..page",
        "/results//page",
        "/results/../x",
        "/results/./x",
        "results.__proto__.x",
        "/results/__proto__",
        "results.constructor.prototype.x",
        "results.10000",
        "results.1000000000",
        "results." + "9" * 400,
        "results.\u202e",
        "results.a\nb",
        "a" * 513,
        ".".join("a" * 33),
    ],
)
def test_a_path_that_may_not_be_used_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(BadPath) as refusal:
        compile_path(text)
    assert str(refusal.value)


def test_the_largest_index_and_the_longest_path_are_taken() -> None:
    assert compile_path("results.9999") == ("results", "9999")
    assert len(compile_path(".".join("a" * 32))) == 32


@given(st.lists(segments, min_size=1, max_size=8))
def test_dotted_and_pointer_spellings_compile_alike(parts: list[str]) -> None:
    assert compile_path(".".join(parts)) == compile_path("/" + "/".join(parts)) == tuple(parts)


@each_row(
    ("path", "expected"),
    [
        ((), {"a": [{"b": None}], "1": "one"}),
        (("a", "0", "b"), None),
        (("1",), "one"),
        (("a", "1"), MISSING),
        (("a", "x"), MISSING),
        (("x",), MISSING),
        (("1", "x"), MISSING),
        (("x", "y"), MISSING),
    ],
)
def test_reading_follows_keys_and_indexes(path: tuple[str, ...], expected: Any) -> None:
    assert read(path, {"a": [{"b": None}], "1": "one"}) == expected


def test_missing_is_not_null_and_says_what_it_is() -> None:
    assert read(("a",), {"a": None}) is None
    assert repr(MISSING) == "MISSING"


@each_row(
    ("path", "document", "expected"),
    [
        ((), {"a": 1}, "new"),
        (("a",), {"a": 1, "b": 2}, {"a": "new", "b": 2}),
        (("a", "b"), {}, {"a": {"b": "new"}}),
        (("a", "b"), {"a": 5}, {"a": {"b": "new"}}),
        (("a", "1"), {"a": [1, 2, 3]}, {"a": [1, "new", 3]}),
        (("a", "4"), {"a": [1]}, {"a": [1, None, None, None, "new"]}),
        (("a", "0", "b"), {"a": [{"c": 1}]}, {"a": [{"c": 1, "b": "new"}]}),
        (("a", "x"), {"a": [1]}, {"a": {"x": "new"}}),
        (("a", "0"), {}, {"a": {"0": "new"}}),
    ],
)
def test_writing_makes_what_is_missing_and_keeps_the_rest(
    path: tuple[str, ...], document: Any, expected: Any
) -> None:
    assert write(path, document, "new") == expected


@given(paths, documents)
def test_what_was_written_is_read_back_and_the_original_stays(
    path: tuple[str, ...], document: Any
) -> None:
    before = repr(document)
    changed = write(path, document, "value")
    assert read(path, changed) == "value"
    assert repr(document) == before
