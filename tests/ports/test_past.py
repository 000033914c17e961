"""What every PartitionStore tells of history while the pipeline computes."""

from __future__ import annotations

import random

import pytest
from port_builders import Storage

from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.effects import Activate
from servioticy.ports.past import MAX_BYTES, StoredPast, ToldPast, WantedPast


@pytest.fixture
def streams(storage: Storage) -> tuple[int, int, int]:
    """A tenant's two streams with updates: of the first at 1, 3 and 5, of the second at 3."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    store(storage, effect=Activate("so1", 1, 1))
    a, b = (storage.stored_as("so1", name) for name in "ab")
    for stream, at in ((b, 3), (a, 5), (a, 1), (a, 3)):
        store(storage, stored(storage, tenant, stream, at, b'{"n":%d}' % at))
    return tenant, a, b


def stored(storage: Storage, tenant: int, stream: int, at: int, document: bytes) -> StoredUpdate:
    return StoredUpdate(tenant, stream, at, document, 1, storage.store.all_progress()[0], 0)


def store(storage: Storage, *updates: StoredUpdate, effect: Activate | None = None) -> None:
    at = storage.store.all_progress()[0]
    storage.store.store(Batch(0, at, at + 1, at, updates, effect=effect))


def test_a_span_of_some_streams_is_told_by_timestamps(
    storage: Storage, streams: tuple[int, int, int]
) -> None:
    _, a, b = streams
    wanted = [WantedPast((a, b), 2, 5, 9), WantedPast((a,), -(2**63), 2**63 - 1, 3)]
    both, all_ = storage.store.past(wanted).answers

    at_3, at_5 = StoredPast(a, 3, b'{"n":3}'), StoredPast(a, 5, b'{"n":5}')
    assert both == [StoredPast(b, 3, b'{"n":3}'), at_3, at_5], "of equal ones as they came"
    assert all_ == [StoredPast(a, 1, b'{"n":1}'), at_3, at_5]


def test_single_updates_are_told_together(storage: Storage, streams: tuple[int, int, int]) -> None:
    _, a, b = streams
    wanted = [WantedPast((stream,), at, at, 1) for stream, at in ((a, 3), (b, 1), (b, 3))]
    found = storage.store.past([*wanted, WantedPast((), 3, 3, 1)]).answers

    three = b'{"n":3}'
    assert found == [[StoredPast(a, 3, three)], [], [StoredPast(b, 3, three)], []]
    assert storage.store.past([]) == ToldPast([])


def test_the_newest_of_each_stream_is_told_by_a_time(
    storage: Storage, streams: tuple[int, int, int]
) -> None:
    _, a, b = streams
    wanted = [
        WantedPast(some, -(2**63), until, len(some), is_newest=True)
        for some, until in (((a, b), 4), ((a, b), 2), ((b,), 2), ((), 9), ((a,), 2**63 - 1))
    ]
    first, second, *others = storage.store.past(wanted).answers

    three = b'{"n":3}'
    assert set(first or ()) == {StoredPast(a, 3, three), StoredPast(b, 3, three)}
    assert second == [StoredPast(a, 1, b'{"n":1}')]
    assert others == [[], [], [StoredPast(a, 5, b'{"n":5}')]]


def of_size(size: int, *, packs: bool = False) -> bytes:
    """A document of so many bytes, which Postgres makes small where it `packs`."""
    text = b"x" * size if packs else random.Random(size).randbytes(size).hex().encode()
    return b'{"n":"%b"}' % text[: size - 8]


def newest(until: int, *streams: int) -> WantedPast:
    return WantedPast(streams, -(2**63), until, len(streams), is_newest=True)


def test_what_is_more_is_not_told(storage: Storage, streams: tuple[int, int, int]) -> None:
    _, a, _ = streams
    assert storage.store.past([WantedPast((a,), 1, 5, 2)]) == ToldPast([None])


@pytest.mark.parametrize("packs", [False, True])
def test_an_answer_has_so_many_bytes_at_most(
    storage: Storage, streams: tuple[int, int, int], *, packs: bool
) -> None:
    """Also where they are few on disk."""
    tenant, a, b = streams
    half = MAX_BYTES // 2
    for at, stream, size in ((11, a, half), (12, b, half), (13, b, half + 1), (14, a, 2 * half)):
        store(storage, stored(storage, tenant, stream, at, of_size(size, packs=packs)))

    wanted = [
        WantedPast((a, b), 11, 12, 9),
        WantedPast((a, b), 11, 13, 9),
        WantedPast((a, b), 12, 13, 9),
        newest(12, a, b),
        newest(13, a, b),
        WantedPast((a,), 14, 14, 1),
        WantedPast((a, b), 13, 14, 9),
    ]
    each = [storage.store.past([one]) for one in wanted]
    assert [told.is_all for told in each] == [True] * len(wanted)
    assert [one and len(one) for told in each for one in told.answers] == [
        2,
        None,
        None,
        2,
        None,
        1,
        None,
    ]


def test_all_answers_together_have_so_much_room(
    storage: Storage, streams: tuple[int, int, int]
) -> None:
    """Single updates come first; what is too much by itself takes room as it is read, too."""
    tenant, a, b = streams
    for at in range(11, 21):
        store(storage, stored(storage, tenant, a, at, of_size(1000)))
    store(storage, stored(storage, tenant, b, 20, of_size(MAX_BYTES + 1, packs=True)))
    several, one = WantedPast((a,), 12, 14, 9), WantedPast((a,), 11, 11, 1)
    large = newest(20, b)

    def told(room: int, *wanted: WantedPast) -> tuple[list[int | None], bool]:
        found = storage.store.past(wanted, room)
        return [None if each is None else len(each) for each in found.answers], found.is_all

    assert told(4000, several, one) == ([3, 1], True)
    assert told(3999, several, one) == ([None, 1], False)
    assert told(999, several, one) == ([None, None], False)
    assert told(2999, one, several, one, newest(20, a)) == ([1, None, 1, None], False)
    assert told(3000, newest(15, a), one, newest(20, a)) == ([1, 1, 1], True)
    assert told(0, WantedPast((a,), 1, 2, 1), WantedPast((b,), 1, 1, 1)) == ([None, 0], False)
    assert told(MAX_BYTES + 999, large, newest(20, a)) == ([None, None], False)
    assert told(MAX_BYTES + 1000, large, newest(20, a)) == ([None, 1], True)
    assert told(MAX_BYTES, large, newest(20, a)) == ([None, None], False)
    assert told(MAX_BYTES, WantedPast((b,), 20, 20, 1)) == ([None], False)
    assert told(MAX_BYTES + 1, WantedPast((b,), 20, 20, 1)) == ([1], True)
