"""What Subscriptions keep."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.domain.access import Resource
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.partition_store import Batch, Delete
from servioticy.ports.subscriptions import NewSubscription, Subscription
from servioticy.storage.partition_store import PostgresPartitionStore

pytestmark = pytest.mark.real


@pytest.fixture
def stream(stored: Stored) -> StreamKey:
    stored.create("so1")
    return stored.stream("so1")


def subscribe(
    stored: Stored,
    id_: str,
    stream: StreamKey,
    destination: str = "x",
    callback: str = "pubsub",
    now: int = 1000,
    tenant: int | None = None,
) -> bool:
    document = b'{"id":"%b"}' % id_.encode()
    return stored.subscriptions.subscribe(
        NewSubscription(id_, tenant or stored.tenant, stream, callback, destination, document, now)
    )


def test_the_same_pubsub_subscription_is_refused(stored: Stored, stream: StreamKey) -> None:
    assert subscribe(stored, "1", stream)
    assert not subscribe(stored, "2", stream)
    assert subscribe(stored, "3", stored.stream("so1", "b"))
    assert subscribe(stored, "4", stream, "y")
    assert subscribe(stored, "5", stream, "x", "websocket")
    assert subscribe(stored, "6", stream, "x", "websocket")


def test_subscriptions_are_listed_read_and_dropped(stored: Stored, stream: StreamKey) -> None:
    """Those of applications: a group that reads the stream is none."""
    stored.create("so2", groups=(("g", StreamRef("so1", "a")),))
    subscribe(stored, "2", stream, "x", tenant=stored.other)
    subscribe(stored, "1", stream, "y", now=2000)
    theirs = Subscription(stored.other, stored.tenant, b'{"id":"2"}')
    own = Subscription(stored.tenant, stored.tenant, b'{"id":"1"}')

    assert stored.subscriptions.of_stream(stream) == [theirs, own]
    assert stored.subscriptions.subscription("2") == theirs
    assert theirs.resource == Resource((stored.other, stored.tenant))

    stored.subscriptions.unsubscribe(stored.other, "2")
    stored.subscriptions.unsubscribe(stored.other, "nothing")

    assert stored.subscriptions.subscription("2") is None
    assert stored.subscriptions.of_stream(stream) == [own]


@pytest.mark.parametrize("id_", ["nothing", "", "1\0"])
def test_what_is_no_subscription_is_not_found(stored: Stored, stream: StreamKey, id_: str) -> None:
    subscribe(stored, "1", stream)

    assert stored.subscriptions.subscription(id_) is None


def test_a_subscription_goes_with_its_stream(stored: Stored, stream: StreamKey) -> None:
    """Not found from the deletion on, and not there any more once the log has said so."""
    key = stored.create("so2")
    subscribe(stored, "1", stored.stream("so2"))
    subscribe(stored, "2", stream)
    stored.change_store.delete(key, None, 2000)
    assert stored.subscriptions.subscription("1") is None

    store = PostgresPartitionStore(stored.database, lambda _text: ())
    store.begin(0)
    store.store(Batch(0, 0, 1, 0, effect=Delete("so2")))

    rows = stored.database.rows("SELECT id FROM subscriptions")
    assert rows == [("2",)]
