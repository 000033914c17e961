"""Readers of topics accept or refuse; nothing else comes out of them, whatever comes in."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from servioticy.domain.letters import REASON_BYTES, clipped, headers, read_letter
from servioticy.domain.records import (
    DeadLetter,
    UnreadableRecord,
    read_emitted,
    read_record,
)

UPDATE = b'{"kind":"update","service_object":"%s","stream":"%s","timestamp":%s,"update":%s}'
EMITTED = b'{"service_object":"a","stream":"b","tenant":1,"version":1,"timestamp":1,"update":%s}'
BORDER = (
    b'{"kind":"border","source":[0,1],"provider":1,"updates":[["a","%s",1,[%s],{}],'
    b'["a","b",1,[],%s]]}'
)

UNREADABLE = {
    "half of a surrogate pair": UPDATE % (b"a", b"b", b"1", b'{"x":"\\ud800"}'),
    "the other half": UPDATE % (b"a", b"b", b"1", b'{"x":"\\udc00x"}'),
    "bytes that are no text": UPDATE % (b"a", b"b", b"1", b'{"x":"\xff"}'),
    "half of a pair in a name": UPDATE % (b"\\ud800", b"b", b"1", b"{}"),
    "NUL in a name": UPDATE % (b"a", b"\\u0000", b"1", b"{}"),
    "NUL in one of many names": b'{"kind":"release","service_objects":["a","\\u0000"],'
    b'"to_partition":1}',
    "NUL in a name of a border record": BORDER % (b"\\u0000", b"1", b"{}"),
    "NUL in one of many pairs": b'{"kind":"end","source":[0,1],"provider":1,"tenant":1,'
    b'"readers":["r"],"streams":[["a","b"],["a","\\u0000"]]}',
    "half of a pair in what crosses a border": BORDER % (b"a", b"1", b'{"x":"\\ud800"}'),
    "a step of a path that is too large": BORDER % (b"a", b"9" * 30, b"{}"),
    "a last update that is none": b'{"kind":"begin","source":[0,1],"provider":1,"tenant":1,'
    b'"readers":["r"],"streams":[["a","b",1,[]]]}',
    "a timestamp of thirty digits": UPDATE % (b"a", b"b", b"9" * 30, b"{}"),
    "a timestamp of 5,000 digits": UPDATE % (b"a", b"b", b"9" * 5000, b"{}"),
    "a partition that is no integer": b'{"kind":"release","service_objects":[],'
    b'"to_partition":2147483648}',
    "nested without end": UPDATE % (b"a", b"b", b"1", b"[" * 100_000),
    "nested without end, but closed": UPDATE
    % (b"a", b"b", b"1", b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no object": UPDATE % (b"a", b"b", b"1", b"[]"),
    "nothing": b"",
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_this_is_refused_with_a_reason(what: str) -> None:
    with pytest.raises(UnreadableRecord) as refused:
        read_record(UNREADABLE[what])

    assert str(refused.value)


def test_no_record_at_all_is_refused() -> None:
    """A tombstone: the key alone."""
    with pytest.raises(UnreadableRecord):
        read_record(None)


def test_nul_in_a_value_is_no_fault() -> None:
    """Devices may send it, and Postgres keeps it in json."""
    assert read_record(UPDATE % (b"a", b"b", b"1", b'{"x":"\\u0000"}'))
    assert read_record(BORDER % (b"b", b"1", b'{"x":"\\u0000"}'))


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)
PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00",
    b"\xed",
]
PIECES += [b"\xa0\x80", b"\xff", b"1e999", b"-0", b"0.5", b"null", b"\n", b" ", b"x", b"\x00"]
ANY_BYTES = some.binary() | some.lists(some.sampled_from(PIECES)).map(b"".join)
MANGLED = some.builds(
    lambda value, place, more: value[:place] + more + value[place:],
    JSON.map(lambda value: msgspec.json.encode({"x": value})),
    some.integers(0, 40),
    ANY_BYTES,
)


@given(ANY_BYTES | MANGLED)
def test_whatever_comes_is_accepted_or_refused(value: bytes) -> None:
    for read, text in (
        (read_record, value),
        (read_record, UPDATE % (b"a", b"b", b"1", value)),
        (read_record, UPDATE % (value, b"b", b"1", b"{}")),
        (read_emitted, value),
        (read_emitted, EMITTED % value),
    ):
        with contextlib.suppress(UnreadableRecord):
            read(text)


@given(some.integers(0, 2**63), some.text(), some.binary(), some.none() | some.integers(0, 2**40))
def test_a_letter_is_read_as_it_was_written(
    offset: int, reason: str, record: bytes, whole: int | None
) -> None:
    letter = DeadLetter(3, offset, reason, record, "emitted", whole)

    assert read_letter(letter.record, headers(letter)) == letter


@given(ANY_BYTES, some.lists(some.tuples(some.text(), some.binary())))
def test_a_foreign_letter_is_refused(value: bytes, found: list[tuple[str, bytes]]) -> None:
    with pytest.raises(UnreadableRecord):
        read_letter(value, found)


@pytest.mark.parametrize("sign", ["x", "é", "\N{PILE OF POO}", "\ud800"])
def test_a_reason_is_kept_up_to_its_limit(sign: str) -> None:
    """It may quote megabytes of what a stranger wrote."""
    size = len(sign.encode("utf-8", "replace"))
    fits = sign * (REASON_BYTES // size)

    assert clipped(fits).encode() == fits.encode("utf-8", "replace")
    assert len(clipped(fits + sign).encode()) <= REASON_BYTES
    assert clipped(fits + sign).endswith("…")
