"""A part of the log is lost: what was put off or not yet emitted is not lost with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from sandbox import argument_names
from servioticy.domain import log_loss
from servioticy.domain.log_loss import Bounds, Present
from servioticy.domain.model import StreamRef
from servioticy.domain.records import EndRecord, Source, write
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import Crossing
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.effects import Activate, BeginInputs, Erase
from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

pytestmark = pytest.mark.real

TEXT = b'{"streams":{"a":{"channels":{}}}}'


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    """As the pipeline, which `doctor` is where it accepts a loss."""
    made = Database(dsn, role=Role.PIPELINE)
    yield made
    made.close()


@pytest.fixture
def store(dsn: str, database: Database) -> PostgresPartitionStore:
    api = Database(dsn, role=Role.API)
    tenants = PostgresTenants(api)
    tenant = tenants.tenant_of(tenants.create_tenant("t")) or 0
    new = NewServiceObject("so", tenant, False, TEXT, ("a",), (), 0)
    PostgresChangeStore(api).create(new, 1)
    api.close()
    PostgresLogIdentity(database).note("updates", "A")
    found = PostgresPartitionStore(database, argument_names)
    found.begin(0)
    found.store(Batch(0, 0, 1, 0, effect=Activate("so", 1, 1)))
    return found


def accept(database: Database, first: int, end: int, topic_id: str = "A") -> None:
    log = Present("updates", topic_id, {0: Bounds(first, end)})
    identity = PostgresLogIdentity(database)
    log_loss.accept(identity, lambda: log)
    log_loss.check(identity, lambda: log)


def late(offset: int, tenant: int = 1) -> PutOff:
    return PutOff(offset, tenant, "so", b"record %d" % offset)


def row(store: PostgresPartitionStore, offset: int, at: int, value: int) -> StoredUpdate:
    (found,) = store.service_objects(["so"])
    number = found.stream_ids["a"]
    return StoredUpdate(1, number, at, b'{"v":%d}' % value, 1, offset, 0)


def values_emitted_again(store: PostgresPartitionStore) -> list[bytes]:
    next_offset, _, emitted_offset = store.begin(0)
    found = store.not_acknowledged(0, emitted_offset, next_offset)
    return [bytes(each.update) for each in found]


def waiting(store: PostgresPartitionStore) -> list[bytes]:
    return [each.record for each in store.put_off(0, 1, 99, 10**6)]


def stored(store: PostgresPartitionStore) -> None:
    """Offsets up to 9: two records wait, a third is computed; what came of 7 to 9 is not
    acknowledged, and of two updates with one timestamp the later one is in the history."""
    store.store(Batch(0, 1, 7, 7, put_off=[late(3), late(5), late(6)]))
    store.store(Batch(0, 7, 7, 7, updates=[row(store, 3, at=30, value=3)], taken_up=[TreeKey(3)]))
    rows = [row(store, 7, at=70, value=7), row(store, 8, at=70, value=8)]
    store.store(Batch(0, 7, 10, 7, updates=[*rows, row(store, 9, at=90, value=9)]))


@pytest.mark.parametrize(("first", "end", "topic_id"), [(0, 4, "A"), (0, 0, "B"), (2, 8, "A")])
def test_what_waits_and_what_is_not_emitted_is_kept(
    database: Database, store: PostgresPartitionStore, first: int, end: int, topic_id: str
) -> None:
    """In its order, and before everything that the log has from now on."""
    stored(store)
    again = values_emitted_again(store)
    assert again == [b'{"v":3}', b'{"v":7}', b'{"v":8}', b'{"v":9}']

    accept(database, first, end, topic_id)

    assert values_emitted_again(store) == again
    assert waiting(store) == [b"record 5", b"record 6"]
    progress, put_off = PostgresHistory(database).stored(0, [1])
    assert put_off[1] < 0
    assert progress == (first if topic_id == "B" else end)
    assert store.waiting(0) == {1: 2}


def test_records_at_the_same_offsets_of_the_log_are_others(
    database: Database, store: PostgresPartitionStore
) -> None:
    """Put off, displaced, taken up: nothing of them is mistaken for what was lost."""
    stored(store)
    accept(database, 0, 3)
    before = store.taken_up(0)

    new = [PutOff(at, 1, "so", b"new %d" % at) for at in (3, 5, 6, 7)]
    store.store(Batch(0, 3, 8, 3, put_off=new, emitted_late=before))
    twice = [row(store, 8, at=80, value=v) for v in (1, 2)]
    store.store(Batch(0, 8, 9, 3, updates=[twice[0]._replace(offset=7), twice[1]]))

    assert waiting(store) == [b"record 5", b"record 6", *(each.record for each in new)]
    assert store.taken_up(0) == []
    assert values_emitted_again(store) == [b'{"v":1}', b'{"v":2}']


def test_it_may_be_lost_again_before_they_are_computed(
    database: Database, store: PostgresPartitionStore
) -> None:
    stored(store)
    for end, topic_id in ((5, "A"), (0, "B"), (0, "C")):
        accept(database, 0, end, topic_id)
        database.rows("VACUUM put_off")  # what comes now is before what waits, on the disk
        at = store.begin(0)[0]
        more = [late(each) for each in range(at, at + 12)]
        store.store(Batch(0, at, at + 12, at, put_off=more))

    old = [b"record 5", b"record 6"]
    assert waiting(store) == [
        *old,
        *(b"record %d" % each for first in (5, 0, 0) for each in range(first, first + 12)),
    ]
    assert values_emitted_again(store) == [b'{"v":%d}' % each for each in (3, 7, 8, 9)]


def test_a_log_that_lost_its_beginning_takes_no_place_of_theirs(
    database: Database, store: PostgresPartitionStore
) -> None:
    stored(store)
    again = values_emitted_again(store)

    accept(database, 12, 15)

    assert store.begin(0) == (12, 0, 7)
    assert store.taken_up(0) == [TreeKey(3)]
    assert values_emitted_again(store) == again
    assert waiting(store) == [b"record 5", b"record 6"]


def test_what_is_to_be_purged_is_no_place_in_the_log(
    database: Database, store: PostgresPartitionStore
) -> None:
    stored(store)
    store.store(Batch(0, 10, 11, 10, effect=Erase("so", "a", 5), emitted_late=[TreeKey(3)]))

    accept(database, 0, 0, "B")

    assert values_emitted_again(store) == []
    while store.purge(0, 100, 10**6) is not None:
        pass
    assert database.rows("SELECT count(*) FROM updates") == [(0,)]
    assert waiting(store) == [b"record 5", b"record 6"]


def test_what_crosses_borders_and_is_not_there_for_certain_is_kept(
    database: Database, store: PostgresPartitionStore
) -> None:
    """And sent once more, before all that the shorter log has; then it goes."""
    record = b'{"kind":"end","provider":1}'
    made = [Crossing(at, tree, 0, (1,), record) for at, tree in ((2, 0), (5, 0), (6, 1), (6, 2))]
    store.store(Batch(0, 1, 6, 3, crossings=made[:2]))
    store.store(Batch(0, 6, 6, 3, crossings=made[2:], next_tree=3))

    accept(database, 0, 4)

    assert store.begin(0) == (4, 0, 4)
    assert [each._replace(offset=0) for each in store.crossings(0)] == [
        each._replace(offset=0) for each in made[1:]
    ]
    offsets = [each.offset for each in store.crossings(0)]
    assert offsets == sorted(offsets)
    assert max(offsets) < 0
    assert store.taken_up(0) == [TreeKey(at) for at in sorted(set(offsets))]
    store.store(Batch(0, 4, 5, 4))
    assert len(store.crossings(0)) == 3
    store.store(Batch(0, 5, 6, 5, emitted_late=store.taken_up(0)))
    assert store.crossings(0) == []


def test_what_was_made_in_the_longer_log_is_older_than_all_that_comes(
    database: Database, store: PostgresPartitionStore
) -> None:
    """Wherever it waits: to be sent once more, or taken and put off in another partition."""

    def record(partition: int, at: int, forwarded: tuple[int, int] | None = None) -> bytes:
        return write(EndRecord(Source(partition, at, 2), 1, 2, ("r",), (), None, forwarded))

    store.store(Batch(0, 1, 12, 3, crossings=[Crossing(5, 0, 0, (1,), record(0, 5))]))
    store.begin(1)
    waiting = [record(0, 6), record(1, 6), record(1, 7, (0, 8)), b"no record"]
    late = [PutOff(at, 2, "r", each) for at, each in enumerate(waiting)]
    store.store(Batch(1, 0, 4, 0, put_off=late))

    log = Present("updates", "A", {0: Bounds(0, 4), 1: Bounds(0, 9)})
    log_loss.accept(PostgresLogIdentity(database), lambda: log)

    assert [each.record for each in store.crossings(0)] == [record(0, 5 - 13)]
    assert [each.record for each in store.put_off(1, 2, 9, 9999)] == [
        record(0, 6 - 13),
        record(1, 6),
        record(1, 7, (0, 8 - 13)),
        b"no record",
    ]


def test_places_in_a_shorter_log_are_no_older(
    database: Database, store: PostgresPartitionStore, dsn: str
) -> None:
    """What others have taken from there, and what they were told, is not compared any more."""
    api = Database(dsn, role=Role.API)
    tenants = PostgresTenants(api)
    other = tenants.tenant_of(tenants.create_tenant("other")) or 0
    source = StreamRef("so", "a")
    new = NewServiceObject("r", other, False, TEXT, ("a",), (("g", source),), 0)
    PostgresChangeStore(api).create(new, 2)
    api.close()
    store.begin(1)
    store.store(Batch(1, 0, 1, 0, effect=Activate("r", 1, 2, (source,))))

    def begin(first: int, offset: int) -> Mapping[int, tuple[int, int]]:
        effect = BeginInputs(other, ("r",), 1, ((source, None, None),), (0, offset))
        store.store(Batch(1, first, first + 1, 0, effect=effect))
        return store.channels(1, [source])[source].marks

    assert begin(1, 9) == {0: (9, 0)}
    store.store(Batch(0, 1, 12, 12))
    log = Present("updates", "A", {0: Bounds(0, 4), 1: Bounds(0, 9)})
    log_loss.accept(PostgresLogIdentity(database), lambda: log)
    store.begin(1)
    assert store.channels(1, [source])[source].marks == {0: (9 - 13, 0)}

    assert begin(2, 5) == {0: (5, 0)}
