"""What is deleted or erased is gone at once, whoever asks; its rows go in bounded pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest
from port_builders import Storage, Stored, a_service_object, documents, everything, key

from servioticy.domain.model import LastUpdate, ServiceObjectKey, StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredState, StoredUpdate, StoredVerdict
from servioticy.ports.effects import Activate, Delete, Effect, Erase
from servioticy.storage.partition_store import PostgresPartitionStore

ALL = 10**6
TABLES = ("updates", "states", "verdicts", "usage", "superseded", "definitions")
TABLES += ("streams", "graph_edges", "purge")


def document(at: int, size: int = 10) -> bytes:
    return b'{"t":%d,"x":"%s"}' % (at, b"x" * size)


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so1", 1, 1)))
    return tenant


def store_some(
    storage: Storage, id_: str = "so1", times: range = range(5), size: int = 10
) -> list[bytes]:
    """Updates with all that may come of them; their documents."""
    first, stored_as = storage.store.all_progress()[0], storage.stored_as(id_)
    rows = [
        StoredUpdate(1, stored_as, at, document(at, size), 1, first + n, 0)
        for n, at in enumerate(times)
    ]
    displaced = replace_timestamp(rows[-1], rows[0].timestamp)
    storage.store.store(
        Batch(
            0,
            first,
            first + len(rows),
            first,
            updates=[displaced, *rows],
            states=[StoredState(1, stored_as, b"{}")],
            verdicts=[StoredVerdict(1, stored_as, "emitted", 5, b"{}")],
        )
    )
    tenant = storage.store.component(id_)[0].tenant
    storage.store.account([Use(tenant, StreamRef(id_, "a"), tenant, microseconds=7)])
    return [each.document for each in rows]


def replace_timestamp(row: StoredUpdate, timestamp: int) -> StoredUpdate:
    """Made before the others, so that one of them displaces it."""
    return row._replace(timestamp=timestamp, position=1, document=document(99))


def store_effect(storage: Storage, effect: Effect) -> None:
    at = storage.store.all_progress()[0]
    storage.store.store(Batch(0, at, at + 1, at, effect=effect))


def everything_read(storage: Storage, stream: int) -> list[object]:
    """What a reader gets who learnt the stream's id at any time before."""
    history, asked = storage.history, key(stream)
    return [
        history.newest(asked),
        history.last_update(asked),
        history.processor_us(asked),
        *everything(storage, stream),
        *history.updates_after(asked, -1, 500, ALL),
        *history.verdicts(asked),
    ]


NOTHING = [None, None, 0]


def test_what_is_deleted_is_gone_before_its_rows_are(storage: Storage, tenant: int) -> None:
    a = storage.stream_id("so1", "a")
    store_some(storage)
    assert len(everything_read(storage, a)) == 3 + 5 + 5 + 1

    store_effect(storage, Delete("so1"))

    assert everything_read(storage, a) == NOTHING
    assert storage.store.not_acknowledged(0, 0, 99) == []
    storage.store.account([Use(tenant, StreamRef("so1", "a"), tenant, microseconds=7)])
    assert everything_read(storage, a) == NOTHING
    assert storage.rows("updates") == 5
    storage.purge()
    assert [storage.rows(each) for each in TABLES] == [0] * len(TABLES)


def test_what_is_erased_is_gone_before_its_rows_are(storage: Storage, tenant: int) -> None:
    """And what comes afterwards is not taken for it, timestamps being what they are."""
    a = storage.stream_id("so1", "a")
    store_some(storage)

    store_effect(storage, Erase("so1", "a", 5))

    assert everything_read(storage, a) == [None, None, 7, ("emitted", 5, b"{}")]
    assert storage.store.not_acknowledged(0, 0, 99) == []
    assert storage.store.last_updates([storage.stored_as("so1")]) == {}
    assert storage.rows("updates") == 5
    new = store_some(storage, "so1", range(3, 6))
    for left in (7, 6, 5, 4, 3, 3):
        assert storage.store.purge(0, 1, ALL) == tenant
        assert documents(storage, a) == new
        assert storage.rows("updates") == left
    assert storage.store.purge(0, 1, ALL) is None
    assert storage.history.verdicts(key(a)) == [("emitted", 10, b"{}")]
    assert storage.history.processor_us(key(a)) == 14
    assert storage.store.last_updates([storage.stored_as("so1")]) == {
        storage.stored_as("so1"): LastUpdate(5, new[-1], b"{}")
    }


def test_a_stream_may_be_erased_again_before_it_is_purged(storage: Storage, tenant: int) -> None:
    a = storage.stream_id("so1", "a")
    for change in (5, 6, 7):
        store_some(storage)
        store_effect(storage, Erase("so1", "a", change))
    store_effect(storage, Erase("so1", "a", 6))  # told again

    assert documents(storage, a) == []
    new = store_some(storage)
    storage.purge()

    assert documents(storage, a) == new
    assert storage.rows("updates") == 5
    assert storage.rows("purge") == 0


