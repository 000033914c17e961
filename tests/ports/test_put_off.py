"""What every PartitionStore promises of records that are put off."""

from __future__ import annotations

import pytest
from port_builders import Storage, document

from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.put_off import PutOff, TreeKey


def later(offset: int, tenant: int = 1, size: int = 4) -> PutOff:
    return PutOff(offset, tenant, "so1", b"\x00\xff" + b"x" * (size - 2))


def test_records_that_are_put_off_wait_with_the_progress_past_them(storage: Storage) -> None:
    """By tenant, oldest first, bytes as they came."""
    records = [later(0), later(1, 2), later(2), later(3)]
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 4, 0, put_off=records))

    assert storage.store.all_progress() == {0: 4}
    assert storage.store.waiting(0) == {1: 3, 2: 1}
    assert storage.store.put_off(0, 1, 2, 100) == [later(0), later(2)]
    assert storage.store.put_off(0, 2, 9, 100) == [later(1, 2)]
    assert storage.store.waiting(1) == {}
    assert storage.history.stored(0, [1, 2, 3]) == (4, {1: 0, 2: 1})
    assert storage.history.put_off(0, 1, 9) == 3
    assert storage.history.put_off(0, 1, 2) == 2


@pytest.mark.parametrize(("most_bytes", "found"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_what_is_taken_up_at_once_is_bounded_in_bytes(
    storage: Storage, most_bytes: int, found: int
) -> None:
    """It ends with the record that reaches the bound; one comes however large it is."""
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 3, 0, put_off=[later(n) for n in range(3)]))

    assert len(storage.store.put_off(0, 1, 9, most_bytes)) == found


def test_what_is_taken_up_waits_no_more_and_stays_until_it_is_emitted(
    storage: Storage, stream: int
) -> None:
    """A worker that dies in between emits it again, whatever progress says."""
    storage.store.store(Batch(0, 0, 2, 2, put_off=[later(0), later(1)]))
    update = StoredUpdate(1, stream, 5, document(7), 1, 0, 0)
    storage.store.store(Batch(0, 2, 2, 2, updates=[update], taken_up=[TreeKey(0)]))

    assert storage.store.waiting(0) == {1: 1}
    assert storage.store.taken_up(0) == [TreeKey(0)]
    again = storage.store.not_acknowledged(0, 2, 2)
    assert [bytes(each.update) for each in again] == [document(7)]
    storage.store.store(Batch(0, 2, 3, 2, emitted_late=[TreeKey(0), TreeKey(1)]))
    assert storage.store.taken_up(0) == []
    assert storage.store.not_acknowledged(0, 3, 3) == []
    assert storage.store.put_off(0, 1, 9, 100) == [later(1)]


@pytest.mark.parametrize(
    "record",
    [
        b'{"kind":"update","v":"' + b"x" * 20_000 + b"\\u0000\\\\'%s\"}",
        b"\x00\xff" + b"x" * 20_000,
        b"\x00" * 20_000,
        ("\N{SNOWMAN}'\\" * 8_000).encode(),
    ],
)
def test_long_records_come_back_as_they_were(storage: Storage, record: bytes) -> None:
    """They take another way than short ones, and what is no text takes that of those."""
    records = [later(0), later(1)._replace(record=record, tree=7), later(2)]
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 3, 0, put_off=records))

    assert storage.store.put_off(0, 1, 9, 10**6) == records


def test_a_long_record_that_has_waited_is_held(storage: Storage) -> None:
    """As a short one is."""
    record = later(0)._replace(record=b"x" * 20_000)
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, put_off=[record]))
    storage.store.store(Batch(0, 1, 1, 0, put_off=[record._replace(held=True)]))

    assert storage.store.put_off(0, 1, 9, 10**6) == []
    assert storage.store.waiting(0) == {}
