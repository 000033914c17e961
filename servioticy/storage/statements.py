"""The Statements in Postgres."""

from __future__ import annotations

from contextlib import AbstractContextManager

from servioticy.storage.database import Database, Row
from servioticy.storage.queries import queries


class PostgresStatements:
    """Runs the statements of one resource."""

    def __init__(self, database: Database, resource: str) -> None:
        self._database = database
        self._sql = queries(resource)

    def rows(self, name: str, /, **values: object) -> list[Row]:
        """Run the statement of that name and return its rows; none if a text has a NUL in it."""
        if any("\0" in each for each in values.values() if isinstance(each, str)):
            return []
        return self._database.rows(self._sql[name], values)

    def row(self, name: str, /, **values: object) -> Row | None:
        """Run the statement and return its first row, or None."""
        return next(iter(self.rows(name, **values)), None)

    def together(self) -> AbstractContextManager[None]:
        """What this thread stores inside takes effect together or not at all."""
        return self._database.transaction()

    def session(self) -> AbstractContextManager[None]:
        """What this thread locks inside stays locked until it lets go, or the end."""
        return self._database.session()
