"""Whoever names the wrong tenant finds nothing, even with the right number or id."""

from __future__ import annotations

import pytest
from port_builders import PARTITIONS, Stored, a_service_object

from servioticy.domain.access import Resource, Right, may
from servioticy.domain.model import ServiceObjectKey, StreamKey, StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict
from servioticy.ports.service_objects import VersionKey
from servioticy.storage.partition_store import PostgresPartitionStore

pytestmark = pytest.mark.real

UPDATE = b'{"channels":{},"lastUpdate":5}'


@pytest.fixture
def streams(stored: Stored) -> tuple[StreamKey, StreamKey]:
    """A stream with something of every kind, and the same under another tenant's name."""
    stored.create("so1")
    own = stored.stream("so1")
    store = PostgresPartitionStore(stored.pipeline, lambda _text: ())
    store.begin(0)
    store.store(
        Batch(
            0,
            0,
            1,
            0,
            updates=[StoredUpdate(*own, 5, UPDATE, 1, 0, 0)],
            verdicts=[StoredVerdict(*own, "emitted", 1, b"{}")],
        )
    )
    used = StreamRef("so1", "a")
    store.account([Use(own.tenant, used, own.tenant, microseconds=7)])
    return own, StreamKey(stored.other, own.stream_id)


def test_a_stream_is_its_owners(stored: Stored, streams: tuple[StreamKey, StreamKey]) -> None:
    history = stored.history
    own, theirs = (
        [
            history.newest(each),
            history.page(each, (0, 9), 9, 999),
            history.updates_after(each, 0, 9, 999),
            history.last_update(each),
            history.verdicts(each),
            history.processor_us(each),
        ]
        for each in streams
    )

    assert all(own)
    assert not any(theirs)


def test_a_service_object_is_its_owners(stored: Stored) -> None:
    own = stored.create("so1")
    documents = stored.service_objects
    for key, found in ((own, True), (ServiceObjectKey(stored.other, "so1"), False)):
        shown = [
            documents.current(key),
            documents.versions(key),
            documents.document(VersionKey(*key, 1)),
            documents.documents([VersionKey(*key, 1)]),
            documents.customise(key, 1, b"{}", 2000),
        ]

        assert [bool(each) for each in shown] == [found] * 5


def test_a_subscription_is_its_owners(
    stored: Stored, streams: tuple[StreamKey, StreamKey]
) -> None:
    own, theirs = streams
    stored.subscribe("1", own)

    stored.subscriptions.rows("unsubscribe", tenant=stored.other, id="1")

    assert len(stored.subscriptions_to(own)) == 1
    assert stored.subscriptions_to(theirs) == []


def test_sql_and_the_domain_agree_on_who_may_read(stored: Stored) -> None:
    """Two places hold the rule; this holds them together."""
    owners = {"own": (stored.tenant, False), "public": (stored.tenant, True)}
    owners |= {"theirs": (stored.other, False), "open": (stored.other, True)}
    for id_, (owner, public) in owners.items():
        stored.change_store.create(a_service_object(owner, id_, public=public), PARTITIONS)

    readers = stored.database.rows("SELECT service_object, tenant_id FROM readers")

    assert len(readers) == len(set(readers))
    assert set(readers) == {
        (id_, tenant)
        for id_, (owner, public) in owners.items()
        for tenant in (stored.tenant, stored.other)
        if may(tenant, Right.READ, Resource((owner,), public))
    }
