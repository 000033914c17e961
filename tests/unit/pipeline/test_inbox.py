"""Rows taken ahead of the work are bounded in bytes, whatever their number."""

from __future__ import annotations

import threading

import pytest

from pipeline.spark import inbox
from pipeline.spark.inbox import Inbox
from pipeline.work import Row


def rows(*sizes: int) -> list[Row]:
    return [Row(offset, b"x" * size) for offset, size in enumerate(sizes)]


def test_what_waits_is_taken_in_order_up_to_a_number() -> None:
    box = Inbox()
    for row in rows(1, 2, 3):
        box.put(row)

    assert box.take(2, 0) == rows(1, 2)
    assert box.take(2, 0) == [Row(2, b"xxx")]
    assert box.take(2, 0) == []


def test_what_is_taken_at_once_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that would be too much comes first the next time, alone if it must."""
    monkeypatch.setattr(inbox, "TAKEN_BYTES", 10)
    box = Inbox()
    for row in rows(4, 6, 1, 11):
        box.put(row)

    assert [len(row.value or b"") for row in box.take(9, 0) or ()] == [4, 6]
    assert [len(row.value or b"") for row in box.take(9, 0) or ()] == [1]
    assert [len(row.value or b"") for row in box.take(9, 0) or ()] == [11]
    assert box.bytes == 0


@pytest.mark.parametrize(("size", "waits"), [(10, False), (11, True)])
def test_the_reader_waits_where_too_much_waits(size: int, waits: bool) -> None:
    box = Inbox(max_bytes=10)
    box.put(Row(0, b"x" * size))
    reader = threading.Thread(target=box.wait_for_room)
    reader.start()
    if waits:
        reader.join(0.05)
        assert reader.is_alive()
        box.take(1, 0)
    reader.join(10)

    assert not reader.is_alive()


def test_a_failure_of_the_reader_comes_after_its_rows() -> None:
    box = Inbox()
    box.put(Row(0, b"x"))
    box.end(ValueError("the connection broke"))

    assert box.take(9, 0) == [Row(0, b"x")]
    with pytest.raises(ValueError, match="the connection broke"):
        box.take(9, 0)


def test_the_end_is_told_after_the_last_row() -> None:
    box = Inbox()
    box.end()

    assert box.take(9, 0) == []
    assert box.take(9, 0) is None
