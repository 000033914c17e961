"""What has been used is put on the accounts of who is still there."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.domain.model import Grant, StreamRef
from servioticy.domain.quotas import quotas
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.change_store import NewGrant
from servioticy.ports.effects import Delete, Erase
from servioticy.ports.usage import Given, Spent
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.usage import PostgresUsage

pytestmark = pytest.mark.real

A, B = StreamRef("so1", "a"), StreamRef("so1", "b")


def test_a_tenant_that_has_gone_pays_nothing_and_stops_nobody(stored: Stored) -> None:
    """It was deleted while its last updates were not accounted for yet."""
    key = stored.create("so1")
    gone = key.tenant + 1_000

    PostgresPartitionStore(stored.pipeline, lambda _text: ()).account(
        [
            Use(key.tenant, A, key.tenant, updates=1, rows=1, bytes=100),
            Use(gone, A, gone, updates=1, rows=1, bytes=7),
        ]
    )

    assert stored.database.rows("SELECT tenant_id, bytes FROM stored_amounts") == [
        (key.tenant, 100)
    ]


def test_what_took_the_place_of_something_is_stored_once(stored: Stored) -> None:
    """Sent a thousand times with one timestamp, an update is one row."""
    key = stored.create("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())

    store.account([Use(key.tenant, A, key.tenant, updates=3, rows=3, bytes=300, replaced=200)])
    store.account([Use(key.tenant, A, key.tenant, updates=1, rows=1, bytes=10, replaced=100)])

    ((amount,),) = stored.database.rows("SELECT bytes FROM stored_amounts")
    assert amount == 10
    ((written,),) = stored.database.rows("SELECT sum(stored_bytes) FROM usage_hours")
    assert written == 310, "usage tells what was written"


def most(computations: int, stored: int = 10**6) -> dict[str, int]:
    return {"computations": computations, "processor-seconds": 10, "stored-bytes": stored}


def test_an_hour_begins_with_nothing_and_an_operator_may_say_otherwise(stored: Stored) -> None:
    key = stored.create("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    use = Use(key.tenant, A, key.tenant, computations={"emitted": 5})
    store.account([use])
    assert store.used_up(most(5)) == {key.tenant: "computations"}
    PostgresQuotas(stored.database).give("acme", "computations", 6)
    assert store.used_up(most(5)) == {}
    PostgresQuotas(stored.database).give("acme", "computations", None)

    stored.database.rows("UPDATE used_amounts SET hour = hour - 3600000")
    assert store.used_up(most(1)) == {}
    store.account([use])

    ((computations,),) = stored.database.rows("SELECT computations FROM used_amounts")
    assert computations == 5


def test_what_is_erased_comes_back_whole_however_small_it_was_on_the_disk(
    stored: Stored,
) -> None:
    """What was accounted is the length of the documents; Postgres compresses these to a tenth."""
    key = stored.create("so1")
    stream = stored.stream("so1")
    documents = [b'{"lastUpdate":%d,"v":"%s"}' % (at, b"ab" * 8_000) for at in range(1, 51)]
    size = sum(map(len, documents))
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    updates = [
        StoredUpdate(*stream, at, document, 1, 0, at)
        for at, document in enumerate(documents, start=1)
    ]
    store.store(Batch(0, 0, 1, 0, updates))
    store.account([Use(key.tenant, A, key.tenant, updates=50, rows=50, bytes=size + 7)])
    on_disk = "SELECT sum(pg_column_size(document)) FROM updates"
    assert stored.database.rows(on_disk)[0][0] < size / 10

    store.store(Batch(0, 1, 2, 1, effect=Erase("so1", "a", 1)))
    while store.purge(0, 20, 10**6) is not None:
        pass

    assert stored.database.rows("SELECT bytes FROM stored_amounts") == [(7,)]


def back(stream: tuple[int, int], at: int, document: bytes, offset: int) -> StoredUpdate:
    """What takes back a result."""
    return StoredUpdate(*stream, at, document, 1, offset, 0, takes_back=True)


@pytest.mark.parametrize("end", ["newer", "erased"])
def test_what_is_kept_of_what_was_taken_back_counts_as_long(stored: Stored, end: str) -> None:
    """Until something as new is there, or the stream is erased: at the border of the quota."""
    key = stored.create("so1")
    stream = stored.stream("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    first, said = b'{"v":1}', b'{"v":1,"revision":7,"retracted":true}'

    def amount(offset: int, update: StoredUpdate, size: int) -> int:
        """Store it, and have it accounted; what the tenant has stored then."""
        less = store.store(Batch(0, offset, offset + 1, offset, [update]))[stream[1]]
        store.account([Use(key.tenant, A, key.tenant, rows=1, bytes=size, replaced=less)])
        ((found,),) = stored.database.rows("SELECT bytes FROM stored_amounts")
        return int(found)

    assert amount(0, StoredUpdate(*stream, 5, first, 1, 0, 0), len(first)) == len(first)
    assert amount(1, back(stream, 5, said, 1), 0) == len(said)
    assert store.used_up(most(5, len(said))) == {key.tenant: "stored-bytes"}
    assert store.used_up(most(5, len(said) + 1)) == {}
    assert amount(2, back(stream, 7, first, 2), 0) == len(first), "one of a stream"
    assert amount(3, back(stream, 6, said, 3), 0) == len(first)
    if end == "newer":
        newer = StoredUpdate(*stream, 8, said, 1, 4, 0, True, ends_taken_back=True)
        assert amount(4, newer, len(said)) == len(said)
        return
    store.store(Batch(0, 4, 5, 4, effect=Erase("so1", "a", 1)))
    while store.purge(0, 20, 10**6) is not None:
        pass
    assert stored.database.rows("SELECT bytes FROM stored_amounts") == [(0,)]


def test_each_program_may_tell_by_which_grant_others_streams_were_used(
    stored: Stored, delivery: Database
) -> None:
    key = stored.create("so1")
    new = NewGrant(key, Grant("g", stored.other), 1000, None)
    stored.change_store.grant(new, 9)
    stored.database.rows("UPDATE grants SET active = true")
    made = StreamRef("so2", "c")

    PostgresPartitionStore(stored.pipeline, lambda _text: ()).account(
        [Use(stored.other, made, key.tenant, each, microseconds=7) for each in (A, B)]
    )
    PostgresUsage(delivery).deliver({Given(stored.other, key.tenant, "so1", "a"): 2})

    found = "SELECT stream, grant_id, processor_us, deliveries FROM usage_hours ORDER BY 1"
    assert stored.database.rows(found) == [("a", "g", 0, 2), ("c", "g", 14, 0)]
    told = "SELECT tenant_id, causer FROM audit WHERE action = 'used' ORDER BY 1"
    assert stored.database.rows(told) == [(key.tenant, 0), (stored.other, key.tenant)]


def test_what_is_stored_counts_beyond_its_hour(stored: Stored) -> None:
    """For who never sends: its composites over others' streams store, too."""
    key = stored.create("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.account([Use(key.tenant, A, key.tenant, rows=1, bytes=300)])
    stored.database.rows("UPDATE used_amounts SET hour = hour - 3600000")

    assert store.used_up(most(5, 301)) == {}
    assert store.used_up(most(5, 300)) == {key.tenant: "stored-bytes"}
    PostgresQuotas(stored.database).give("acme", "stored-bytes", 301)
    assert store.used_up(most(5, 300)) == {}
    PostgresQuotas(stored.database).give("acme", "stored-bytes", 0)
    assert store.used_up(most(5, 10**6)) == {key.tenant: "stored-bytes"}


def test_what_was_used_is_paid_when_the_stream_is_gone(stored: Stored) -> None:
    """It was deleted before its last seconds came to the accounts."""
    key = stored.create("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    store.store(Batch(0, 0, 1, 0, effect=Delete("so1")))

    store.account(
        [
            Use(
                key.tenant,
                A,
                key.tenant,
                updates=1,
                rows=1,
                bytes=9,
                computations={"emitted": 2},
                microseconds=7,
            )
        ]
    )

    assert stored.database.rows(
        "SELECT service_object, updates_in, processor_us, computations FROM usage_hours"
    ) == [("so1", 1, 7, {"emitted": 2})]
    used = stored.database.rows("SELECT computations, processor_us FROM used_amounts")
    assert used == [(2, 7)]
    assert stored.database.rows("SELECT 1 FROM usage") == []


@pytest.mark.parametrize("is_going", [True, False])
def test_what_was_used_of_a_tenant_that_goes_names_nothing_of_it(
    stored: Stored, delivery: Database, is_going: bool
) -> None:
    """The accounts come late, and later yet where Postgres was away."""
    key, made = stored.create("so1"), StreamRef("so2", "c")
    stored.change_store.grant(NewGrant(key, Grant("g", stored.other), 1000, None), 9)
    stored.database.rows("UPDATE grants SET active = true")
    provider = key.tenant if is_going else key.tenant + 1_000
    stored.database.rows("UPDATE tenants SET deleted_at = now() WHERE name = 'acme'")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())

    uses = [
        Use(stored.other, made, provider, source, computations={"emitted": 2}, microseconds=7)
        for source in (A, B)
    ]
    store.account(uses)
    store.account([*uses, Use(stored.other, made, 0, rows=1)])
    PostgresUsage(delivery).deliver({Given(stored.other, provider, "so1", "a"): 2})

    assert stored.database.rows(
        "SELECT service_object, stream, provider_id, grant_id, computations, processor_us,"
        "       stored_rows, deliveries"
        "  FROM usage_hours ORDER BY stream"
    ) == [("", "", 0, "", {}, 0, 0, 2), ("so2", "c", 0, "", {"emitted": 8}, 28, 1, 0)]


def test_what_conditions_of_actions_take_is_in_the_same_accounts(
    stored: Stored, delivery: Database
) -> None:
    """A tenant that has gone pays nothing, and stops nobody."""
    key = stored.create("so1")
    quota = quotas(Settings())["processor-seconds"]._replace(most=3)
    usage, given = PostgresUsage(delivery), PostgresQuotas(delivery)
    for microseconds in (1_500_000, 1_400_000):
        spent = {
            Spent(key.tenant, "so1", "a"): microseconds,
            Spent(key.tenant + 1_000, "so2", "a"): 7,
        }
        usage.spend(spent)
    assert given.used_up(quota) == {}
    usage.spend({Spent(key.tenant, "so1", "b"): 100_000})

    assert stored.database.rows(
        "SELECT tenant_id, service_object, stream, provider_id, processor_us"
        "  FROM usage_hours ORDER BY stream"
    ) == [
        (key.tenant, "so1", "a", key.tenant, 2_900_000),
        (key.tenant, "so1", "b", key.tenant, 100_000),
    ]
    assert {tenant: over.quota for tenant, over in given.used_up(quota).items()} == {
        key.tenant: quota
    }
    assert given.used_up(quotas(Settings())["deliveries"]) == {}
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    assert store.used_up(most(5) | {"processor-seconds": 3}) == {
        key.tenant: "processor-seconds"
    }, "its composites rest, too"