def test_an_erased_stream_may_be_deleted_before_it_is_purged(
    storage: Storage, tenant: int
) -> None:
    a = storage.stream_id("so1", "a")
    store_some(storage)
    store_effect(storage, Erase("so1", "a", 5))
    store_some(storage)
    store_effect(storage, Delete("so1"))

    assert everything_read(storage, a) == NOTHING
    storage.purge()

    assert [storage.rows(each) for each in TABLES] == [0] * len(TABLES)


@pytest.mark.parametrize(
    ("most", "most_bytes", "left"), [(2, ALL, [3, 1, 0, 0]), (100, 1500, [3, 1, 0, 0])]
)
def test_a_piece_is_bounded_in_rows_and_in_bytes(
    storage: Storage, tenant: int, most: int, most_bytes: int, left: list[int]
) -> None:
    """It ends with the row that reaches the bound; one goes however large it is."""
    store_some(storage, "so1", size=1000)
    store_effect(storage, Erase("so1", "a", 5))

    found = []
    while storage.store.purge(0, most, most_bytes) is not None:
        found.append(storage.rows("updates"))

    assert found == left
    store_some(storage, "so1", size=1000)
    store_effect(storage, Erase("so1", "a", 6))
    assert storage.store.purge(0, 100, 1) == tenant
    assert storage.rows("updates") == 4


def test_all_that_belongs_to_an_object_goes_in_pieces(storage: Storage, tenant: int) -> None:
    """However many others read it, however many it reads, and however often it was changed."""
    for n in range(4):
        new = replace(a_service_object(tenant, "so1"), streams=("a", f"n{n}"))
        assert storage.change_store.replace(new, n + 1) is not None
    for n in range(5):
        storage.create(tenant, f"reader{n}", (("g", StreamRef("so1", "a")),))
    groups = tuple((f"g{n}", StreamRef("reader0", "a")) for n in range(5))
    reading = replace(a_service_object(tenant, "so1", groups), streams=("a",))
    assert storage.change_store.replace(reading, 5) is not None
    storage.change_store.delete(ServiceObjectKey(tenant, "so1"), None, 2000)
    store_effect(storage, Delete("so1"))

    before = [storage.rows(each) for each in TABLES]
    own = dict.fromkeys(TABLES, 0) | {"streams": 6, "graph_edges": 10, "definitions": 6}
    others = dict.fromkeys(TABLES, 0) | {"streams": 10, "definitions": 5}
    assert before[:-1] == [own[each] + others[each] for each in TABLES[:-1]]
    while storage.store.purge(0, 2, ALL) is not None:
        after = [storage.rows(each) for each in TABLES]
        gone = [a - b for a, b in zip(before, after, strict=True)]
        assert max(gone) <= 2, gone
        before = after

    assert before == list(others.values())


@pytest.mark.real
def test_subscriptions_to_an_object_go_in_pieces(stored: Stored) -> None:
    """However many others have subscribed to it."""
    so2 = stored.create("so2")
    for n in range(5):
        assert stored.subscribe(f"s{n}", stored.stream("so2"), f"x{n}")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    stored.change_store.delete(so2, None, 2000)
    store.store(Batch(0, 0, 1, 0, effect=Delete("so2")))

    left = []
    while store.purge(0, 2, ALL) is not None:
        left.append(stored.database.rows("SELECT count(*) FROM subscriptions")[0][0])
    assert left[:3] == [3, 1, 0]


def test_a_partition_purges_its_own(storage: Storage, tenant: int) -> None:
    store_some(storage)
    store_effect(storage, Delete("so1"))

    assert storage.store.purge(1, 100, ALL) is None
    assert storage.rows("updates") == 5


def test_what_is_created_later_is_not_touched(storage: Storage, tenant: int) -> None:
    store_some(storage)
    store_effect(storage, Delete("so1"))
    storage.create(tenant, "so2")
    store_effect(storage, Activate("so2", 1, 9))
    new = store_some(storage, "so2")

    storage.purge()

    b = storage.stream_id("so2", "a")
    assert documents(storage, b) == new
    assert storage.history.processor_us(key(b)) == 7
    assert storage.rows("streams") == 2


def test_only_streams_in_force_are_loaded(storage: Storage, tenant: int) -> None:
    """An object may have had any number of others."""
    for n in range(3):
        new = replace(
            a_service_object(tenant, "so1", document=b'{"streams":{"n%d":{"channels":{}}}}' % n),
            streams=(f"n{n}",),
        )
        assert storage.change_store.replace(new, n + 1) is not None
    store_effect(storage, Activate("so1", 4, 2))

    (found,) = storage.store.service_objects(["so1"])
    assert list(found.stream_ids) == ["n2"]
