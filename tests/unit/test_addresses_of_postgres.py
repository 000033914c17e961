"""Addresses of a Postgres that has a standby: programs are told both."""

from __future__ import annotations

import pytest

from command.doctor import postgres_address
from servioticy.embedded.postgres import login

BOTH = "postgresql://owner:secret@db-1:5432,db-2:5433/postgres?target_session_attrs=read-write"


def test_the_login_of_another_user_has_both_addresses_and_another_password() -> None:
    found = login(BOTH, "api")

    place = "db-1:5432,db-2:5433/postgres?target_session_attrs=read-write"
    assert found.dsn == f"postgresql://api:{found.password}@{place}"
    assert found.password != "secret"


@pytest.mark.parametrize(
    "dsn", [BOTH, "host=db-1,db-2 port=5432,5433", "postgresql://owner:secret@db-1/postgres"]
)
def test_the_doctor_looks_for_the_first(dsn: str) -> None:
    assert postgres_address(dsn) == ("db-1", 5432)
