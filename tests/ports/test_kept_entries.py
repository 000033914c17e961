"""What every PartitionStore promises of what operators keep, and of when they are woken."""

from __future__ import annotations

import pytest
from port_builders import Storage

from servioticy.domain.evaluators.operators import to_ask_since
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, Delete, Effect, Erase, Release
from servioticy.ports.kept_entries import DueEntry, EntryToAsk, KeptValue, StoredEntry


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant = storage.tenant()
    in_force(storage, tenant, "so1", 0)
    return tenant


def in_force(storage: Storage, tenant: int, id_: str, change: int) -> None:
    storage.create(tenant, id_)
    storage.store.begin(0)
    store(storage, effect=Activate(id_, 1, change + 1))


def store(storage: Storage, *kept: StoredEntry, effect: Effect | None = None) -> None:
    at = storage.store.all_progress()[0]
    storage.store.store(Batch(0, at, at + 1, at, kept=kept, effect=effect))


def test_an_entry_is_what_was_stored_last_under_its_key(storage: Storage, tenant: int) -> None:
    a, b = (storage.stored_as("so1", name) for name in "ab")
    key = b'\\x00"{,}\x00\xff'
    store(
        storage,
        StoredEntry(tenant, a, key, b"\x00one", 5),
        StoredEntry(tenant, a, b"gone", b"x"),
        StoredEntry(tenant, b, key, b""),
    )
    store(storage, StoredEntry(tenant, a, key, b"two"), StoredEntry(tenant, a, b"gone", None))

    wanted = {(a, key), (a, b"gone"), (b, key), (b, b"never")}
    assert storage.store.kept(wanted) == {(a, key): KeptValue(b"two"), (b, key): KeptValue(b"")}
    assert storage.store.kept(()) == {}
    assert storage.store.next_due(0, -1) is None, "what takes its place is not due"


def test_all_of_a_batch_is_kept_or_nothing(storage: Storage, tenant: int) -> None:
    a = storage.stored_as("so1")
    with pytest.raises(Exception, match="no longer at offset"):
        storage.store.store(Batch(0, 77, 78, 0, kept=[StoredEntry(tenant, a, b"k", b"v", 1)]))

    assert storage.store.kept([(a, b"k")]) == {}
    assert storage.store.due(0, 10, 10) == []


def test_what_is_due_is_told_in_order_and_a_few_of_each_tenant(
    storage: Storage, tenant: int
) -> None:
    other = storage.tenant("umbrella")
    for number in range(2, 10):  # some are in the other partition
        in_force(storage, other, f"so{number}", number)
    theirs_here = next(
        f"so{number}"
        for number in range(2, 10)
        if storage.store.owner(f"so{number}") == (other, 0)
    )
    a, theirs = storage.stored_as("so1"), storage.stored_as(theirs_here)
    store(storage, *[StoredEntry(tenant, a, b"%d" % n, b"v", 10 + n) for n in range(5)])
    store(storage, StoredEntry(other, theirs, b"late", b"v", 14))
    store(storage, StoredEntry(tenant, a, b"never", b"v"))

    assert storage.store.due(0, 9, 10) == []
    assert storage.store.due(0, 11, 10) == [
        DueEntry("so1", "a", b"0", 10),
        DueEntry("so1", "a", b"1", 11),
    ]
    found = storage.store.due(0, 100, 2)
    assert [(each.service_object, each.key) for each in found] == [
        ("so1", b"0"),
        ("so1", b"1"),
        (theirs_here, b"late"),
    ]
    assert [storage.store.next_due(0, after) for after in (0, 10, 13, 14)] == [10, 11, 14, None]
    assert storage.store.due(1, 100, 10) == [] and storage.store.next_due(1, 0) is None


