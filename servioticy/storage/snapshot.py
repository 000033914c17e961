"""All of Postgres at one moment, to be copied at leisure; nobody is held up by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, TypeVar

from servioticy.domain.kept import Table
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.cursors import ACTING, PostgresCursors, Standing, apart
from servioticy.storage.database import Database
from servioticy.storage.migrations import applied
from servioticy.storage.queries import queries

Seen = TypeVar("Seen")


class PostgresSnapshot:
    """One moment of a database, of all tenants. For one thread, whose connection sees all."""

    def __init__(self, database: Database) -> None:
        """`database` is one of Role.BACKUP."""
        self._database = database
        self._sql = queries("backup")

    @contextmanager
    def taken(self, look: Callable[[], Seen]) -> Iterator[Seen]:
        """Fix the moment, look at something else in the same one, and stay in it.

        Between the two nobody changes the stream graph: of a change that the moment has,
        the log has all there is to have when `look` returns, and of later ones nothing.
        """
        with ExitStack() as changing:
            changing.enter_context(PostgresChangeStore(self._database).changing())
            with self._database.transaction():
                self._database.rows(self._sql["one_moment"])
                self._database.rows(self._sql["moment"])
                seen = look()
                changing.close()
                yield seen

    def server(self) -> str:
        """Return which Postgres it is."""
        return str(self._database.rows(self._sql["moment"])[0][1])

    def migrations(self) -> dict[str, str | None]:
        """Return what was applied to it, with checksums."""
        return applied(self._database)

    def columns(self, table: Table) -> list[str]:
        """Return those columns of a table that `copy` writes."""
        found = self._database.rows(self._sql["columns"], {"table": table.name})
        return [name for (name,) in found if name not in table.without]

    def copy(self, table: Table, columns: list[str], file: BinaryIO) -> None:
        """Write a table's rows as text of COPY, a line each."""
        names = ", ".join(map(quoted, columns))
        source = quoted(table.name)
        if table.counted:
            source = f"({self._sql[table.counted]}) AS counted"
        self._database.copy(self._sql["copy"].format(names=names, source=source), file)

    def sequences(self) -> dict[str, tuple[int, bool]]:
        """Return how far each has counted: no number of the moment is beyond."""
        names = [name for (name,) in self._database.rows(self._sql["sequences"])]
        read = "SELECT last_value, is_called FROM {}"
        found = {name: self._database.rows(read.format(quoted(name)))[0] for name in names}
        return {name: (int(value), bool(called)) for name, (value, called) in found.items()}

    def cursors(self) -> Iterator[list[Standing]]:
        """Yield where all durable subscriptions stand, some at a time."""
        return PostgresCursors(self._database).every()

    def streams_of(self, ids: Iterable[str], most: int) -> list[tuple[str, str]]:
        """Return which streams these are about: the id and the key in `emitted`, so many."""
        acting, subscribed = apart(ids)
        values = {"ids": subscribed, "streams": acting, "prefix": ACTING, "most": most}
        return self._database.rows(self._sql["streams_of"], values)


def quoted(name: str) -> str:
    """Return a name as it stands in SQL."""
    return '"' + name.replace('"', '""') + '"'
