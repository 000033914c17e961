"""What a control record brings about in Postgres, in the transaction of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from servioticy.ports.effects import (
    Activate,
    ActivateAll,
    Allow,
    BeginInputs,
    Delete,
    Effect,
    EndInputs,
    Erase,
    Read,
    Release,
    Revoke,
)
from servioticy.storage import borders
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("effects")


def take_effect(database: Database, effect: Effect, partition: int) -> None:
    """Bring it about in this partition. Raises Unavailable."""
    match effect:
        case Activate():
            _activate(database, effect, partition)
        case ActivateAll(changes):
            database.rows(_SQL["activate_all"], named_changes(changes))
        case Delete():
            _delete(database, effect, partition)
        case Erase():
            database.rows(_SQL["erase"], {"partition": partition, **effect._asdict()})
        case Allow():
            database.rows(_SQL["allow"], effect._asdict())
        case Revoke():
            database.rows(_SQL["revoke"], effect._asdict())
        case Release():
            _release(database, effect, partition)
        case Read():
            borders.read(database, effect, partition)
        case BeginInputs():
            borders.begin(database, effect, partition)
        case EndInputs():
            borders.end(database, effect, partition)
        case unknown:
            assert_never(unknown)


def named_changes(changes: Sequence[Activate]) -> dict[str, Any]:
    """The columns of changes."""
    return {
        "service_objects": [each.service_object for each in changes],
        "versions": [each.version for each in changes],
        "changes": [each.change for each in changes],
    }


def _activate(database: Database, effect: Activate, partition: int) -> None:
    named = {
        "service_object": effect.service_object,
        "version": effect.version,
        "change": effect.change,
    }
    row = database.row(_SQL["activate"], named)
    if row is not None:
        borders.name_inputs(database, effect, row[0], partition)


def _delete(database: Database, effect: Delete, partition: int) -> None:
    row = database.row(_SQL["delete"], {"partition": partition, **effect._asdict()})
    if row is not None:
        borders.forget_inputs(database, effect.service_object, row[0], partition)


def _release(database: Database, effect: Release, partition: int) -> None:
    values = {
        "partition": partition,
        "service_objects": list(effect.service_objects),
        "to_partition": effect.to_partition,
    }
    database.rows(_SQL["release"], values)
