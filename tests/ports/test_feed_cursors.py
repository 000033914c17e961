"""Durable subscriptions and their cursors, as Postgres keeps them."""

from __future__ import annotations

import time

import pytest
from port_builders import Stored

from servioticy.domain.feed_slots import SLOTS, of_tenant
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.cursors import Source, StoredCursor
from servioticy.ports.dead_deliveries import Trouble
from servioticy.storage.cursors import Deliverer, PostgresCursors
from servioticy.storage.database import Database
from servioticy.storage.dead_deliveries import PostgresDeadDeliveries

pytestmark = pytest.mark.real

BEGUN = StoredCursor({0: 5, 1: 7}, {StreamRef("so1", "a"): 12}, {0: 3})


@pytest.fixture
def stream(stored: Stored) -> StreamKey:
    stored.create("so1")
    stored.database.rows("UPDATE service_objects SET public = true WHERE id = 'so1'")
    return stored.stream("so1")


@pytest.fixture
def cursors(stored: Stored, stream: StreamKey, delivery: Database) -> PostgresCursors:
    """Two durable subscriptions, of two tenants, and one that is not durable."""
    for id_, tenant in (("1", stored.tenant), ("2", stored.other)):
        stored.subscribe(id_, stream, callback="http", tenant=tenant, cursor=BEGUN)
    stored.subscribe("3", stream, "y")
    return PostgresCursors(delivery)


def claimed_all(cursors: PostgresCursors) -> bool:
    return len(cursors.claim().slots) == SLOTS


def until_claimed_all(cursors: PostgresCursors) -> None:
    """A connection that is closed here is gone a moment later there."""
    for _ in range(6000):
        if claimed_all(cursors):
            return
        time.sleep(0.01)
    raise AssertionError("nobody has them, and they are not to be had")