@pytest.mark.parametrize(
    "effect", [Erase("so1", "a", 9), Delete("so1")], ids=["erased", "deleted"]
)
def test_what_is_gone_is_due_no_more_and_is_removed(
    storage: Storage, tenant: int, effect: Effect
) -> None:
    a = storage.stored_as("so1")
    store(storage, *[StoredEntry(tenant, a, b"%d" % n, b"v" * 100, 10 + n) for n in range(7)])
    store(storage, effect=effect)
    assert storage.store.due(0, 100, 10) == []

    for _ in range(50):
        if storage.store.purge(0, 2, 10**6) is None:
            break
    assert storage.rows("kept_entries") == 0
    assert storage.store.next_due(0, 0) is None


def test_nobody_waits_behind_all_that_is_due_of_another(storage: Storage, tenant: int) -> None:
    """However much that is, and whether it comes or not."""
    other = storage.tenant("umbrella")
    for number in range(2, 10):  # some are in the other partition
        in_force(storage, other, f"so{number}", number)
    owners = {f"so{number}": storage.store.owner(f"so{number}") for number in range(2, 10)}
    theirs = next(each for each, owner in owners.items() if owner == (other, 0))
    a = storage.stored_as("so1")
    store(storage, *[StoredEntry(tenant, a, b"%d" % n, b"v", 1) for n in range(10_001)])
    store(storage, StoredEntry(other, storage.stored_as(theirs), b"late", b"v", 99))

    found = storage.store.due(0, 100, 100)
    assert len(found) == 101
    assert (found[-1].service_object, found[-1].key) == (theirs, b"late")
    assert storage.store.next_due(0, 1) == 99


def test_what_moves_is_due_where_it_is(storage: Storage, tenant: int) -> None:
    a = storage.stored_as("so1")
    store(storage, StoredEntry(tenant, a, b"k", b"v", 10))
    store(storage, effect=Release(("so1",), 1))

    assert storage.store.due(0, 100, 10) == []
    assert [each.key for each in storage.store.due(1, 100, 10)] == [b"k"]
    assert [storage.store.next_due(partition, 0) for partition in (0, 1)] == [None, 10]


def test_for_what_somebody_is_to_be_asked_is_no_time(storage: Storage, tenant: int) -> None:
    """What has waited longest comes first, a few of each tenant; where it moves, so does that."""
    a, b = (storage.stored_as("so1", name) for name in "ab")
    other = storage.tenant("umbrella")
    for number in range(2, 10):  # some are in the other partition
        in_force(storage, other, f"so{number}", number)
    owners = {f"so{number}": storage.store.owner(f"so{number}") for number in range(2, 10)}
    theirs = next(each for each, owner in owners.items() if owner == (other, 0))
    stored_as = storage.stored_as(theirs)
    store(
        storage,
        StoredEntry(tenant, a, b"k", b"new", to_ask_since(30)),
        StoredEntry(tenant, b, b"k", b"old", to_ask_since(10)),
        StoredEntry(tenant, b, b"time", b"v", 5),
        StoredEntry(other, stored_as, b"k", b"theirs", to_ask_since(20)),
    )

    assert storage.store.to_ask(0, 10) == [
        EntryToAsk(tenant, "so1", "b", b, b"k", b"old"),
        EntryToAsk(other, theirs, "a", stored_as, b"k", b"theirs"),
        EntryToAsk(tenant, "so1", "a", a, b"k", b"new"),
    ]
    assert [each.value for each in storage.store.to_ask(0, 1)] == [b"old", b"theirs"]
    assert [each.key for each in storage.store.due(0, 100, 10)] == [b"time"]
    assert storage.store.next_due(0, 0) == 5
    assert storage.store.to_ask(1, 10) == []

    store(storage, StoredEntry(tenant, b, b"k", b"done"))
    store(storage, effect=Release(("so1",), 1))
    assert [each.value for each in storage.store.to_ask(1, 10)] == [b"new"]
    assert [each.value for each in storage.store.to_ask(0, 10)] == [b"theirs"]
