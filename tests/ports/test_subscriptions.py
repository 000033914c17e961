"""What the statements on subscriptions keep, and what Statements are."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Delete
from servioticy.storage.partition_store import PostgresPartitionStore

pytestmark = pytest.mark.real


@pytest.fixture
def stream(stored: Stored) -> StreamKey:
    stored.create("so1")
    return stored.stream("so1")


def test_the_same_pubsub_subscription_is_refused(stored: Stored, stream: StreamKey) -> None:
    assert stored.subscribe("1", stream)
    assert not stored.subscribe("2", stream)
    assert stored.subscribe("3", stored.stream("so1", "b"))
    assert stored.subscribe("4", stream, "y")
    assert stored.subscribe("5", stream, "x", "websocket")
    assert stored.subscribe("6", stream, "x", "websocket")


def test_subscriptions_are_listed_read_and_dropped(stored: Stored, stream: StreamKey) -> None:
    """Those of applications: a group that reads the stream is none."""
    stored.create("so2", groups=(("g", StreamRef("so1", "a")),))
    stored.subscribe("2", stream, "x", tenant=stored.other)
    stored.subscribe("1", stream, "y", now=2000)
    theirs = (stored.other, stored.tenant, '{"id":"2"}', None, None)
    own = (stored.tenant, stored.tenant, '{"id":"1"}', None, None)

    assert stored.subscriptions_to(stream) == [theirs, own]
    assert stored.subscriptions_to(stream, only=stored.other) == [theirs]
    assert stored.subscriptions.row("subscription", id="2") == theirs

    stored.subscriptions.rows("unsubscribe", tenant=stored.other, id="2")
    stored.subscriptions.rows("unsubscribe", tenant=stored.other, id="nothing")

    assert stored.subscriptions.row("subscription", id="2") is None
    assert stored.subscriptions_to(stream) == [own]


@pytest.mark.parametrize("id_", ["nothing", "", "1\0"])
def test_what_is_no_subscription_is_not_found(stored: Stored, stream: StreamKey, id_: str) -> None:
    stored.subscribe("1", stream)

    assert stored.subscriptions.row("subscription", id=id_) is None


def test_a_subscription_goes_with_its_stream(stored: Stored, stream: StreamKey) -> None:
    """Not found from the deletion on, and not there any more once the log has said so."""
    key = stored.create("so2")
    stored.subscribe("1", stored.stream("so2"))
    stored.subscribe("2", stream)
    stored.change_store.delete(key, None, 2000)
    assert stored.subscriptions.row("subscription", id="1") is None

    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    store.store(Batch(0, 0, 1, 0, effect=Delete("so2")))
    while store.purge(0, 1000, 10**6) is not None:
        pass

    rows = stored.database.rows("SELECT id FROM subscriptions")
    assert rows == [("2",)]
