"""By which grants tenants use the streams of others, noted with the grants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from servioticy.domain.model import StreamRef
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

Uses: TypeAlias = Collection[tuple[int, StreamRef]]
"""Tenants, each with a stream of another that it has used."""


def used_grants(
    database: Database, uses: Uses, *, deriving: bool
) -> Mapping[tuple[int, StreamRef], str]:
    """Return by which grant each is used, and note that it was. Raises Unavailable.

    Each is noted by itself, so that nothing else is locked by who waits for an audit log.
    """
    if not uses:
        return {}
    sql = queries("used_grants")
    tenants, streams = columns(sorted(uses), 2)
    service_objects, names = columns(streams, 2)
    values = {
        "receivers": numbers(tenants),
        "service_objects": list(service_objects),
        "streams": list(names),
        "deriving": deriving,
    }
    rows = database.rows(sql["used"], values)
    for grant in sorted({row[3] for row in rows if row[4]}):
        database.rows(sql["note"], {"grant": grant})
    return {(tenant, StreamRef(id_, name)): grant for tenant, id_, name, grant, _ in rows}
