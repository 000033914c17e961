"""What is emitted again, as nobody has acknowledged it, and in which order."""

from __future__ import annotations

import msgspec
from port_builders import Storage, document, documents

from servioticy.domain.records import EmittedRecord
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.effects import Erase


def test_forwarded_records_are_noted_per_origin(storage: Storage, stream: int) -> None:
    storage.store.store(Batch(0, 0, 1, 0, forwarded={1: 4, 2: 9}))
    storage.store.store(Batch(0, 1, 2, 0, forwarded={1: 5}))

    assert storage.store.forwarded(0) == {1: 5, 2: 9}
    assert storage.store.forwarded(1) == {}


def test_what_is_not_acknowledged_comes_in_the_order_it_was_made(
    storage: Storage, stream: int
) -> None:
    rows = [(9, 0, 1), (8, 1, 1), (7, 1, 0), (6, 2, 0), (5, 3, 0)]
    updates = [StoredUpdate(1, stream, at, document(at), 1, n, place) for at, n, place in rows]
    storage.store.store(Batch(0, 0, 4, 1, updates=updates))

    found = storage.store.not_acknowledged(0, 1, 2)

    assert found == [
        EmittedRecord("so1", "a", 1, 1, at, msgspec.Raw(document(at))) for at in (7, 8, 6)
    ]
    assert storage.store.not_acknowledged(1, 0, 9) == []


def test_what_a_later_update_of_the_batch_displaces_is_emitted_again(
    storage: Storage, stream: int
) -> None:
    """History has the later one; subscribers are to get both, once they are acknowledged."""
    updates = [StoredUpdate(1, stream, 5, document(n), 1, n, 0) for n in range(3)]
    storage.store.store(Batch(0, 0, 3, 0, updates=updates))

    again = storage.store.not_acknowledged(0, 0, 3)

    assert [bytes(each.update) for each in again] == [document(n) for n in range(3)]
    assert documents(storage, stream) == [document(2)]
    later = [StoredUpdate(1, stream, 6, document(n), 1, n, 0) for n in (3, 4)]
    storage.store.store(Batch(0, 3, 5, 2, updates=later))
    again = storage.store.not_acknowledged(0, 0, 5)
    assert [bytes(each.update) for each in again] == [document(n) for n in (2, 3, 4)]


def test_what_is_erased_is_not_emitted_again(storage: Storage, stream: int) -> None:
    """Nor is what it had displaced: whoever erases has waited for the acknowledgement."""
    updates = [StoredUpdate(1, stream, 5, document(n), 1, n, 0) for n in range(2)]
    storage.store.store(Batch(0, 0, 2, 0, updates=updates))

    storage.store.store(Batch(0, 2, 3, 2, effect=Erase("so1", "a", 1)))

    assert storage.store.not_acknowledged(0, 2, 3) == []
