"""What has been used is put on the accounts of who is still there."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.ports.partition_store import Batch, Erase, StoredUpdate, Use
from servioticy.storage.partition_store import PostgresPartitionStore

pytestmark = pytest.mark.real


def test_a_tenant_that_has_gone_pays_nothing_and_stops_nobody(stored: Stored) -> None:
    """It was deleted while its last updates were not accounted for yet."""
    key = stored.create("so1")
    stream = stored.stream("so1")
    gone = key.tenant + 1_000

    PostgresPartitionStore(stored.pipeline, lambda _text: ()).account(
        [
            Use(key.tenant, stream.stream_id, key.tenant, 1, 1, 100),
            Use(gone, stream.stream_id, gone, 1, 1, 7),
        ]
    )

    assert stored.database.rows("SELECT tenant_id, bytes FROM stored_amounts") == [
        (key.tenant, 100)
    ]


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
    store.account([Use(key.tenant, stream.stream_id, key.tenant, 50, 50, size + 7)])
    on_disk = "SELECT sum(pg_column_size(document)) FROM updates"
    assert stored.database.rows(on_disk)[0][0] < size / 10

    store.store(Batch(0, 1, 2, 1, effect=Erase("so1", "a", 1)))
    while store.purge(0, 20, 10**6) is not None:
        pass

    assert stored.database.rows("SELECT bytes FROM stored_amounts") == [(7,)]
