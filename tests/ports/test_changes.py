"""What every Catalog and every PartitionStore promise about what changes after creation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from port_builders import PARTITIONS, Storage, a_service_object, documents

from servioticy.model import StreamRef
from servioticy.ports import (
    Batch,
    Change,
    Charge,
    Current,
    NewServiceObject,
    StoredLast,
    StoredUpdate,
    StoredVerdict,
    Subscribed,
    Subscriber,
)

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
            lasts=[StoredLast(1, stream, 5, UPDATE, 1)],
            verdicts=[StoredVerdict(1, stream, "emitted", 1, b"{}")],
        )
    )


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant, _ = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, activate=("so1", 1, 1)))
    return tenant


def test_a_new_version_is_in_force_for_the_api_at_once(storage: Storage, tenant: int) -> None:
    change = storage.catalog.replace(another(tenant, "so1", custom_fields=b"{}"), 1)

    assert change == Change("so1", 2, 0)
    assert storage.catalog.current("so1") == Current(2, 2, AGAIN, b"{}", 2000)
    assert storage.catalog.versions("so1") == [(1, 1000), (2, 2000)]
    assert storage.catalog.pending()[-1][1] == change
    address = storage.catalog.address(storage.tenant()[1], "so1", "c")
    assert address is not None and address.version == 2 and address.stream_id is not None


def test_of_two_changes_of_one_revision_the_second_is_refused(
    storage: Storage, tenant: int
) -> None:
    """And leaves nothing behind."""
    assert storage.catalog.replace(another(tenant, "so1"), 1) is not None
    pending = storage.catalog.pending()

    assert storage.catalog.replace(another(tenant, "so1"), 1) is None
    assert storage.catalog.delete("so1", 1, 3000) is None
    assert not storage.catalog.customise("so1", 1, b"{}", 3000)
    assert storage.catalog.pending() == pending
    assert storage.catalog.versions("so1") == [(1, 1000), (2, 2000)]


def test_an_earlier_version_comes_back_under_its_number(storage: Storage, tenant: int) -> None:
    storage.catalog.replace(another(tenant, "so1", custom_fields=b'{"k":2}'), 1)
    first = replace(a_service_object(tenant, "so1"), created_at=3000)

    assert storage.catalog.replace(first, 2, version=1) == Change("so1", 1, 0)

    current = storage.catalog.current("so1")
    assert current is not None
    assert (current.version, current.revision, current.custom_fields) == (1, 3, b'{"k":2}')
    assert storage.catalog.versions("so1") == [(1, 1000), (2, 2000)]
    assert storage.catalog.replace(another(tenant, "so1"), 3) == Change("so1", 3, 0)


def test_custom_fields_change_without_a_version(storage: Storage, tenant: int) -> None:
    pending = storage.catalog.pending()

    assert storage.catalog.customise("so1", 1, b'{"k":1}', 2000)

    current = storage.catalog.current("so1")
    assert current is not None
    assert current == Current(1, 2, current.document, b'{"k":1}', 2000)
    assert storage.catalog.pending() == pending


def test_a_stream_that_a_version_lacks_keeps_its_history(storage: Storage, tenant: int) -> None:
    _, token = storage.tenant()
    b = storage.stream_id(token, "so1", "b")
    storage.catalog.replace(another(tenant, "so1"), 1)

    assert sorted(storage.catalog.sources(["so1"])["so1"].streams) == ["a", "c"]
    assert storage.stream_id(token, "so1", "b") == b

    storage.catalog.replace(a_service_object(tenant, "so1"), 2, version=1)

    assert sorted(storage.catalog.sources(["so1"])["so1"].streams) == ["a", "b"]
    assert storage.stream_id(token, "so1", "b") == b


def test_the_pipeline_knows_the_streams_of_the_version_in_force(
    storage: Storage, tenant: int
) -> None:
    """What the API has changed takes effect with the log, not before."""
    storage.catalog.replace(another(tenant, "so1"), 1)

    assert streams_in_force(storage) == ["a", "b"]
    storage.store.store(Batch(0, 1, 2, 0, activate=("so1", 2, 2)))
    assert streams_in_force(storage) == ["a", "c"]


def streams_in_force(storage: Storage) -> list[str]:
    (placed,) = storage.store.component("so1")
    assert placed.service_object is not None
    return sorted(placed.service_object.stream_ids)


def test_a_definition_that_comes_again_later_does_nothing(storage: Storage, tenant: int) -> None:
    storage.catalog.replace(another(tenant, "so1"), 1)
    storage.store.store(Batch(0, 1, 2, 0, activate=("so1", 2, 7)))
    storage.store.store(Batch(0, 2, 3, 0, activate=("so1", 1, 6)))

    assert streams_in_force(storage) == ["a", "c"]


def test_groups_of_a_new_version_join_components(storage: Storage, tenant: int) -> None:
    """The one that changes moves, too, where its new sources are more."""
    storage.create(tenant, "so2")  # in partition 1
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    sources = (("g", StreamRef("so2", "a")),)
    change = storage.catalog.replace(another(tenant, "so1", group_sources=sources), 1)

    assert change == Change("so1", 2, 1, ((0, ("so1",)),))
    assert storage.catalog.sources(["so1"])["so1"].component == "so2"
    assert [each.id for each in storage.store.component("so2")] == ["so1", "so2", "so3"]


def test_internal_subscriptions_follow_the_version(storage: Storage, tenant: int) -> None:
    storage.create(tenant, "so2", (("g", StreamRef("so1", "a")), ("h", StreamRef("so1", "b"))))
    assert storage.catalog.subscribers("so1", ["a", "b"]) == [
        Subscriber("so2", tenant, "a"),
        Subscriber("so2", tenant, "b"),
    ]

    sources = (("g", StreamRef("so1", "b")),)
    storage.catalog.replace(another(tenant, "so2", group_sources=sources), 1)

    assert storage.catalog.subscribers("so1", ["a"]) == []
    assert storage.catalog.subscribers("so1", ["b"]) == [Subscriber("so2", tenant, "b")]
    assert storage.catalog.subscribers("so1", []) == []


def test_who_may_not_read_any_more_holds_nothing_back(storage: Storage, tenant: int) -> None:
    """A group of another tenant names a stream that has become private: it reads nothing."""
    other, _token = storage.tenant("other")
    storage.catalog.replace(replace(another(tenant, "so1"), public=True), 1)
    storage.create(other, "so2", (("g", StreamRef("so1", "a")),))
    assert storage.catalog.subscribers("so1", ["a"]) == [Subscriber("so2", other, "a")]

    storage.catalog.replace(another(tenant, "so1"), 2)

    assert storage.catalog.subscribers("so1", ["a"]) == []


def test_related_follows_groups_both_ways(storage: Storage, tenant: int) -> None:
    storage.create(tenant, "so2", (("g", StreamRef("so1", "a")),))
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))
    storage.create(tenant, "so4")

    def found(*ids: str, upstream: bool, most: int = 10) -> list[str]:
        return sorted(
            each.id for each in storage.catalog.related(ids, upstream=upstream, most=most)
        )

    assert found("so2", upstream=True) == ["so1", "so2"]
    assert found("so2", upstream=False) == ["so2", "so3"]
    assert found("so1", upstream=False) == ["so1", "so2", "so3"]
    assert found("so1", "so4", upstream=False, most=2) == ["so1", "so4"]
    assert found("nothing", upstream=True) == []
    (so4,) = storage.catalog.related(["so4"], upstream=True, most=1)
    assert (so4.tenant, so4.version) == (tenant, 1)


def test_related_are_nearest_first(storage: Storage, tenant: int) -> None:
    """Where there are too many, those that are looked at are the nearest."""
    storage.create(tenant, "so3", (("g", StreamRef("so1", "a")),))
    storage.create(tenant, "so2", (("g", StreamRef("so3", "a")),))
    storage.create(tenant, "so0", (("g", StreamRef("so2", "a")),))

    down = storage.catalog.related(["so1"], upstream=False, most=9)
    up = storage.catalog.related(["so0"], upstream=True, most=9)

    assert [each.id for each in down] == ["so1", "so3", "so2", "so0"]
    assert [each.id for each in up] == ["so0", "so2", "so3", "so1"]


def test_documents_are_those_of_the_versions_named(storage: Storage, tenant: int) -> None:
    storage.catalog.replace(another(tenant, "so1"), 1)
    versions = [("so1", 1), ("so1", 2)]

    assert storage.catalog.documents([*versions, ("so1", 3), ("nothing", 1)]) == {
        each: storage.catalog.document(*each) for each in versions
    }
    assert storage.catalog.documents([]) == {}


def test_what_is_deleted_does_not_exist_for_the_api(storage: Storage, tenant: int) -> None:
    _, token = storage.tenant()

    assert storage.catalog.delete("so1", None, 2000) == Change("so1", 1, 0, kind="deletion")

    assert storage.catalog.current("so1") is None
    assert storage.catalog.ids(tenant) == []
    assert storage.catalog.sources(["so1"]) == {}
    address = storage.catalog.address(token, "so1", "a")
    assert address is not None and address.service_object is None
    assert storage.catalog.related(["so1"], upstream=True, most=9) == []
    assert storage.catalog.replace(another(tenant, "so1"), 2) is None
    assert storage.catalog.delete("so1", None, 3000) is None
    assert storage.catalog.erase("so1", "a") is None


def test_a_deleted_id_is_not_given_again(storage: Storage, tenant: int) -> None:
    storage.catalog.delete("so1", None, 2000)
    storage.store.store(Batch(0, 1, 2, 0, delete="so1"))

    with pytest.raises(Exception, match=r"so1|duplicate"):
        storage.create(tenant, "so1")


def test_until_the_log_says_so_the_pipeline_computes_what_is_deleted(
    storage: Storage, tenant: int
) -> None:
    storage.catalog.delete("so1", None, 2000)

    assert streams_in_force(storage) == ["a", "b"]
    storage.store.store(Batch(0, 1, 2, 0, delete="so1"))
    (placed,) = storage.store.component("so1")
    assert (placed.service_object, placed.deleted) == (None, True)


def test_deletion_takes_all_that_is_stored_with_it(storage: Storage, tenant: int) -> None:
    """Of it alone; and once gone it cannot be put in force again."""
    _, token = storage.tenant()
    storage.create(tenant, "so2", (("g", StreamRef("so1", "a")),))
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))
    a, theirs = (storage.stream_id(token, id_, "a") for id_ in ("so2", "so1"))
    storage.catalog.subscribe("app", tenant, a, "pubsub", "x", b"{}", 1000)
    store_one(storage, 1, a)
    store_one(storage, 2, theirs)
    storage.store.charge([Charge(tenant, a, 7), Charge(tenant, theirs, 7)])

    for offset in (3, 4):  # twice does no harm
        storage.store.store(Batch(0, offset, offset + 1, 0, delete="so2"))
        storage.purge()
    storage.store.store(Batch(0, 5, 6, 0, activate=("so2", 1, 99)))

    assert documents(storage, a) == []
    assert storage.history.last_update(a) is None
    assert storage.history.verdicts(a) == []
    assert [storage.history.processor_us(each) for each in (a, theirs)] == [0, 7]
    assert storage.catalog.subscription("app") is None
    assert storage.catalog.subscribers("so1", ["a"]) == []
    assert storage.catalog.document("so2", 1) is None
    assert documents(storage, theirs) == [UPDATE]
    (placed,) = storage.store.component("so2")
    assert placed.service_object is None
    assert [each.id for each in storage.store.component("so1")] == ["so1", "so3"]


def test_erasure_takes_history_and_last_update(storage: Storage, tenant: int) -> None:
    _, token = storage.tenant()
    a, b = (storage.stream_id(token, "so1", name) for name in "ab")
    change = storage.catalog.erase("so1", "a")
    assert change == Change("so1", 1, 0, kind="erasure", stream="a")
    assert storage.catalog.erase("so1", "nothing") is None
    store_one(storage, 1, a)
    store_one(storage, 2, b)

    storage.store.store(Batch(0, 3, 4, 0, erase=("so1", "a", 5)))

    assert documents(storage, a) == []
    assert storage.history.last_update(a) is None
    assert storage.store.last_updates([a, storage.stored_as("so1"), b]).keys() == {b}
    assert documents(storage, b) == [UPDATE]


def test_an_erasure_that_comes_again_spares_what_came_between(
    storage: Storage, tenant: int
) -> None:
    _, token = storage.tenant()
    a = storage.stream_id(token, "so1", "a")
    storage.store.store(Batch(0, 1, 2, 0, erase=("so1", "a", 5)))
    store_one(storage, 2, storage.stored_as("so1"))

    storage.store.store(Batch(0, 3, 4, 0, erase=("so1", "a", 5)))

    assert documents(storage, a) == [UPDATE]


def test_subscriptions_are_listed_read_and_dropped(storage: Storage, tenant: int) -> None:
    _, token = storage.tenant()
    storage.create(tenant, "so2", (("g", StreamRef("so1", "a")),))
    other, _ = storage.tenant("umbrella")
    a = storage.stream_id(token, "so1", "a")
    storage.catalog.subscribe("2", other, a, "pubsub", "x", b'{"id":"2"}', 1000)
    storage.catalog.subscribe("1", tenant, a, "pubsub", "y", b'{"id":"1"}', 2000)

    assert storage.catalog.subscriptions(a) == [(other, b'{"id":"2"}'), (tenant, b'{"id":"1"}')]
    assert storage.catalog.subscription("2") == Subscribed(other, tenant, b'{"id":"2"}')

    storage.catalog.unsubscribe("2")
    storage.catalog.unsubscribe("nothing")

    assert storage.catalog.subscription("2") is None
    assert storage.catalog.subscriptions(a) == [(tenant, b'{"id":"1"}')]


def test_the_deleted_no_longer_count_where_components_go(storage: Storage, tenant: int) -> None:
    for number in range(2, 4):
        storage.create(tenant, f"so{number}")  # in partitions 1 and 0
    storage.catalog.delete("so2", None, 2000)

    assert storage.create(tenant, "so4").partition == 1
    assert PARTITIONS == 2
