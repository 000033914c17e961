"""Results that are taken back are no rows any more; they are emitted, and computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from port_builders import TAKEN_BACK, Storage, a_batch, document, documents, key

from servioticy.domain.model import LastUpdate
from servioticy.ports.batches import Batch, StoredState, StoredUpdate
from servioticy.ports.effects import Erase


def row(stream: int, at: int, value: int, offset: int, *, back: bool = False) -> StoredUpdate:
    return StoredUpdate(1, stream, at, document(value), 1, offset, value, takes_back=back)


def store(storage: Storage, *updates: StoredUpdate) -> Mapping[int, int]:
    first = storage.store.all_progress()[0]
    return storage.store.store(Batch(0, first, first + 1, 0, updates))


def last(storage: Storage, stream: int) -> tuple[int, bytes] | None:
    found = storage.store.last_updates([stream]).get(stream)
    return None if found is None else (found.timestamp, found.document)


def emitted(storage: Storage, since: int = 0) -> Sequence[bytes]:
    return [bytes(each.update) for each in storage.store.not_acknowledged(0, since, 99)]


def test_its_row_goes_and_it_is_still_emitted_and_computed_from(
    storage: Storage, stream: int
) -> None:
    """Else who computes on would go on otherwise than who begins anew."""
    for at, value in ((5, 1), (7, 2)):
        store(storage, row(stream, at, value, 0))
    replaced = store(storage, row(stream, 7, 33, 2, back=True))

    assert replaced[stream] == len(document(2)) - len(document(33)), "that is kept instead"
    assert documents(storage, stream) == [document(1)]
    newest = storage.history.last_update(key(stream))
    assert newest is not None and newest.timestamp == 5
    assert last(storage, stream) == (7, document(33))
    assert emitted(storage, 2) == [document(33)]


def test_one_behind_others_goes_as_well_and_is_computed_from_by_nobody(
    storage: Storage, stream: int
) -> None:
    for at, value in ((5, 1), (7, 2)):
        store(storage, row(stream, at, value, 0))
    replaced = store(storage, row(stream, 5, 3, 2, back=True))

    assert replaced[stream] == len(document(1))
    assert documents(storage, stream) == [document(2)]
    assert last(storage, stream) == (7, document(2))


def test_what_is_as_new_or_newer_takes_its_place(storage: Storage, stream: int) -> None:
    store(storage, row(stream, 7, 1, 0))
    store(storage, row(stream, 7, 2, 1, back=True))
    store(storage, row(stream, 6, 3, 2))
    assert last(storage, stream) == (7, document(2))

    store(storage, row(stream, 7, 4, 3))
    assert last(storage, stream) == (7, document(4))
    store(storage, row(stream, 7, 5, 4, back=True))
    assert last(storage, stream) == (7, document(5))
    storage.store.store(a_batch(stream, 5, at=8, value=6))
    assert last(storage, stream) == (8, document(6))
    assert documents(storage, stream) == [document(3), document(6)]


def test_where_a_result_as_new_is_there_it_is_kept_no_longer(
    storage: Storage, stream: int
) -> None:
    """Where that goes with a backfill, the old one must not be the last again."""
    store(storage, row(stream, 7, 1, 0, back=True))
    store(storage, row(stream, 6, 2, 1)._replace(ends_taken_back=True))
    assert (last(storage, stream), storage.rows(TAKEN_BACK)) == ((7, document(1)), 1)

    replaced = store(storage, row(stream, 7, 3, 2)._replace(ends_taken_back=True))
    assert replaced[stream] == len(document(1))
    assert storage.rows(TAKEN_BACK) == 0
    store(storage, row(stream, 8, 4, 3, back=True))
    newer = row(stream, 9, 5, 4)._replace(is_new=True, ends_taken_back=True)
    replaced = store(storage, newer, row(stream, 5, 6, 4, back=True))

    assert replaced[stream] == len(document(4))
    assert storage.rows(TAKEN_BACK) == 0
    assert last(storage, stream) == (9, document(5))


def test_of_what_is_taken_back_without_a_word_nothing_is_emitted(
    storage: Storage, stream: int
) -> None:
    """As code made nothing of that; what is computed from stays as it was."""
    for at, value in ((5, 1), (7, 2)):
        store(storage, row(stream, at, value, 0))
    unsaid = row(stream, 7, 2, 2, back=True)._replace(is_sent=False)
    replaced = store(storage, unsaid)

    assert not replaced[stream], "it is kept"
    assert documents(storage, stream) == [document(1)]
    assert last(storage, stream) == (7, document(2))
    assert emitted(storage, 2) == []

    store(storage, row(stream, 8, 3, 3), row(stream, 8, 3, 3, back=True)._replace(is_sent=False))
    assert documents(storage, stream) == [document(1)]
    assert emitted(storage, 3) == [document(3)], "it was out before"


def test_of_one_batch_the_last_word_counts(storage: Storage, stream: int) -> None:
    """Subscribers get all of them."""
    other = storage.stream_id("so1", "b")
    made = [
        row(stream, 5, 1, 0),
        row(stream, 5, 2, 0, back=True),
        row(stream, 6, 33, 0, back=True),
        row(other, 5, 4, 0, back=True),
        row(other, 5, 5, 0),
        row(stream, 4, 6, 0, back=True),
    ]
    replaced = store(storage, *made)

    assert {number: size for number, size in replaced.items() if size} == {
        stream: len(document(1)) - len(document(33))
    }
    assert documents(storage, stream) == []
    assert documents(storage, other) == [document(5)]
    assert last(storage, stream) == (6, document(33))
    assert last(storage, other) == (5, document(5))
    assert emitted(storage) == [document(each) for each in (1, 2, 4, 5, 6, 33)]


def test_the_state_of_the_stream_stays_and_nothing_of_it_where_the_stream_is_erased(
    storage: Storage, stream: int
) -> None:
    state = StoredState(1, stream, b"state")
    storage.store.store(Batch(0, 0, 1, 0, [row(stream, 5, 1, 0)], states=[state]))
    store(storage, row(stream, 5, 2, 1, back=True))
    assert storage.store.last_updates([stream]) == {stream: LastUpdate(5, document(2), b"state")}

    storage.store.store(Batch(0, 2, 3, 2, effect=Erase("so1", "a", 1)))
    assert storage.store.last_updates([stream]) == {}
