"""Removing from Postgres updates that are older than they are kept, piece by piece."""

from __future__ import annotations

from servioticy.ports.expiry import Expired
from servioticy.storage.arrays import numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("retention")


def keep_for(database: Database, seconds: int | None) -> None:
    """Note how long updates are kept of streams that say nothing; None: for ever."""
    database.rows(_SQL["keep_for"], {"seconds": seconds})


def forgetful(database: Database, partition: int, after: int, most: int) -> list[int]:
    """Return the next tenants, by id, of whom something may expire in a partition's turn."""
    values = {"partition": partition, "after": after, "most": most}
    return [row[0] for row in database.rows(_SQL["forgetful"], values)]


def expire(
    database: Database, tenant: int, after: int, streams: int, most: int, most_bytes: int
) -> Expired:
    """Remove a piece of what has expired of a tenant's next streams.

    A transaction of its own; it may be killed at any moment, and done by whomever. Raises
    Unavailable.
    """
    bounds = {"streams": streams, "most": most, "most_bytes": most_bytes}
    with database.transaction():
        rows = database.rows(_SQL["expire"], {"tenant": tenant, "after": after, **bounds})
        reached = rows[0][0]
        gone = [row[1:] for row in rows if row[1] is not None]
        if gone:
            stored_as, removed, sizes, firsts, lasts = zip(*gone, strict=True)
            spans = {"firsts": numbers(firsts), "lasts": numbers(lasts)}
            values = {"tenant": tenant, "stored_as": numbers(stored_as), **spans}
            database.rows(_SQL["note_expired"], values)
            database.rows(_SQL["drop_expired_blocks"], values)
            return Expired(after, int(sum(removed)), int(sum(sizes)))
    return Expired(reached, 0, 0)
