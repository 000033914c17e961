"""What every PartitionStore promises of records that grow trees for several tenants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from port_builders import Storage, a_batch, document

from servioticy.errors import Fenced
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import Crossing
from servioticy.ports.partition_store import Progress
from servioticy.ports.put_off import PutOff, TreeKey


def update(stream: int, offset: int, tenant: int, at: int, position: int = 0) -> StoredUpdate:
    return StoredUpdate(tenant, stream, at, document(at), 1, offset, position, tree=tenant)


def crossing(offset: int, tree: int = 0, number: int = 0) -> Crossing:
    return Crossing(offset, tree, number, (1, 0), b"\x00\xff %d %d" % (offset, number))


def again(storage: Storage, emitted_offset: int, next_offset: int) -> list[int]:
    found = storage.store.not_acknowledged(0, emitted_offset, next_offset)
    return [each.timestamp for each in found]


@pytest.fixture
def streams(storage: Storage) -> tuple[int, int]:
    """A stream of each of the tenants 1 and 2; partition 0 has begun."""
    for name, id_ in (("acme", "so1"), ("umbrella", "so2")):
        storage.create(storage.tenant(name), id_)
    storage.store.begin(0)
    return storage.stream_id("so1", "a"), storage.stream_id("so2", "a")


# Progress.


def test_progress_may_stand_between_the_trees_of_a_record(
    storage: Storage, streams: tuple[int, int]
) -> None:
    one, two = streams
    first = Batch(0, 0, 0, 0, [update(one, 0, 1, 5)], next_tree=2)
    storage.store.store(first)

    assert storage.store.begin(0) == Progress(0, 2, 0)
    assert storage.store.all_progress() == {0: 0}
    assert again(storage, 0, 0) == [5]
    for wrong in (first, replace(first, first_tree=1), replace(first, first_tree=3)):
        with pytest.raises(Fenced):
            storage.store.store(wrong)
    storage.store.store(Batch(0, 0, 1, 0, [update(two, 0, 2, 6)], first_tree=2))

    assert storage.store.begin(0) == Progress(1, 0, 0)
    assert again(storage, 0, 1) == [5, 6]
    with pytest.raises(Fenced):
        storage.store.store(Batch(0, 1, 2, 0, first_tree=2))


def test_trees_of_a_record_are_emitted_again_one_after_the_other(
    storage: Storage, streams: tuple[int, int]
) -> None:
    one, two = streams
    rows = [update(two, 0, 2, 7), update(one, 0, 1, 5), update(one, 0, 1, 6, 1)]

    storage.store.store(Batch(0, 0, 1, 0, rows))

    assert again(storage, 0, 1) == [5, 6, 7]


# What is put off.


def test_each_tree_of_a_record_waits_by_itself(storage: Storage, streams: tuple[int, int]) -> None:
    one, two = (PutOff(0, tenant, "so", b"for %d" % tenant, tenant) for tenant in (1, 2))
    storage.store.store(Batch(0, 0, 1, 0, put_off=[one, two]))

    assert storage.store.waiting(0) == {1: 1, 2: 1}
    assert storage.store.put_off(0, 2, 9, 99) == [two]

    row = update(streams[1], 0, 2, 6)
    storage.store.store(Batch(0, 1, 1, 1, [row], taken_up=[two.key]))

    assert storage.store.waiting(0) == {1: 1}
    assert storage.store.taken_up(0) == [TreeKey(0, 2)]
    storage.store.store(Batch(0, 1, 2, 2, emitted_late=[two.key, one.key]))
    assert storage.store.taken_up(0) == []
    assert storage.store.put_off(0, 1, 9, 99) == [one]


def test_of_a_record_only_the_tree_that_is_late_is_emitted_again(
    storage: Storage, streams: tuple[int, int]
) -> None:
    """What others have got once would come behind what has come to them since."""
    one, two = streams
    late = PutOff(0, 2, "so2", b"", 2)
    storage.store.store(Batch(0, 0, 1, 0, [update(one, 0, 1, 5)], put_off=[late]))
    storage.store.store(Batch(0, 1, 1, 1, [update(two, 0, 2, 6)], taken_up=[late.key]))

    assert again(storage, 1, 1) == [6]


def test_what_a_late_tree_displaced_is_kept_until_it_is_emitted(
    storage: Storage, streams: tuple[int, int]
) -> None:
    one, two = streams
    late = PutOff(0, 2, "so2", b"", 2)
    twice = [update(one, 0, 1, 5), update(one, 0, 1, 5, 1)]
    storage.store.store(Batch(0, 0, 1, 0, twice, put_off=[late]))
    rows = [update(two, 0, 2, 6), update(two, 0, 2, 6, 1)]
    storage.store.store(Batch(0, 1, 1, 1, rows, taken_up=[late.key]))
    assert again(storage, 1, 1) == [6, 6]

    more = [update(one, 1, 1, 7), update(one, 1, 1, 7, 1)]
    storage.store.store(Batch(0, 1, 2, 1, more))

    assert again(storage, 1, 1) == [6, 6, 7, 7]
    assert storage.rows("superseded") == 2
    storage.store.store(Batch(0, 2, 3, 2, emitted_late=[late.key]))
    storage.store.store(Batch(0, 3, 4, 3, [each._replace(offset=3) for each in more]))
    assert storage.rows("superseded") == 1


# What crosses borders.


def test_crossings_are_kept_until_all_before_is_emitted(
    storage: Storage, streams: tuple[int, int]
) -> None:
    """And acknowledged; bytes as they came, in the order in which they were made."""
    made = [crossing(0), crossing(1, 1), crossing(1, 2, 0), crossing(1, 2, 1)]
    storage.store.store(Batch(0, 0, 2, 0, crossings=[made[0], *made[2:], made[1]]))
    assert storage.store.crossings(0) == made
    assert storage.store.crossings(1) == []

    storage.store.store(Batch(0, 2, 3, 1))
    assert storage.store.crossings(0) == made[1:]

    storage.store.store(Batch(0, 3, 3, 1, crossings=[crossing(3, 1)], next_tree=2))
    storage.store.store(Batch(0, 3, 4, 2, first_tree=2))
    assert storage.store.crossings(0) == [crossing(3, 1)]

    storage.store.store(Batch(0, 4, 5, 3))
    assert storage.store.crossings(0) == [crossing(3, 1)]
    storage.store.store(Batch(0, 5, 6, 4))
    assert storage.store.crossings(0) == []


def test_crossings_of_late_trees_are_kept_until_these_are_emitted(
    storage: Storage, streams: tuple[int, int]
) -> None:
    late = [PutOff(0, tenant, "so", b"", tenant) for tenant in (1, 2)]
    storage.store.store(Batch(0, 0, 2, 0, put_off=late))
    made = [crossing(0, 1), crossing(0, 1, 1), crossing(0, 2)]
    keys = [each.key for each in late]
    storage.store.store(Batch(0, 2, 2, 2, taken_up=keys, crossings=made))
    storage.store.store(Batch(0, 2, 3, 2))
    assert storage.store.crossings(0) == made

    storage.store.store(Batch(0, 3, 4, 3, emitted_late=keys[:1]))
    assert storage.store.crossings(0) == made[2:]
    storage.store.store(Batch(0, 4, 5, 4, emitted_late=keys[1:]))
    assert storage.store.crossings(0) == []


def test_crossings_are_stored_with_what_is_stored_beside(
    storage: Storage, streams: tuple[int, int]
) -> None:
    late = PutOff(0, 1, "so", b"", 1)
    storage.store.store(Batch(0, 0, 2, 0, put_off=[late]))
    claim = storage.store.claim(0)

    storage.store.store(
        Batch(0, 0, 0, 0, taken_up=[late.key], crossings=[crossing(0, 1)], claim=claim)
    )

    assert storage.store.crossings(0) == [crossing(0, 1)]
    assert storage.store.begin(0) == Progress(2, 0, 0)


def test_crossings_that_another_worker_made_go_all_the_same(
    storage: Storage, streams: tuple[int, int]
) -> None:
    storage.store.store(Batch(0, 0, 1, 0, crossings=[crossing(0)]))
    storage.store.end(0)
    storage.other_store.begin(0)
    assert storage.other_store.crossings(0) == [crossing(0)]

    storage.other_store.store(Batch(0, 1, 2, 1))

    assert storage.other_store.crossings(0) == []


def test_a_batch_without_updates_may_cross(storage: Storage, streams: tuple[int, int]) -> None:
    storage.store.store(a_batch(streams[0], 0, at=5, value=1))
    storage.store.store(Batch(0, 1, 2, 1, crossings=[crossing(1)]))

    assert storage.store.crossings(0) == [crossing(1)]
