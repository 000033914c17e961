"""The setting that names databases: whose schema each is, and nothing of its secret anywhere."""

from __future__ import annotations

import pytest

from servioticy.domain.workflows.tables import Server, databases, is_column
from servioticy.errors import SettingsError
from servioticy.settings import changed, load
from servioticy.storage.outside_tables import statement

URL = "postgres://writer:s%2Fcret@db.example.org/warehouse"


def test_each_tenant_has_a_schema_of_its_own() -> None:
    own = databases({"dw": URL + "/{tenant}"})["dw"]

    assert own.server == Server("db.example.org", 5432, "warehouse", "writer", "s/cret", "require")
    assert (own.of("t1"), own.of("t" * 63), own.of("t" * 64)) == ("t1", "t" * 63, None)
    assert [own.of(each) for each in ("", "..", "a/b")] == [None] * 3


def test_a_schema_by_its_name_is_for_whom_it_says() -> None:
    own = databases({"dw": URL.replace("org/", "org:5433/") + "/plant?tenants=t1,t2"})["dw"]

    assert (own.of("t2"), own.of("t3"), own.server.port) == ("plant", None, 5433)


@pytest.mark.parametrize(
    "url",
    [
        URL,
        URL + "/plant",
        URL + "/{tenant}/more",
        URL.replace("warehouse", "{tenant}") + "/plant?tenants=t1",
        URL.replace("writer:s%2Fcret@", "") + "/{tenant}",
        URL.replace("postgres:", "mysql:") + "/{tenant}",
        URL.replace("org/", "org:port/") + "/{tenant}",
        URL + "/{tenant}?sslmode=never",
        URL + "/{tenant}?options=-c",
    ],
)
def test_what_is_wrong_is_told_without_the_secret(url: str) -> None:
    with pytest.raises(SettingsError, match="functions_databases: dw: ") as told:
        databases({"dw": url})

    assert "cret" not in str(told.value)


def test_the_setting_shows_no_secret() -> None:
    settings = changed(load({}), functions_databases={"dw": URL + "/{tenant}"})

    assert "cret" not in repr(settings)
    assert "cret" not in repr(databases({"dw": URL + "/{tenant}"}))


def test_a_longer_name_would_mean_another_column() -> None:
    """Postgres cuts it: so what it has room for is counted in bytes."""
    assert is_column("ü" * 31 + "x")
    assert not any(map(is_column, ("", "ü" * 32, "a\0b", "\ud800")))


def test_names_are_quoted_and_nothing_else_is_a_tenants() -> None:
    told = statement('a"b', "t", ['x"; DROP', "100%"], ["100%"])

    assert told == (
        'INSERT INTO "a""b"."t" ("x""; DROP", "100%%") SELECT given."x""; DROP", given."100%%"'
        ' FROM pg_catalog.jsonb_populate_recordset(NULL::"a""b"."t", %(rows)s::jsonb) AS given'
        ' ON CONFLICT ("100%%") DO UPDATE SET "x""; DROP" = excluded."x""; DROP"'
    )
    assert statement("s", "t", ["a"], ["a"]).endswith('ON CONFLICT ("a") DO NOTHING')
    assert "CONFLICT" not in statement("s", "t", ["a"], [])
