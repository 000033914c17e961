"""A statement that takes too long is ended, once, and the caller is told so."""

from __future__ import annotations

import pytest

from servioticy.errors import Unavailable
from servioticy.storage.database import Database


def test_a_statement_that_takes_too_long_is_not_tried_again(session_dsn: str) -> None:
    """Tried again it would take as long again; and the connection is as good as before."""
    database = Database(session_dsn, statement_seconds=0.1)
    database.rows("CREATE TEMPORARY SEQUENCE tries")
    try:
        with pytest.raises(Unavailable, match="too long"):
            database.rows("SELECT nextval('tries'), pg_sleep(60)")

        assert database.rows("SELECT nextval('tries')") == [(2,)]
    finally:
        database.close()


def test_nobody_waits_for_a_lock_for_longer_than_it_may(session_dsn: str) -> None:
    """Not even for another transaction of the same thread, which goes on only afterwards."""
    database = Database(session_dsn, lock_seconds=0.1)
    other = database.another()
    lock = "SELECT pg_advisory_xact_lock(7001)"
    try:
        with other.transaction():
            other.rows(lock)
            with pytest.raises(Unavailable, match="others are changing"):
                database.rows(lock)
        database.rows(lock)
        with database.transaction():
            database.rows(lock)
            with pytest.raises(Unavailable, match="others are changing"):
                other.rows(lock)
    finally:
        database.close()
        other.close()
