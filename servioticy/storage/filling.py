"""An empty database that is filled from a back-up: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from servioticy.domain.kept import TABLES, TABLES_LEFT_OUT
from servioticy.domain.places import Numbering
from servioticy.errors import ServioticyError
from servioticy.ports.cursors import StoredCursor
from servioticy.storage.cursors import PostgresCursors
from servioticy.storage.database import Database
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.migrations import applied, known, migrate
from servioticy.storage.queries import queries
from servioticy.storage.snapshot import quoted

OF_A_START = {"migrations", "progress", "log_identity", "retention", "console_keys"}
"""Tables with rows where a platform has been started, and nothing but looked at."""


class NotEmpty(ServioticyError):
    """There is something where a back-up was to be restored."""


class PostgresFilling:
    """Fills a database. For one thread, as the owner of the tables."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("restore")

    @contextmanager
    def begun(self, migrations: Mapping[str, str]) -> Iterator[None]:
        """Make the schema that a back-up was made of; what is done inside is there in the end.

        That is to bring it up to date, too. Raises NotEmpty, and ServioticyError where that schema
        cannot be made here.
        """
        _check(migrations)
        with self._database.transaction():
            there = applied(self._database)
            if later := sorted(there.keys() - migrations.keys()):
                raise ServioticyError(
                    f"this database has the schema of a later release already ({later[-1]}), the "
                    "back-up has an earlier one: restore into a new database, or a new data folder"
                )
            self._check_empty()
            migrate(self._database, only=migrations)
            self._database.rows(self._sql["forget_log"])
            yield
        self._database.rows("ANALYZE")

    def _check_empty(self) -> None:
        if self._database.rows(self._sql["programs"])[0][0]:
            raise NotEmpty("a platform works on this database: stop its programs first")
        for name in (*(each.name for each in TABLES), *TABLES_LEFT_OUT):
            if name in OF_A_START or not self._is(self._sql["exists"], name):
                continue
            with self._all_seen((name,)):
                rows = self._database.rows(self._sql["has_rows"].format(table=quoted(name)))
            if rows[0][0]:
                raise NotEmpty(
                    f"this database is not empty (table {name}): a back-up is restored into an "
                    "empty platform only, such as a new data folder or a new database"
                )

    def fill(self, table: str, columns: Sequence[str], file: BinaryIO) -> None:
        """Copy the rows of a table into it; nothing follows from that but its indexes."""
        forced = self._see_all(table)
        self._database.rows(f"ALTER TABLE {quoted(table)} DISABLE TRIGGER USER")
        names = ", ".join(map(quoted, columns))
        self._database.copy(f"COPY {quoted(table)} ({names}) FROM STDIN", file)
        self._database.rows(f"ALTER TABLE {quoted(table)} ENABLE TRIGGER USER")
        if forced:
            self._database.rows(f"ALTER TABLE {quoted(table)} FORCE ROW LEVEL SECURITY")

    def count_on(self, sequences: Mapping[str, tuple[int, bool]]) -> None:
        """Let sequences go on behind what has been given."""
        for name, (value, called) in sequences.items():
            values = {"sequence": quoted(name), "value": value, "called": called}
            self._database.rows(self._sql["set_sequence"], values)

    def bring_up_to_date(self) -> None:
        """All rows are there: the schema of the back-up becomes that of this release."""
        migrate(self._database)

    def begun_trees(self) -> dict[int, int]:
        """Return by partition which trees of the record that progress stands at are stored.

        Those with smaller numbers; 0: none.
        """
        return dict(self._database.rows(self._sql["begun_trees"]))

    def begin_anew(
        self, topic: str, topic_id: str, begins: Mapping[int, int], numbering: Numbering
    ) -> None:
        """Go on in this log, by partition from these offsets on; stored records name others."""
        names = ("stored_updates", "updates", "superseded", "put_off")
        with self._all_seen(names):
            PostgresLogIdentity(self._database).begin_anew(topic, topic_id, begins, numbering)

    def forwarded(self) -> dict[tuple[int, int], int]:
        """Return by partition and the one from which records came: how far that is stored."""
        rows = self._database.rows(self._sql["forwarded"])
        return {(target, source): offset for target, source, offset in rows}

    def cursors(self) -> Iterator[dict[str, StoredCursor]]:
        """Yield the cursors of subscriptions and acting streams by their ids, some at a time."""
        with self._all_seen(("cursors", "subscriptions", "acting_streams")):
            for page in PostgresCursors(self._database).every():
                yield {each.id: each.cursor for each in page}

    def store_cursors(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Let these stand elsewhere; only while `cursors` is gone through."""
        PostgresCursors(self._database).store(cursors)

    @contextmanager
    def _all_seen(self, tables: Iterable[str]) -> Iterator[None]:
        forced = [each for each in tables if self._see_all(each)]
        yield
        for each in forced:
            self._database.rows(f"ALTER TABLE {quoted(each)} FORCE ROW LEVEL SECURITY")

    def _see_all(self, table: str) -> bool:
        """Let the owner see all rows of a table; tell whether it did not before."""
        forced = self._is(self._sql["is_forced"], table)
        if forced:
            self._database.rows(f"ALTER TABLE {quoted(table)} NO FORCE ROW LEVEL SECURITY")
        return forced

    def _is(self, sql: str, table: str) -> bool:
        return bool(self._database.rows(sql, {"table": table})[0][0])


def _check(migrations: Mapping[str, str]) -> None:
    """Raises ServioticyError where the files that made the back-up's schema are not all here."""
    ours = known()
    if unknown := _not_in(migrations, ours):
        raise ServioticyError(
            f"the back-up was made by a later release than this one (its schema has {unknown}): "
            "restore it with that release, or a later one"
        )
    if other := [name for name, checksum in migrations.items() if ours[name] != checksum]:
        raise ServioticyError(
            f"the schema of the back-up was made by another file {other[0]} than the one here: "
            "restore it with the release that made it"
        )


def _not_in(names: Iterable[str], ours: Collection[str]) -> str:
    return ", ".join(sorted(set(names) - set(ours)))
