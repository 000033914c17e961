"""What has been used is put on the accounts of who is still there."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.ports.partition_store import Use
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
