"""The AccessChanges in Postgres: triggers notify, and we listen."""

from __future__ import annotations

from servioticy.ports.access_changes import AccessChange
from servioticy.storage.database import Database

CHANNEL = "servioticy_access"


class PostgresAccessChanges:
    """Listens to what the triggers of tokens, members and Service Objects say."""

    def __init__(self, database: Database) -> None:
        """`database` keeps a connection open that listens, of the thread that asks."""
        self._database = database

    def wait(self, seconds: float) -> AccessChange:
        """Return what has changed since the last call, within so many seconds of silence."""
        heard = self._database.heard(CHANNEL, seconds)
        if heard is None:
            return AccessChange(everything=True)
        told = [each.partition(" ") for each in heard]
        return AccessChange(
            [bytes.fromhex(name) for kind, _, name in told if kind in ("token", "person")],
            [name for kind, _, name in told if kind == "object"],
        )
