"""Who may store in a partition, and how far it has come: claims, fences, progress."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from port_builders import Storage, a_batch, document, documents, told

from servioticy.errors import Fenced, Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate
from servioticy.ports.put_off import PutOff


def test_a_new_partition_begins_at_zero(storage: Storage) -> None:
    assert storage.store.begin(1) == (0, 0, 0)
    assert storage.store.all_progress() == {1: 0}
    assert storage.history.progress(1) == 0


def test_late_work_is_stored_beside_the_batches(storage: Storage, stream: int) -> None:
    """By the claim, wherever progress stands, in another thread too; and it moves nothing."""
    storage.store.begin(0)
    late = replace(a_batch(stream, 0, at=1, value=1), claim=storage.store.claim(0))
    storage.store.store(a_batch(stream, 0, at=2, value=2))
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(storage.store.store, late).result()
        with pytest.raises(Fenced):
            elsewhere.submit(storage.store.store, replace(late, claim=late.claim + 1)).result()

    assert storage.store.all_progress() == {0: 1}
    assert documents(storage, stream) == [document(1), document(2)]


def test_late_work_of_an_earlier_claim_is_refused(storage: Storage, stream: int) -> None:
    """Also where nobody else has the partition yet, and where nothing has moved."""
    storage.store.begin(0)
    late = replace(a_batch(stream, 0, at=1, value=1), claim=storage.store.claim(0))
    storage.store.end(0)
    for _ in range(2):
        with pytest.raises(Fenced):
            storage.store.store(late)
        storage.other_store.begin(0)
    with pytest.raises(Fenced):
        storage.store.claim(0)

    assert documents(storage, stream) == []


def test_a_second_worker_waits_until_the_first_gives_up(storage: Storage) -> None:
    """Two pipelines on one log: the second is a standby, not a rival."""
    storage.store.begin(0)
    storage.store.begin(0)
    with pytest.raises(Unavailable):
        storage.other_store.begin(0)
    assert storage.other_store.begin(1) == (0, 0, 0)

    storage.store.end(0)

    assert storage.other_store.begin(0) == (0, 0, 0)


def test_readers_see_no_progress_where_nothing_began(storage: Storage) -> None:
    assert storage.history.progress(7) == 0
    assert storage.store.all_progress() == {}


def test_progress_is_stored_with_the_updates(storage: Storage, stream: int) -> None:
    storage.store.store(a_batch(stream, 0, at=5, value=1))

    assert storage.store.begin(0) == (1, 0, 0)
    assert storage.history.progress(0) == 1
    assert documents(storage, stream) == [document(1)]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_second_worker_is_fenced_and_stores_nothing(
    storage: Storage, stream: int, is_new: bool
) -> None:
    storage.store.store(a_batch(stream, 0, at=5, value=1))

    with pytest.raises(Fenced):
        storage.store.store(told(a_batch(stream, 0, at=6, value=2), is_new))
    assert documents(storage, stream) == [document(1)]
    assert storage.store.begin(0) == (1, 0, 0)


def test_a_partition_that_never_began_is_fenced(storage: Storage, stream: int) -> None:
    with pytest.raises(Fenced):
        storage.store.store(replace(a_batch(stream, 0, at=5, value=1), partition=1))


def test_emitted_offset_never_goes_back(storage: Storage, stream: int) -> None:
    storage.store.store(Batch(0, 0, 10, emitted_offset=7))
    storage.store.store(Batch(0, 10, 11, emitted_offset=3))

    assert storage.store.begin(0) == (11, 0, 7)


def test_a_definition_that_was_put_off_comes_into_force_beside_and_once(storage: Storage) -> None:
    """Or not at all, where another worker has the partition by now."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    record = PutOff(0, tenant, "so1", b"a definition")
    storage.store.store(Batch(0, 0, 1, 1, put_off=[record]))
    effect, claim = Activate("so1", 1, 1), storage.store.claim(0)
    late = Batch(0, 1, 1, 1, effect=effect, taken_up=[record.key], claim=claim)

    with ThreadPoolExecutor(1) as elsewhere:
        with pytest.raises(Fenced):
            elsewhere.submit(storage.store.store, replace(late, claim=claim + 1)).result()
        assert [each.version for each in storage.store.component("so1")] == [None]
        assert storage.store.waiting(0) == {tenant: 1}
        elsewhere.submit(storage.store.store, late).result()

    assert [each.version for each in storage.store.component("so1")] == [1]
    assert (storage.store.waiting(0), storage.store.taken_up(0)) == ({}, [record.key])
    assert storage.store.all_progress() == {0: 1}
