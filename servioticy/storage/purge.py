"""Removing from Postgres what was deleted or erased, piece by piece."""

from __future__ import annotations

from typing import Any

from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("purge")


def purge(database: Database, partition: int, most: int, most_bytes: int) -> int | None:
    """Remove a piece of what was deleted or erased here; whose it was. None: nothing is left.

    At most so many rows, and no more than take about so many bytes and one. A transaction of its
    own, and no matter who does it: nobody can read these rows. Raises Unavailable.
    """
    with database.transaction():
        row = database.row(_SQL["next_purge"], {"partition": partition})
        if row is None:
            return None
        id_, tenant, service_object, stored_as, reached = row
        values = {
            "id": id_,
            "tenant": tenant,
            "service_object": service_object,
            "stored_as": stored_as,
            "reached": reached,
            "partition": partition,
            "most": most,
            "most_bytes": most_bytes,
        }
        for name in _steps(database, values):
            if database.rows(_SQL[name], values):
                break
    return int(tenant)


def _steps(database: Database, values: dict[str, Any]) -> tuple[str, ...]:
    """Statements of which each is run where the one before found nothing to remove."""
    if values["stored_as"] is not None:
        return ("purge_updates", "purge_kept", "purge_rest_of_stream", "purged")
    stream = database.row(_SQL["stream_to_purge"], values)
    if stream is None:
        own = ("purge_subscriptions_of", "purge_readings", "purge_edges_to", "purge_definitions")
        return (*own, "purged")
    values["stream"] = stream[0]
    return ("purge_subscriptions_to", "purge_edges_from", "purge_stream")
