"""What every PartitionStore promises of a reader that moves while it is fed.

`r` has been fed in partition 1, is computed in partition 0 from now on, and what is still to come
to partition 1 is sent on to there.
"""

from __future__ import annotations

import pytest
from border_builders import A, Border
from port_builders import Storage, document

from servioticy.domain.model import LastUpdate
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, Delete, EndInputs, Release
from servioticy.ports.put_off import PutOff, TreeKey

LAST = LastUpdate(7, document(7))


@pytest.fixture
def border(storage: Storage) -> Border:
    found = Border(storage)
    found.in_force()
    found.begin(3, 7)
    found.put(1, Release(("r",), 0))
    return found


def moved(border: Border, offset: int = 9, last: int = 8) -> None:
    border.begin(offset, last, partition=0, moved_from=1)


def left(border: Border, offset: int = 9) -> None:
    border.end(offset, partition=1, moved=True)


def arrived(border: Border, offset: int = 9) -> None:
    border.end(offset, partition=0, arrived=True)


def test_inputs_stay_where_they_are_until_it_is_told(border: Border) -> None:
    assert (border.fed(1), border.fed(0)) == ([("r", 0, False)], [])
    assert border.last() == LAST


def test_it_awaits_what_is_sent_on(border: Border) -> None:
    """And what it knows has come along."""
    moved(border)
    assert (border.fed(1), border.fed(0)) == ([("r", 0, False)], [("r", 0, True)])
    assert border.last() == LAST

    left(border)
    assert (border.fed(1), border.fed(0)) == ([], [("r", 0, True)])

    arrived(border)
    assert (border.fed(1), border.fed(0)) == ([], [("r", 0, False)])
    assert (border.last(), border.is_open()) == (LAST, True)


def test_it_awaits_nothing_where_all_has_come_before(border: Border) -> None:
    left(border)
    assert (border.fed(1), border.fed(0)) == ([], [])
    arrived(border)

    moved(border)

    assert (border.fed(1), border.fed(0)) == ([], [("r", 0, False)])
    assert (border.last(), border.is_open()) == (LAST, True)


def test_who_has_left_is_not_fed_there_again_by_who_moves_it(border: Border) -> None:
    """Others that read the stream are: it would come to this one twice."""
    left(border)

    moved(border)

    assert (border.fed(1), border.fed(0)) == ([], [("r", 0, True)])
    arrived(border)
    assert border.fed(0) == [("r", 0, False)]


def test_the_end_of_an_earlier_move_is_not_awaited(border: Border) -> None:
    moved(border)
    left(border)
    arrived(border)
    border.put(0, Release(("r",), 1))
    border.begin(12, 7, moved_from=0)

    assert (border.fed(1), border.fed(0)) == ([("r", 1, True)], [("r", 1, False)])
    border.end(9, partition=1, arrived=True)
    assert border.fed(1) == [("r", 1, True)]
    left(border)  # once more, and too late
    assert border.fed(1) == [("r", 1, True)]
    border.end(12, partition=0, moved=True)
    border.end(12, partition=1, arrived=True)
    assert (border.fed(1), border.fed(0)) == ([("r", 1, False)], [])


def test_a_begin_that_is_sent_on_changes_only_what_it_knows(border: Border) -> None:
    """Before the move has begun here, and while it goes on."""
    border.begin(4, 5, partition=0, forwarded=True)
    assert border.last() == LastUpdate(5, document(5))
    assert (border.fed(1), border.fed(0)) == ([("r", 0, False)], [])

    moved(border)
    border.begin(5, None, partition=0, forwarded=True)
    assert border.last() is None
    assert (border.fed(1), border.fed(0)) == ([("r", 0, False)], [("r", 0, True)])


@pytest.mark.parametrize("is_moving", [False, True])
def test_what_is_sent_on_once_more_changes_nothing(border: Border, is_moving: bool) -> None:
    if is_moving:
        moved(border)
    border.begin(4, 5, partition=0, forwarded=True)

    border.begin(4, 6, partition=0, forwarded=True)
    border.begin(3, 6, partition=0, forwarded=True)
    border.end(4, partition=0)

    assert (border.last(), border.is_open()) == (LastUpdate(5, document(5)), True)


@pytest.mark.parametrize("is_moving", [False, True])
def test_an_end_that_is_sent_on_closes_until_it_begins_again(
    border: Border, is_moving: bool
) -> None:
    """The other partition goes on sending: it may be given anew before the move comes to it."""
    if is_moving:
        moved(border)
    border.end(4, partition=0)

    assert (border.is_open(), border.last()) == (False, None)
    assert border.fed(1) == [("r", 0, False)]
    assert border.fed(0) == ([("r", 0, True)] if is_moving else [])

    border.begin(5, 5, partition=0, forwarded=True)
    assert (border.is_open(), border.last()) == (True, LastUpdate(5, document(5)))


