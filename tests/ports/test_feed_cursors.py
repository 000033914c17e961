"""Durable subscriptions and their cursors, as Postgres keeps them."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.cursors import Source, StoredCursor
from servioticy.ports.dead_deliveries import Trouble
from servioticy.storage.cursors import PostgresCursors
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


def test_one_process_at_a_time_delivers(cursors: PostgresCursors, dsn: str) -> None:
    """However often it asks; the next one as soon as its connection is gone."""
    other = Database(dsn)
    assert PostgresCursors(other).claim()
    assert PostgresCursors(other).claim()
    assert not cursors.claim()

    other.close()

    for _ in range(100):
        if cursors.claim():
            break
    assert cursors.claim()


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