def test_processes_share_what_there_is(cursors: PostgresCursors, dsn: str) -> None:
    """Who comes has its part as soon as others have let it go; who is left, all of it."""
    assert claimed_all(cursors)
    assert claimed_all(cursors)

    database = Database(dsn)
    other = PostgresCursors(database)
    assert other.claim().slots == frozenset()
    before = cursors.claim()
    assert (len(before.slots), len(before.surplus)) == (SLOTS, SLOTS // 2)
    assert other.claim().slots == frozenset()
    cursors.release(before.surplus)
    assert other.claim().slots == before.surplus
    after = cursors.claim()
    assert (after.slots, after.surplus) == (before.slots - before.surplus, frozenset())
    assert after.fence == before.fence

    database.close()
    until_claimed_all(cursors)


def test_who_has_a_subscription_is_found_by_its_slot(
    cursors: PostgresCursors, delivery: Database, dsn: str
) -> None:
    """Nobody is found who does not say where, or whose address is too long to be told."""
    assert claimed_all(cursors)
    database = Database(dsn)
    other = PostgresCursors(database, address="http://10.0.0.2:8081")
    other.claim()
    cursors.release(cursors.claim().surplus)
    theirs = other.claim()

    here = cursors.claim()
    assert here.elsewhere == dict.fromkeys(theirs.slots, "http://10.0.0.2:8081")
    assert theirs.elsewhere == {} and theirs.holder("1") is None
    found = {here.has(id_) or here.holder(id_) for id_ in map(str, range(100))}
    assert found == {True, "http://10.0.0.2:8081"}

    database.close()
    until_claimed_all(cursors)
    long = PostgresCursors(delivery, address="http://" + "x" * 60)
    assert long.claim().elsewhere == {}


def test_of_the_brokers_one_process_has_all_of_a_tenant(
    cursors: PostgresCursors, stored: Stored, stream: StreamKey, dsn: str
) -> None:
    """However many there are, and whatever processes of delivery have."""
    assert claimed_all(cursors)
    assert {id_: each.key for id_, each in cursors.changes().items()} == {"1": "1", "2": "2"}
    stored.subscribe("4", stream, callback="pubsub", tenant=stored.tenant, cursor=BEGUN)
    first, second = Database(dsn), Database(dsn)
    one, two = (PostgresCursors(each, Deliverer.BROKER) for each in (first, second))
    assert claimed_all(one)
    assert two.claim().slots == frozenset()
    one.release(one.claim().surplus)
    here, there = one.claim(), two.claim()

    assert len(here.slots) == len(there.slots) == SLOTS // 2
    keys = {id_: each.key for id_, each in one.changes().items()}
    assert keys["1"] == keys["4"] != keys["2"]
    assert keys["2"] == of_tenant(stored.other)
    for each in keys.values():
        assert here.has(each) is not there.has(each)
    first.close()
    until_claimed_all(two)
    second.close()


def test_who_has_lost_its_connection_stores_nothing(
    cursors: PostgresCursors, delivery: Database
) -> None:
    """Others may have gone on from there; it claims anew, and knows that it has lost them."""
    before = cursors.claim()
    cursors.store({"1": StoredCursor({0: 6})})
    delivery.close()

    with pytest.raises(Unavailable):
        cursors.store({"1": StoredCursor({0: 7})})
    assert cursors.subscriptions(["1"])[0].cursor == StoredCursor({0: 6})
    until_claimed_all(cursors)
    assert cursors.claim().fence != before.fence
    cursors.store({"1": StoredCursor({0: 7})})
    assert cursors.subscriptions(["1"])[0].cursor == StoredCursor({0: 7})


def test_a_subscription_is_found_with_its_cursor(
    cursors: PostgresCursors, stored: Stored, stream: StreamKey
) -> None:
    one, two = cursors.subscriptions(["1", "2", "3", "nothing"])

    assert (one.id, one.tenant, one.callback) == ("1", stored.tenant, "http")
    assert (two.id, two.tenant) == ("2", stored.other)
    assert one.streams == {StreamRef("so1", "a"): stream}
    assert one.cursor == BEGUN
    assert (one.source, one.newest) == (Source("so1", "a"), None)
    assert cursors.changes().keys() == {"1", "2"}


def test_what_is_private_now_is_not_delivered_to_others(
    cursors: PostgresCursors, stored: Stored
) -> None:
    stored.database.rows("UPDATE service_objects SET public = false WHERE id = 'so1'")
    assert cursors.changes().keys() == {"1"}

    stored.database.rows("UPDATE service_objects SET public = true WHERE id = 'so1'")
    assert cursors.changes().keys() == {"1", "2"}


def test_what_is_deleted_is_delivered_to_nobody(cursors: PostgresCursors, stored: Stored) -> None:
    """From the request on: its history stays until the pipeline has purged it."""
    stored.database.rows("UPDATE service_objects SET deleted_at = 1 WHERE id = 'so1'")

    assert cursors.changes() == {}


def test_a_trouble_is_known_after_a_restart(
    cursors: PostgresCursors, stored: Stored, delivery: Database
) -> None:
    trouble = Trouble(123, 1, 503, "no")
    PostgresDeadDeliveries(delivery).trouble(stored.tenant, "1", trouble)

    one, two = cursors.subscriptions(["1", "2"])
    assert (one.failing_since_ms, two.failing_since_ms) == (123, None)


def test_a_cursor_moves_and_its_subscription_is_not_changed(cursors: PostgresCursors) -> None:
    before = cursors.changes()
    cursors.store({"1": StoredCursor({0: 6}), "3": BEGUN, "nothing": BEGUN})

    one, two = cursors.subscriptions(["1", "2"])
    assert one.cursor == StoredCursor({0: 6})
    assert two.cursor == BEGUN
    assert cursors.changes() == before


def test_what_is_dropped_or_stopped_is_not_delivered_to(
    cursors: PostgresCursors, stored: Stored
) -> None:
    stored.subscriptions.rows("unsubscribe", tenant=stored.tenant, id="1")
    stored.database.rows("UPDATE cursors SET active = false WHERE subscription_id = '2'")

    assert cursors.changes() == {}
    assert cursors.subscriptions(["1", "2"]) == []
