"""The hash chain of the audit: what is changed, removed, inserted or reordered later shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from astraflow.core.security.audit_chain import (
    BEFORE_FIRST,
    ChainHead,
    ChainReport,
    ChainVerifier,
    hash_of,
    head_of,
)
from tests.tables import each_row


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str = "default"
    at: int = 7
    who: str = "ann"
    action: str = "drain"
    worker: str = "w-1"
    corr: str | None = None
    code: str | None = None
    detail: bytes = b'{"subject":"caf\xc3\xa9"}'
    chain_number: int | None = None
    previous: bytes | None = None
    hash: bytes | None = None


def chained(count: int) -> list[Entry]:
    entries: list[Entry] = []
    previous = BEFORE_FIRST
    for number in range(1, count + 1):
        entry = Entry(at=number, chain_number=number, previous=previous)
        previous = hash_of(previous, number, entry)
        entries.append(msgspec.structs.replace(entry, hash=previous))
    return entries


def head(entries: list[Entry]) -> ChainHead:
    last = entries[-1]
    assert last.chain_number is not None
    assert last.hash is not None
    return ChainHead(last.chain_number, last.hash)


def verify(
    entries: Iterable[Entry], end: ChainHead, removed: int = 0, expected: Iterable[ChainHead] = ()
) -> ChainReport:
    verifier = ChainVerifier(end, removed, expected)
    for entry in entries:
        verifier.take(entry)
    return verifier.finish()


FIVE = chained(5)
END = head(FIVE)
OLD = Entry()


def changed(at: int, **fields: object) -> list[Entry]:
    made = list(FIVE)
    made[at] = msgspec.structs.replace(made[at], **fields)
    return made


def rehashed(at: int, **fields: object) -> list[Entry]:
    """Changed by somebody who computes the hash of this one entry again."""
    made = changed(at, **fields)
    entry = made[at]
    assert entry.previous is not None
    assert entry.chain_number is not None
    digest = hash_of(entry.previous, entry.chain_number, entry)
    made[at] = msgspec.structs.replace(entry, hash=digest)
    return made


def test_the_hash_can_be_computed_by_anybody() -> None:
    (entry,) = chained(1)
    text = json.dumps(
        ["default", 1, 1, "ann", "drain", "w-1", None, None, '{"subject":"café"}'],
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert entry.hash == sha256(bytes(32) + text.encode()).digest()


def test_a_chain_is_verified_from_its_first_entry_to_its_head() -> None:
    assert verify(FIVE, END) == ChainReport(head=END, first=1, last=5)


def test_a_chain_goes_on_behind_what_retention_has_removed() -> None:
    assert verify(FIVE[2:], END, removed=2) == ChainReport(head=END, first=3, last=5)
    assert verify([], END, removed=5) == ChainReport(head=END)
    assert verify([], ChainHead()) == ChainReport(head=ChainHead())


def test_entries_from_before_the_chain_are_counted_and_not_verified() -> None:
    report = verify([OLD, OLD, *FIVE], END)
    assert (report.problem, report.unchained, report.first) == (None, 2, 1)


@each_row("before", [head(FIVE[:3]), ChainHead()])
def test_entries_that_were_written_meanwhile_are_left_out(before: ChainHead) -> None:
    verifier = ChainVerifier(before, 0)
    for entry in FIVE:
        verifier.take(entry)
    report = verifier.finish(ends_at=5)
    assert (report.problem, report.last) == (None, before.number or None)


def test_an_entry_that_retention_has_removed_is_not_there() -> None:
    assert verify(FIVE, END, removed=2).problem == "entry 1 is there, and was removed by retention"


@each_row(
    ("entries", "says"),
    [
        (changed(1, who="bob"), "entry 2 was changed"),
        (changed(4, detail=b"{}"), "entry 5 was changed"),
        (changed(2, code="E.X"), "entry 3 was changed"),
        (changed(2, tenant="other"), "entry 3 was changed"),
        (changed(2, previous=BEFORE_FIRST), "entry 3 does not follow entry 2"),
        (changed(0, previous=b"1" * 32), "entry 1 does not begin the chain"),
        (rehashed(1, who="bob"), "entry 3 does not follow entry 2"),
        (rehashed(4, who="bob"), "entry 5 is not the one that the chain ended with"),
        (FIVE[:2] + FIVE[3:], "entry 3 is missing"),
        (FIVE[:1] + FIVE[2:1:-1] + FIVE[1:2], "entry 2 is missing"),
        (FIVE[:2] + FIVE[1:], "entry 2 stands behind entry 2"),
        ([*FIVE, FIVE[1]], "entry 2 stands behind entry 5"),
        (chained(6), "entry 6 stands behind entry 5, the end of the chain"),
        (changed(2, detail=b"\xff"), "entry 3 was changed"),
        (FIVE[1:], "entries 1 to 1 are missing"),
        (FIVE[:3], "entries 4 to 5 are missing"),
        ([], "entries 1 to 5 are missing"),
        ([*FIVE[:2], OLD, *FIVE[2:]], "an entry without a hash stands behind entry 2"),
        ([OLD, *FIVE[1:]], "entries without a hash stand before entry 2"),
    ],
)
def test_tampering_shows(entries: list[Entry], says: str) -> None:
    problem = verify(entries, END).problem
    assert problem is not None
    assert says in problem


def test_the_first_problem_is_kept() -> None:
    verifier = ChainVerifier(END, 0)
    for entry in changed(1, who="bob"):
        verifier.take(entry)
    verifier.take(OLD)
    assert verifier.problem is not None
    assert "entry 2 was changed" in verifier.problem


FORGED = chained(3)
LONGER = ChainHead(9, b"9" * 32)


@each_row(
    ("entries", "end", "removed", "expected", "says"),
    [
        (FIVE, END, 0, END, None),
        (FIVE, END, 0, head(FIVE[:2]), None),
        (FIVE[2:], END, 2, head(FIVE[:2]), None),
        ([], END, 5, END, None),
        (FIVE, END, 0, ChainHead(2, b"2" * 32), "entry 2 has another hash"),
        (FIVE[2:], END, 2, ChainHead(2, b"2" * 32), "entry 2 has another hash"),
        ([], END, 5, ChainHead(5, b"5" * 32), "entry 5 has another hash"),
        (FORGED, head(FORGED), 0, LONGER, "ends at entry 3, before the expected 9"),
        (FIVE[3:], END, 3, head(FIVE[:1]), "entry 1 is not kept any more"),
    ],
)
def test_a_head_that_was_noted_elsewhere_is_compared(
    entries: list[Entry], end: ChainHead, removed: int, expected: ChainHead, says: str | None
) -> None:
    problem = verify(entries, end, removed, [expected]).problem
    assert problem == says if says is None else says in (problem or "")


@each_row(
    ("text", "number"),
    [
        (f"3:{'ab' * 32}", 3),
        (f"3:{'AB' * 32}", 3),
        ("3", None),
        ("", None),
        (f"-3:{'ab' * 32}", None),
        (f"{'9' * 19}:{'ab' * 32}", None),
        (f"3:{'ab' * 31}", None),
        (f"3:{'xy' * 32}", None),
        (f"3:{'ab ' * 32}", None),
    ],
)
def test_a_head_is_read_from_text(text: str, number: int | None) -> None:
    found = head_of(text)
    assert (None if found is None else found.number) == number
    if found is not None:
        assert str(found) == text.lower()