def test_an_end_that_comes_late_closes_nothing(border: Border) -> None:
    """It was sent on, and the stream may be read again since: nobody is told that it may not."""
    ended = EndInputs(border.reader, ("r",), (A,), (0, 5))
    assert border.store.closes(ended) == {"r": [A]}
    moved(border, 9)
    assert border.store.closes(ended) == {"r": [A]}, "it comes from where the reader was"
    border.begin(9, 8, partition=0, forwarded=True)
    assert border.store.closes(ended) == {}
    arrived(border, 9)

    assert border.store.closes(ended) == {}
    border.end(12, partition=0)
    assert border.store.closes(ended._replace(source=(0, 13))) == {}, "it is closed"


def test_who_has_begun_behind_a_place_is_told(border: Border) -> None:
    """What was made there, and is sent on, is none of it; not while more of that is awaited."""

    def behind(offset: int) -> bool:
        found = border.store.begun_behind(["r", "nobody"], [A], (0, offset))
        assert found in (set(), {("r", A)})
        return bool(found)

    assert [behind(each) for each in (2, 3, 4)] == [True, True, False]
    moved(border, 9)
    assert not behind(2)
    arrived(border, 9)
    assert [behind(each) for each in (8, 10)] == [True, False]
    assert border.store.begun_behind(["r"], [A], (1, 2)) == set()


# What is held meanwhile.


def held(offset: int, tenant: int) -> PutOff:
    return PutOff(offset, tenant, "r", b"r%d" % offset, tenant, held=True)


def offsets(border: Border) -> list[int]:
    found = border.store.put_off(0, border.reader, 9, 999)
    assert len(found) == border.store.waiting(0).get(border.reader, 0)
    return [each.offset for each in found]


def test_what_is_held_waits_for_its_turn_once_all_has_come(border: Border) -> None:
    """Of this tenant, and in this partition."""
    moved(border)
    other = border.storage.tenant("other")
    border.put(0, put_off=[held(9, border.reader), held(9, other)])
    border.put(1, put_off=[held(9, border.reader)])
    border.put(0, put_off=[held(10, border.reader)._replace(held=False)])
    assert offsets(border) == [10]
    assert border.storage.history.stored(0, [border.reader])[1] == {border.reader: 10}
    assert border.storage.history.put_off(0, border.reader, 9) == 1

    arrived(border)

    assert offsets(border) == [9, 10]
    (first, _) = border.store.put_off(0, border.reader, 9, 999)
    assert first == held(9, border.reader)._replace(held=False, was_held=True)
    assert border.store.waiting(0) == {border.reader: 2}
    assert border.store.waiting(1) == {}


def test_what_is_held_waits_for_all_that_the_tenant_awaits(border: Border) -> None:
    border.create(border.reader, "c", A)
    border.activate("c", (A,), (A,), 1)
    border.begin(4, 7, readers=("c",))
    border.put(1, Release(("c",), 0))
    border.begin(9, 8, partition=0, readers=("c", "r"), moved_from=1)
    border.put(0, put_off=[held(9, border.reader)])

    arrived(border)
    assert offsets(border) == []

    ended = EndInputs(border.reader, ("c",), (A,), (0, 9), arrived=True)
    border.put(0, ended)
    assert offsets(border) == [9]


def test_what_waits_may_have_to_be_held(border: Border) -> None:
    """Where the tenant has begun to await something since it came; it stays as it is otherwise."""
    moved(border)
    waits = held(9, border.reader)._replace(held=False)
    border.put(0, put_off=[waits])
    assert border.store.awaiting(0) == {border.reader: 0}

    border.put(0, put_off=[waits._replace(held=True, record=b"another")])

    assert offsets(border) == []
    assert border.store.awaiting(0) == {border.reader: 1}
    arrived(border)
    assert border.store.awaiting(0) == {}
    assert border.store.put_off(0, border.reader, 9, 999) == [waits._replace(was_held=True)]


@pytest.mark.parametrize("how", ["deleted", "named no more"])
def test_who_awaits_and_goes_holds_nothing_up(border: Border, how: str) -> None:
    moved(border)
    border.put(0, put_off=[held(9, border.reader)])

    border.put(0, Delete("r") if how == "deleted" else Activate("r", 1, 99))

    assert offsets(border) == [9]


def test_what_is_held_is_not_taken_up_and_can_be_told_apart(border: Border) -> None:
    moved(border)
    border.put(0, put_off=[held(9, border.reader)])
    arrived(border)

    border.store.store(Batch(0, *at(border), 0, taken_up=[TreeKey(9, border.reader)]))

    assert border.store.taken_up(0) == [TreeKey(9, border.reader)]
    assert offsets(border) == []


def at(border: Border) -> tuple[int, int]:
    progress = border.store.begin(0)
    return progress.next_offset, progress.next_offset
