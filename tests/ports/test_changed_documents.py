"""New versions, deletions and erasures: what is stored, and in force for the pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from port_builders import Storage, a_service_object, documents, key

from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict
from servioticy.ports.change_store import Change, NewServiceObject
from servioticy.ports.effects import Activate, Delete, Erase

AGAIN = b'{"streams":{"c":{"channels":{}},"a":{"channels":{}}}}'
UPDATE = b'{"channels":{},"lastUpdate":5}'


def another(tenant: int, id_: str, **more: Any) -> NewServiceObject:
    """A document with the streams `c` and `a`, accepted later."""
    new = a_service_object(tenant, id_, document=AGAIN)
    return replace(new, streams=("c", "a"), created_at=2000, **more)


def store_one(storage: Storage, offset: int, stream: int) -> None:
    """An update at a timestamp of 5, its verdict, and the progress past its offset."""
    storage.store.store(
        Batch(
            0,
            offset,
            offset + 1,
            offset,
            updates=[StoredUpdate(1, stream, 5, UPDATE, 1, offset, 0)],
            verdicts=[StoredVerdict(1, stream, "emitted", 1, b"{}")],
        )
    )


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so1", 1, 1)))
    return tenant


@pytest.fixture
def so1(tenant: int) -> ServiceObjectKey:
    return ServiceObjectKey(tenant, "so1")


def test_a_new_version_is_pending(storage: Storage, tenant: int) -> None:
    change = storage.change_store.replace(another(tenant, "so1"), 1)

    assert change == Change("so1", 2, 0)
    assert storage.change_store.pending()[-1][1] == change
    assert storage.node("so1").revision == 2


def test_of_two_changes_of_one_revision_the_second_is_refused(
    storage: Storage, tenant: int, so1: ServiceObjectKey
) -> None:
    """And leaves nothing behind."""
    assert storage.change_store.replace(another(tenant, "so1"), 1) is not None
    pending = storage.change_store.pending()

    assert storage.change_store.replace(another(tenant, "so1"), 1) is None
    assert storage.change_store.delete(so1, 1, 3000) is None
    assert storage.change_store.pending() == pending
    assert storage.node("so1").revision == 2


def test_an_earlier_version_comes_back_under_its_number(storage: Storage, tenant: int) -> None:
    """And the next new one has a number of its own."""
    storage.change_store.replace(another(tenant, "so1"), 1)
    first = replace(a_service_object(tenant, "so1"), created_at=3000)

    assert storage.change_store.replace(first, 2, version=1) == Change("so1", 1, 0)
    assert storage.change_store.replace(another(tenant, "so1"), 3) == Change("so1", 3, 0)


def test_nobody_changes_what_is_another_tenants(storage: Storage, tenant: int) -> None:
    other = storage.tenant("other")
    theirs, pending = ServiceObjectKey(other, "so1"), storage.change_store.pending()

    assert storage.change_store.replace(another(other, "so1"), 1) is None
    assert storage.change_store.delete(theirs, None, 2000) is None
    assert storage.change_store.erase(theirs, "a") is None
    assert storage.change_store.pending() == pending
    assert storage.node("so1").revision == 1


def test_the_pipeline_knows_the_streams_of_the_version_in_force(
    storage: Storage, tenant: int
) -> None:
    """What the API has changed takes effect with the log, not before."""
    storage.change_store.replace(another(tenant, "so1"), 1)

    assert streams_in_force(storage) == ["a", "b"]
    storage.store.store(Batch(0, 1, 2, 0, effect=Activate("so1", 2, 2)))
    assert streams_in_force(storage) == ["a", "c"]


def streams_in_force(storage: Storage) -> list[str]:
    (found,) = storage.store.service_objects(["so1"])
    return sorted(found.stream_ids)


def test_a_definition_that_comes_again_later_does_nothing(storage: Storage, tenant: int) -> None:
    storage.change_store.replace(another(tenant, "so1"), 1)
    storage.store.store(Batch(0, 1, 2, 0, effect=Activate("so1", 2, 7)))
    storage.store.store(Batch(0, 2, 3, 0, effect=Activate("so1", 1, 6)))

    assert streams_in_force(storage) == ["a", "c"]


def test_groups_of_a_new_version_join_components(storage: Storage, tenant: int) -> None:
    """The one that changes moves, too, where its new sources are more."""
    storage.create(tenant, "so2")  # in partition 1
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    sources = (("g", StreamRef("so2", "a")),)
    change = storage.change_store.replace(another(tenant, "so1", group_sources=sources), 1)

    assert change == Change("so1", 2, 1, ((0, ("so1",)),))
    assert storage.node("so1").component == "so2"
    assert [each.id for each in storage.store.component("so2")] == ["so1", "so2", "so3"]


def test_what_is_deleted_cannot_be_changed(
    storage: Storage, tenant: int, so1: ServiceObjectKey
) -> None:
    assert storage.change_store.delete(so1, None, 2000) == Change("so1", 1, 0, kind="deletion")

    assert storage.change_store.replace(another(tenant, "so1"), 2) is None
    assert storage.change_store.delete(so1, None, 3000) is None
    assert storage.change_store.erase(so1, "a") is None


def test_a_deleted_id_is_not_given_again(
    storage: Storage, tenant: int, so1: ServiceObjectKey
) -> None:
    storage.change_store.delete(so1, None, 2000)
    storage.store.store(Batch(0, 1, 2, 0, effect=Delete("so1")))

    with pytest.raises(Exception, match=r"so1|duplicate"):
        storage.create(tenant, "so1")


def test_until_the_log_says_so_the_pipeline_computes_what_is_deleted(
    storage: Storage, so1: ServiceObjectKey
) -> None:
    storage.change_store.delete(so1, None, 2000)

    assert streams_in_force(storage) == ["a", "b"]
    storage.store.store(Batch(0, 1, 2, 0, effect=Delete("so1")))
    (member,) = storage.store.component("so1")
    assert (member.version, member.deleted) == (None, True)
    assert list(storage.store.service_objects(["so1"])) == []


def test_deletion_takes_all_that_is_stored_with_it(storage: Storage, tenant: int) -> None:
    """Of it alone; and once gone it cannot be put in force again."""
    storage.create(tenant, "so2", (("g", StreamRef("so1", "a")),))
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))
    a, theirs = (storage.stream_id(id_, "a") for id_ in ("so2", "so1"))
    store_one(storage, 1, a)
    store_one(storage, 2, theirs)
    used = [StreamRef(each, "a") for each in ("so2", "so1")]
    storage.store.account([Use(tenant, each, tenant, microseconds=7) for each in used])

    for offset in (3, 4):  # twice does no harm
        storage.store.store(Batch(0, offset, offset + 1, 0, effect=Delete("so2")))
        storage.purge()
    storage.store.store(Batch(0, 5, 6, 0, effect=Activate("so2", 1, 99)))

    assert documents(storage, a) == []
    assert storage.history.last_update(key(a)) is None
    assert storage.history.verdicts(key(a)) == []
    assert [storage.history.processor_us(key(each)) for each in (a, theirs)] == [0, 7]
    assert storage.graph.readers("so1", ["a"]) == []
    assert documents(storage, theirs) == [UPDATE]
    (member,) = storage.store.component("so2")
    assert member.version is None
    assert [each.id for each in storage.store.component("so1")] == ["so1", "so3"]


def test_erasure_takes_history_and_last_update(storage: Storage, so1: ServiceObjectKey) -> None:
    a, b = (storage.stream_id("so1", name) for name in "ab")
    change = storage.change_store.erase(so1, "a")
    assert change == Change("so1", 1, 0, kind="erasure", stream="a")
    assert storage.change_store.erase(so1, "nothing") is None
    store_one(storage, 1, a)
    store_one(storage, 2, b)

    storage.store.store(Batch(0, 3, 4, 0, effect=Erase("so1", "a", 5)))

    assert documents(storage, a) == []
    assert storage.history.last_update(key(a)) is None
    assert storage.store.last_updates([storage.stored_as("so1"), b]).keys() == {b}
    assert documents(storage, b) == [UPDATE]


def test_an_erasure_that_comes_again_spares_what_came_between(
    storage: Storage, tenant: int
) -> None:
    a = storage.stream_id("so1", "a")
    storage.store.store(Batch(0, 1, 2, 0, effect=Erase("so1", "a", 5)))
    store_one(storage, 2, storage.stored_as("so1"))

    storage.store.store(Batch(0, 3, 4, 0, effect=Erase("so1", "a", 5)))

    assert documents(storage, a) == [UPDATE]
