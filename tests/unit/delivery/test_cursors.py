"""Where somebody stands in the topic of emitted updates."""

from __future__ import annotations

from delivery.cursors import Cursor
from servioticy.domain.records import Position


def test_a_cursor_stands_behind_what_its_owner_got_in_each_partition() -> None:
    cursor = Cursor()
    for partition, offset in ((0, 7), (1, 3), (0, 8)):
        cursor.advance(Position(partition, offset))

    assert cursor.next_offsets() == {0: 9, 1: 4}
    assert cursor.has_passed(Position(0, 8))
    assert not cursor.has_passed(Position(0, 9))
    assert not cursor.has_passed(Position(2, 0))


def test_a_stored_cursor_stands_where_it_stood() -> None:
    cursor = Cursor()
    cursor.advance(Position(0, 7))
    again = Cursor(cursor.next_offsets())
    cursor.advance(Position(0, 8))

    assert again.next_offsets() == {0: 8}


def test_a_cursor_follows_into_a_topic_that_was_made_anew() -> None:
    """Or its owner would get nothing for as long as the old topic was."""
    cursor = Cursor({0: 1_000_000})
    cursor.advance(Position(0, 0))

    assert cursor.next_offsets() == {0: 1}


def test_a_cursor_passes_over_what_its_owner_does_not_need_and_never_goes_back() -> None:
    cursor = Cursor({0: 9, 1: 4})
    cursor.pass_up_to({0: 8, 1: 5, 2: 3})
    assert cursor.next_offsets() == {0: 9, 1: 5, 2: 3}

    cursor.begin_at(2, 100)
    cursor.begin_at(3, 100)

    assert cursor.next_offsets() == {0: 9, 1: 5, 2: 3, 3: 100}
