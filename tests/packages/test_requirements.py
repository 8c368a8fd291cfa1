"""Which Python a package may run on."""

from __future__ import annotations

import json

import pytest

from astraflow.core import errors
from astraflow.core.workflow.decoding import decode_manifest
from astraflow.packages import check_python
from astraflow.packages.requirements import is_met


@pytest.mark.parametrize(
    ("requires", "version", "expected"),
    [
        (">=3.10,<3.12", "3.11.7", True),
        (">=3.10,<3.12", "3.12.0", False),
        (">=3.10,<3.12", "3.9.19", False),
        (">=3.11.8", "3.11.7", False),
        (">3.11", "3.11.7", True),
        ("<=3.11", "3.11.0", True),
        ("<=3.11", "3.11.1", False),
        ("==3.11.*", "3.11.7", True),
        ("==3.1.*", "3.11.7", False),
        ("==3.0.*", "3.11.7", False),
        ("!=3.11.*", "3.11.7", False),
        ("!=3.11.6", "3.11.7", True),
        ("==3.11.7", "3.11.7", True),
        ("~=3.10", "3.11.7", True),
        ("~=3.10.2", "3.11.7", False),
        ("~=3.10", "4.0.0", False),
        ("<3.12rc1", "3.12.0", False),
        (" >= 3.10 , < 4 ", "3.11.7", True),
    ],
)
def test_clauses_are_kept_as_pep_440_says(requires: str, version: str, expected: bool) -> None:
    assert is_met(requires, version) is expected


def test_a_python_that_does_not_fit_is_refused_with_both_versions() -> None:
    document = {
        "name": "demo",
        "version": "1.0.0",
        "schemaVersion": "1.0.0",
        "python": {"requires": "<3"},
    }
    manifest = decode_manifest(json.dumps(document).encode())
    with pytest.raises(errors.Refused, match=r"<3.*3\.11\.7") as caught:
        check_python(manifest, "3.11.7")
    assert caught.value.code is errors.PKG_INCOMPATIBLE
    check_python(manifest, "2.7.18")
