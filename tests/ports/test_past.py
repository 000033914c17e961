"""What every PartitionStore tells of history while the pipeline computes."""

from __future__ import annotations

import pytest
from port_builders import Storage

from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.effects import Activate
from servioticy.ports.past import MAX_BYTES, StoredPast, WantedPast


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
    both, all_ = storage.store.past(wanted)

    at_3, at_5 = StoredPast(a, 3, b'{"n":3}'), StoredPast(a, 5, b'{"n":5}')
    assert both == [StoredPast(b, 3, b'{"n":3}'), at_3, at_5], "of equal ones as they came"
    assert all_ == [StoredPast(a, 1, b'{"n":1}'), at_3, at_5]


def test_single_updates_are_told_together(storage: Storage, streams: tuple[int, int, int]) -> None:
    _, a, b = streams
    wanted = [WantedPast((stream,), at, at, 1) for stream, at in ((a, 3), (b, 1), (b, 3))]
    found = storage.store.past([*wanted, WantedPast((), 3, 3, 1)])

    three = b'{"n":3}'
    assert found == [[StoredPast(a, 3, three)], [], [StoredPast(b, 3, three)], []]
    assert storage.store.past([]) == []


def test_the_newest_of_each_stream_is_told_by_a_time(
    storage: Storage, streams: tuple[int, int, int]
) -> None:
    _, a, b = streams
    wanted = [
        WantedPast(some, -(2**63), until, len(some), is_newest=True)
        for some, until in (((a, b), 4), ((a, b), 2), ((b,), 2), ((), 9), ((a,), 2**63 - 1))
    ]
    first, second, *others = storage.store.past(wanted)

    three = b'{"n":3}'
    assert set(first or ()) == {StoredPast(a, 3, three), StoredPast(b, 3, three)}
    assert second == [StoredPast(a, 1, b'{"n":1}')]
    assert others == [[], [], [StoredPast(a, 5, b'{"n":5}')]]


def test_what_is_more_is_not_told(storage: Storage, streams: tuple[int, int, int]) -> None:
    tenant, a, _ = streams
    assert storage.store.past([WantedPast((a,), 1, 5, 2)]) == [None]
    large = b'{"n":"%b"}' % (b"x" * (MAX_BYTES // 2))
    for at in (11, 12):
        store(storage, stored(storage, tenant, a, at, large))

    assert storage.store.past([WantedPast((a,), 11, 12, 9)]) == [None]
    assert len(storage.store.past([WantedPast((a,), 11, 11, 9)])[0] or ()) == 1
