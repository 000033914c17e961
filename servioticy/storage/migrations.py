"""Brings the schema up to date: numbered files, each applied once, in order.

`sql/schema.sql` is what all of them make together, to be read; a test holds it equal.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from importlib import resources

import psycopg2
import psycopg2.errors

from servioticy.errors import SetupError, Unavailable
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import make_roles

_LOCK = 7_305_808_869_231  # any number that only migrations use


LOCK_SECONDS = 2.0
"""So long a change of a table waits for who uses it: all who come after it wait behind it."""
PAUSE_SECONDS = 0.5
"""In which those get on."""
TRY_SECONDS = 300.0


def migrate(
    database: Database,
    only: Collection[str] | None = None,
    try_seconds: float = TRY_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Apply what is missing and return its names. Safe to run at the same time twice.

    `only` these files, by their names; others may have been applied.

    Whoever works meanwhile goes on: a table that is not to be had at once is asked for again, and
    nobody else waits behind us for longer than LOCK_SECONDS.

    Raises SetupError, and changes nothing, where a file differs from what was applied under its
    name: the schema then is not the one that the programs expect; and where the roles of the
    programs cannot be made, or would pass row level security. Raises Unavailable where a table was
    not to be had for `try_seconds`.
    """
    until = clock() + try_seconds
    while True:
        try:
            return _migrate(database, only)
        except Unavailable as error:
            if not isinstance(error.__cause__, psycopg2.errors.LockNotAvailable):
                raise
            if clock() >= until:
                raise Unavailable(
                    f"a table is in use for longer than {try_seconds:g} s, by a back-up or a long "
                    "transaction: nothing was changed; migrate again when that is over"
                ) from error
        time.sleep(PAUSE_SECONDS)


def _migrate(database: Database, only: Collection[str] | None) -> list[str]:
    sql = queries("migrations")
    applied = []
    with database.transaction():
        database.rows(sql["lock"], {"key": _LOCK})
        database.rows(sql["wait_no_longer"], {"wait": f"{int(LOCK_SECONDS * 1000)}ms"})
        make_roles(database)
        database.rows(sql["see_all_or_fail"])
        database.rows(sql["prepare"])
        checksums = dict(database.rows(sql["applied"]))
        for file in sorted(_files(), key=lambda each: each.name):
            if only is not None and file.name not in only:
                continue
            content = file.read_text("utf-8")
            values = {"name": file.name, "checksum": _checksum(content)}
            if file.name not in checksums:
                database.rows(content)
                database.rows(sql["note"], values)
                applied.append(file.name)
            elif checksums[file.name] is None:  # applied by a release that noted none
                database.rows(sql["note_checksum"], values)
            elif checksums[file.name] != values["checksum"]:
                raise SetupError(
                    f"the migration {file.name} is not the one that was applied to this database: "
                    "put the file back as it was, and write a new one for the change"
                )
    return applied


def known() -> dict[str, str]:
    """Return the checksum of each file by its name, in the order in which they are applied."""
    return {
        each.name: _checksum(each.read_text("utf-8"))
        for each in sorted(_files(), key=lambda each: each.name)
    }


def applied(database: Database) -> dict[str, str | None]:
    """Return what was applied to a database, with checksums; empty where there is no schema."""
    sql = queries("migrations")
    if not database.rows(sql["exists"])[0][0]:
        return {}
    return dict(database.rows(sql["applied"]))


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _files() -> list[resources.abc.Traversable]:
    folder = resources.files("servioticy.storage") / "sql" / "migrations"
    return [each for each in folder.iterdir() if each.name.endswith(".sql")]
