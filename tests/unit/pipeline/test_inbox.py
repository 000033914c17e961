"""Rows taken ahead of the work are bounded in bytes and in number."""

from __future__ import annotations

import threading

import pytest

from pipeline.spark import inbox
from pipeline.spark.inbox import Inbox
from pipeline.work import Row
from servioticy import gathering


def rows(first: int, end: int) -> list[Row]:
    return [Row(offset, b"x") for offset in range(first, end)]


def test_what_waits_is_taken_in_order_up_to_a_number() -> None:
    """Of a bundle that was too much the rest comes first the next time."""
    box = Inbox()
    box.put(rows(0, 1), 1)
    box.put(rows(1, 5), 4)
    box.put(rows(5, 6), 1)

    assert box.get(3, 0) == rows(0, 3)
    assert box.get(1, 0) == rows(3, 4)
    assert box.get(9, 0) == rows(4, 6)
    assert box.get(9, 0) == []


def test_what_is_taken_at_once_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle is taken whole, however large."""
    monkeypatch.setattr(inbox, "GET_BYTES", 10)
    box = Inbox()
    for offset, size in enumerate((4, 5, 11, 10, 1)):
        box.put(rows(offset, offset + 1), size)

    assert box.get(9, 0) == rows(0, 3)
    assert box.get(9, 0) == rows(3, 4)
    assert box.get(9, 0) == rows(4, 5)


@pytest.mark.parametrize(
    ("number", "size", "waits"), [(3, 10, False), (3, 11, True), (4, 10, True)]
)
def test_the_reader_waits_where_too_much_waits(number: int, size: int, waits: bool) -> None:
    box = Inbox(max_bytes=10, max_rows=3)
    box.put(rows(0, number), size)
    reader = threading.Thread(target=box.wait_for_room)
    reader.start()
    if waits:
        reader.join(0.05)
        assert reader.is_alive()
        box.get(1, 0)
    reader.join(10)

    assert not reader.is_alive()


def test_a_row_is_waited_for() -> None:
    box = Inbox()
    threading.Timer(0.05, box.put, (rows(0, 1), 1)).start()

    assert box.get(9, 10) == rows(0, 1)


def test_a_bundle_of_nothing_is_no_row() -> None:
    """The last one of a Spark task is."""
    box = Inbox()
    box.put([], 0)
    box.put(rows(0, 1), 1)

    assert box.get(9, 0) == rows(0, 1)


def test_a_failure_of_the_reader_comes_after_its_rows() -> None:
    box = Inbox()
    box.put(rows(0, 2), 2)
    box.end(ValueError("the connection broke"))

    assert box.get(1, 0) == rows(0, 1)
    assert box.get(9, 0) == rows(1, 2)
    with pytest.raises(ValueError, match="the connection broke"):
        box.get(9, 0)


def test_the_end_is_told_after_the_last_row() -> None:
    box = Inbox()
    box.end()

    assert box.get(9, 0) == []
    assert box.get(9, 0) is None


def test_what_was_handed_over_is_handed_over_again_from_an_offset_on() -> None:
    """With what comes after it, which was in the same bundle or not, in order and once."""
    box = Inbox()
    box.put(rows(0, 3), 3)
    box.put(rows(3, 6), 3)
    box.put(rows(6, 7), 1)
    assert box.get(5, 0) == rows(0, 5)

    assert box.rewind(2)

    assert box.get(9, 0) == rows(2, 7)
    assert box.get(9, 0) == []


def test_what_is_not_kept_any_more_is_not_handed_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the newest so many bytes are kept, and the bundle that they begin in."""
    monkeypatch.setattr(inbox, "KEPT_BYTES", 10)
    box = Inbox()
    for number in range(4):
        box.put(rows(2 * number, 2 * number + 2), 6)
        box.get(9, 0)

    assert not box.rewind(3)
    assert not box.rewind(8)
    assert box.rewind(4)
    assert box.get(9, 0) == rows(4, 8)


def test_under_load_what_comes_a_little_later_comes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LONGEST_SECONDS", 10.0)
    monkeypatch.setattr(gathering, "PART", 1e9)
    box = Inbox()
    box.put(rows(0, 2), 2)
    box.get(9, 0)
    box.put(rows(2, 3), 1)
    threading.Timer(0.05, box.put, (rows(3, 4), 1)).start()

    assert box.get(2, 0) == rows(2, 4)


def test_after_one_alone_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LONGEST_SECONDS", 10.0)
    monkeypatch.setattr(gathering, "PART", 1e9)
    box = Inbox()
    box.put(rows(0, 1), 1)
    box.get(9, 0)
    box.put(rows(1, 2), 1)
    another = threading.Timer(2.0, box.put, (rows(2, 3), 1))
    another.start()

    found = box.get(2, 0)

    another.cancel()
    assert found == rows(1, 2), "whoever waited would have had another"
