"""What a control record brings about in Postgres, in the transaction of its batch."""

from __future__ import annotations

from typing import assert_never

from servioticy.ports.partition_store import (
    Activate,
    Allow,
    Delete,
    Effect,
    Erase,
    Release,
    Revoke,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("effects")


def take_effect(database: Database, effect: Effect, partition: int) -> None:
    """Bring it about in this partition. Raises Unavailable."""
    match effect:
        case Activate():
            database.rows(_SQL["activate"], effect._asdict())
        case Delete():
            database.rows(_SQL["delete"], {"partition": partition, **effect._asdict()})
        case Erase():
            database.rows(_SQL["erase"], {"partition": partition, **effect._asdict()})
        case Allow():
            database.rows(_SQL["allow"], effect._asdict())
        case Revoke():
            database.rows(_SQL["revoke"], effect._asdict())
        case Release():
            _release(database, effect, partition)
        case unknown:
            assert_never(unknown)


def _release(database: Database, effect: Release, partition: int) -> None:
    values = {
        "partition": partition,
        "service_objects": list(effect.service_objects),
        "to_partition": effect.to_partition,
    }
    database.rows(_SQL["release"], values)
