"""Machines that vanish, and servers that are fenced: what connections to Postgres make of them."""

from __future__ import annotations

import pytest

from servioticy.errors import Unavailable
from servioticy.storage.database import Database
from servioticy.storage.roles import Role

pytestmark = pytest.mark.real


@pytest.mark.parametrize("role", [None, *Role])
def test_postgres_asks_soon_whether_we_are_there(dsn: str, role: Role | None) -> None:
    database = Database(dsn, role=role)
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "user_timeout")

    found = [database.rows(f"SHOW tcp_{name}")[0][0] for name in names]

    database.close()
    assert found == ["5", "2", "3", "11000"]


def test_a_server_that_only_reads_is_none(dsn: str) -> None:
    """Who has a connection to it looks for another one, and takes no update for what failed."""
    fenced = Database(f"{dsn}?options=-c%20default_transaction_read_only%3Don")
    assert fenced.rows("SELECT 1") == [(1,)]

    with pytest.raises(Unavailable):
        fenced.rows("CREATE TABLE made ()")
