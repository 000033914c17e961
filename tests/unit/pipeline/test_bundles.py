"""Records of the log in one value: what the JVM packs is what the worker unpacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.spark import worker
from pipeline.spark.bundles import pack, unpack
from pipeline.spark.inbox import Inbox
from pipeline.work import Row

OFFSETS = st.integers(min_value=0, max_value=2**63 - 1)
ROWS = st.lists(st.builds(Row, OFFSETS, st.none() | st.binary(max_size=40)))


@given(ROWS)
def test_what_is_packed_comes_out_as_it_was(rows: list[Row]) -> None:
    assert unpack(pack(rows)) == rows


@pytest.mark.parametrize("value", [None, b"", b"\xff" * 12, b"x" * 2**20])
def test_each_value_ends_where_it_ends(value: bytes | None) -> None:
    """A record without a value is another than one with an empty value."""
    rows = [Row(0, b"before"), Row(2**40, value), Row(2**63 - 1, b"after")]

    assert unpack(pack(rows)) == rows


def test_the_bytes_are_those_that_the_jvm_writes() -> None:
    """As `deploy/java/bundles/servioticy/Waiting.java` says."""
    bundle = bytes.fromhex("0000000000000102 00000003 616263 0000000000000103 ffffffff")

    assert unpack(bundle) == [Row(258, b"abc"), Row(259, None)]
    assert pack(unpack(bundle)) == bundle


def test_the_reader_hands_over_all_bundles_of_all_batches() -> None:
    box = Inbox()
    worker.read([_batch([Row(0, b"a"), Row(1, b"b")]), _batch([Row(2, b"c")]), _batch([])], box)

    assert box.get(9, 0) == [Row(0, b"a"), Row(1, b"b"), Row(2, b"c")]
    assert box.get(9, 0) is None


def test_what_breaks_the_reading_is_raised_where_the_rows_are_taken() -> None:
    def broken() -> Iterator[Any]:
        yield _batch([Row(0, b"a")])
        raise EOFError("the JVM is gone")

    box = Inbox()
    worker.read(broken(), box)

    assert box.get(9, 0) == [Row(0, b"a")]
    with pytest.raises(EOFError, match="the JVM is gone"):
        box.get(9, 0)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pack(rows)], pa.binary())], ["value"])
