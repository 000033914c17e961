"""From the history to live: nothing lost, nothing twice."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery import handover, repeats
from delivery.handover import Handover, Overflow
from servioticy.domain.model import LastUpdate


def an_update(at: int, content: str = "") -> LastUpdate:
    return LastUpdate(at, f'{{"lastUpdate":{at},"x":"{content}"}}'.encode())


def test_what_was_read_from_the_history_is_not_sent_again() -> None:
    """It is stored before it is emitted: both ways bring it."""
    merge = Handover()
    merge.hold(an_update(3))
    merge.note_read([an_update(2), an_update(3)])
    merge.hold(an_update(2))

    assert merge.release() == []
    assert merge.is_repeat(an_update(3))


def test_held_updates_come_by_timestamp() -> None:
    merge = Handover()
    for at in (7, 5, 6):
        merge.hold(an_update(at))

    assert [update.timestamp for update in merge.release()] == [5, 6, 7]
    assert merge.release() == []


def test_an_update_that_replaces_another_of_its_timestamp_is_sent() -> None:
    """A device may correct itself: same timestamp, other content."""
    merge = Handover()
    merge.note_read([an_update(5, "wrong")])
    merge.hold(an_update(5, "right"))

    assert merge.release() == [an_update(5, "right")]


def test_a_late_update_behind_what_was_read_is_sent() -> None:
    """The page that would have held it is through; only the socket brings it now."""
    merge = Handover()
    merge.note_read([an_update(5), an_update(9)])
    merge.hold(an_update(6))

    assert merge.release() == [an_update(6)]


def test_too_much_held_back_is_an_overflow() -> None:
    """A slow reader of a long history must not fill our memory."""
    merge = Handover(max_held_bytes=100)
    with pytest.raises(Overflow):
        for at in range(100):
            merge.hold(an_update(at))


def test_exactly_the_limit_may_be_held_and_not_a_byte_more() -> None:
    """What stands around a document counts, too: many small ones are as heavy as a large one."""
    at_the_border = Handover(max_held_bytes=3 * handover.size(an_update(1)))
    for at in (1, 2, 3):
        at_the_border.hold(an_update(at))
    with pytest.raises(Overflow):
        Handover(max_held_bytes=handover.size(an_update(1)) - 1).hold(an_update(1))

    assert at_the_border.held_bytes == 3 * handover.size(an_update(1))
    at_the_border.release()
    assert at_the_border.held_bytes == 0


def test_what_is_counted_is_not_less_than_what_it_takes() -> None:
    """Of the smallest updates, where the objects around them are most of it."""
    merge = Handover(max_held_bytes=10**9)
    tracemalloc.start()
    try:
        merge.note_read(an_update(at) for at in range(10**12, 10**12 + 10_000))
        remembered = tracemalloc.get_traced_memory()[0]
        for at in range(2 * 10**12, 2 * 10**12 + 10_000):
            merge.hold(an_update(at))
        held = tracemalloc.get_traced_memory()[0] - remembered
    finally:
        tracemalloc.stop()

    assert remembered <= merge.remembered_bytes
    assert held <= merge.held_bytes


def test_what_is_forgotten_may_come_twice_and_takes_nothing() -> None:
    merge = Handover()
    merge.note_read([an_update(5)])
    merge.forget()

    assert merge.remembered_bytes == 0
    assert not merge.is_repeat(an_update(5))


def test_only_the_newest_read_are_remembered(monkeypatch) -> None:
    monkeypatch.setattr(repeats, "MAX_REMEMBERED", 3)
    merge = Handover()
    merge.note_read(an_update(at) for at in range(10))

    assert not merge.is_repeat(an_update(6))
    assert merge.is_repeat(an_update(7))


@given(st.data())
def test_every_update_comes_exactly_once(data) -> None:
    """Whatever was stored before the subscription, between, and after: all of it, once."""
    everything = [an_update(at) for at in range(30)]
    stored_first = data.draw(st.sets(st.sampled_from(everything)))
    later = [update for update in everything if update not in stored_first]
    merge, sent = Handover(), []
    stored, reached = set(stored_first), -1
    for update in data.draw(st.permutations(later)):
        if data.draw(st.booleans()):
            page = sorted(u for u in stored if u.timestamp > reached)[:5]
            merge.note_read(page)
            sent += page
            reached = page[-1].timestamp if page else reached
        stored.add(update)
        merge.hold(update)
    while page := sorted(u for u in stored if u.timestamp > reached)[:5]:
        merge.note_read(page)
        sent += page
        reached = page[-1].timestamp
    sent += merge.release()

    assert sorted(sent) == everything
