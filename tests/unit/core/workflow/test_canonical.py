from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.workflow.canonical import canonical, file_name, with_new_ids

A, B, W = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abf")
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.dictionaries(
    st.text(), st.recursive(st.none() | NUMBERS | st.text(), st.lists, max_leaves=5)
)


@given(DOCUMENTS)
def test_equal_documents_are_equal_bytes_and_are_read_back(document: dict[str, Any]) -> None:
    turned = dict(reversed(list(document.items())))
    text = canonical(document)
    assert text == canonical(turned)
    assert msgspec.json.decode(text) == document
    assert canonical(msgspec.json.decode(text)) == text


def test_a_file_has_a_line_for_each_value() -> None:
    assert canonical({"b": [1, {"d": 2, "c": 3}], "a": "ä"}).decode() == (
        '{\n  "a": "ä",\n  "b": [\n    1,\n    {\n      "c": 3,\n      "d": 2\n    }\n  ]\n}\n'
    )


def test_a_file_is_named_by_name_and_id() -> None:
    assert file_name({"id": W, "metadata": {"name": "Nightly: Report (ü)!"}}) == (
        "nightly-report-ffffffff.json"
    )
    assert file_name({"id": W}) == "workflow-ffffffff.json"
    assert file_name({"id": W, "metadata": None}, is_long=True) == f"workflow-{W}.json"
    assert len(file_name({"id": W, "metadata": {"name": "../" + "x" * 500}})) < 80


def test_new_ids_are_everywhere_where_the_old_ones_were() -> None:
    document = {
        "id": W,
        "nodes": [{"id": A}, {"id": B, "middlewares": [A], "when": f"=nodes['{A}'].value"}],
        "edges": [{"source": {"node": A}, "target": {"node": B}, "id": "e"}],
        "other": "cccccccc-0000-4000-8000-000000000000",
    }
    numbers = count()
    changed = with_new_ids(document, lambda: f"00000000-0000-4000-8000-{next(numbers):012}")
    text = msgspec.json.encode(changed).decode()
    assert not any(old in text for old in (A, B, W))
    assert changed["other"] == document["other"]
    first, second = (node["id"] for node in changed["nodes"])
    assert changed["nodes"][1]["middlewares"] == [first]
    assert changed["nodes"][1]["when"] == f"=nodes['{first}'].value"
    assert changed["edges"][0] == {"id": "e", "source": {"node": first}, "target": {"node": second}}
