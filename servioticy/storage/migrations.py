"""Brings the schema up to date: numbered files, each applied once, in order.

`sql/schema.sql` is what all of them make together, to be read; a test holds it equal.
"""

from __future__ import annotations

import hashlib
from importlib import resources

from servioticy.errors import SetupError
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import make_roles

_LOCK = 7_305_808_869_231  # any number that only migrations use


def migrate(database: Database) -> list[str]:
    """Apply what is missing and return its names. Safe to run at the same time twice.

    Raises SetupError, and changes nothing, where a file differs from what was applied under its
    name: the schema then is not the one that the programs expect; and where the roles of the
    programs cannot be made, or would pass row level security.
    """
    sql = queries("migrations")
    applied = []
    with database.transaction():
        database.rows(sql["lock"], {"key": _LOCK})
        make_roles(database)
        database.rows(sql["see_all_or_fail"])
        database.rows(sql["prepare"])
        checksums = dict(database.rows(sql["applied"]))
        for file in sorted(_files(), key=lambda each: each.name):
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


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _files() -> list[resources.abc.Traversable]:
    folder = resources.files("servioticy.storage") / "sql" / "migrations"
    return [each for each in folder.iterdir() if each.name.endswith(".sql")]
