"""Brings the schema up to date: numbered files, each applied once, in order."""

from __future__ import annotations

from importlib import resources

from servioticy.storage.database import Database

_LOCK = 7_305_808_869_231  # any number that only migrations use


def migrate(database: Database) -> list[str]:
    """Apply what is missing and return its names. Safe to run at the same time twice."""
    applied = []
    with database.transaction():
        database.rows("SELECT pg_advisory_xact_lock(%(key)s)", {"key": _LOCK})
        database.rows("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)")
        done = {name for (name,) in database.rows("SELECT name FROM migrations")}
        for file in sorted(_files(), key=lambda each: each.name):
            if file.name not in done:
                database.rows(file.read_text("utf-8"))
                database.rows("INSERT INTO migrations VALUES (%(name)s)", {"name": file.name})
                applied.append(file.name)
    return applied


def _files() -> list[resources.abc.Traversable]:
    folder = resources.files("servioticy.storage") / "sql" / "migrations"
    return [each for each in folder.iterdir() if each.name.endswith(".sql")]
