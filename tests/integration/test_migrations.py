"""Migrations: applied once and as they were, moving what is there, and told by one file."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import orjson
import pytest
from told_schema import told_schema

from servioticy.embedded.postgres import binary
from servioticy.errors import SetupError, Unavailable
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.storage import migrations
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role

SQL = resources.files("servioticy.storage") / "sql"


@pytest.fixture
def empty(empty_dsn: str) -> Iterator[Database]:
    found = Database(empty_dsn)
    yield found
    found.close()


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    found = Database(dsn)
    yield found
    found.close()


def dumped(dsn: str) -> list[str]:
    """The schema as Postgres tells it, but for what keeps account of migrations.

    Names of NOT NULL and the order of grants only tell in which order things were said.
    """
    program = [binary("pg_dump"), "--schema-only", "--no-owner", "--exclude-table=migrations"]
    text = subprocess.run([*program, dsn], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"CONSTRAINT \w+ NOT NULL", "NOT NULL", text)
    # `\restrict` carries a word that is new each time.
    lines = [each for each in text.splitlines() if not each.startswith(("\\", "--"))]
    grants = [each for each in lines if each.startswith("GRANT ")]
    return [each for each in lines if not each.startswith("GRANT ")] + sorted(grants)


def test_the_schema_is_what_all_migrations_make(dsn: str, empty_dsn: str, empty: Database) -> None:
    """It is read by people, who have to be able to trust it."""
    for text in told_schema():
        empty.rows(text)

    assert "CREATE TABLE public.tenants (" in dumped(dsn)
    assert dumped(empty_dsn) == dumped(dsn)


def test_what_is_applied_is_not_applied_again(empty: Database) -> None:
    names = migrations.migrate(empty)

    assert names == sorted(names)
    assert names[0] == "0001_first.sql"
    assert migrations.migrate(empty) == []


def test_an_applied_file_that_has_changed_is_refused(database: Database) -> None:
    """Else two databases of one release could have two schemas."""
    changed = "UPDATE migrations SET checksum = 'another' WHERE name = '0002_uses.sql'"
    database.rows(changed)

    with pytest.raises(SetupError, match=r"0002_uses\.sql is not the one that was applied"):
        migrations.migrate(database)


def test_what_was_applied_before_there_were_checksums_gets_them(database: Database) -> None:
    """Once noted they count."""
    noted = "SELECT name, checksum FROM migrations ORDER BY name"
    before = database.rows(noted)
    database.rows("ALTER TABLE migrations DROP COLUMN checksum")

    assert migrations.migrate(database) == []
    assert database.rows(noted) == before
    assert all(len(checksum) == 64 for _, checksum in before)


def test_a_migration_that_fails_leaves_nothing(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = migrations._files()
    monkeypatch.setattr(migrations, "_files", lambda: [*whole, SQL / "history.sql"])

    with pytest.raises(Exception, match="syntax error"):
        migrations.migrate(empty)

    assert empty.rows("SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []


def test_edges_of_the_graph_leave_the_table_of_subscriptions(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0011: each group's edges under their group, and wishes stay as they are."""
    whole = migrations._files()
    before = [each for each in whole if each.name < "0011"]
    monkeypatch.setattr(migrations, "_files", lambda: before)
    migrations.migrate(empty)
    empty.rows(
        """
        INSERT INTO tenants (name) VALUES ('acme');
        INSERT INTO service_objects (id, tenant_id, public, created_at, updated_at, version,
                                     component, route_partition, owner_partition)
        SELECT id, 1, false, 0, 0, 1, 'so1', 0, 0 FROM unnest('{so1,so2}'::text[]) AS id;
        INSERT INTO streams (tenant_id, service_object, name) VALUES (1, 'so1', 'a');
        INSERT INTO subscriptions
               (id, tenant_id, stream_id, callback, destination, document, created_at)
        VALUES ('e1', 1, 1, 'internal', 'so2', '{"customFields":{"groupId":"g"}}', 5),
               ('e2', 1, 1, 'internal', 'so2', '{"customFields":{"groupId":"g"}}', 5),
               ('e3', 1, 1, 'internal', 'so2', '{"customFields":{"groupId":"h"}}', 5),
               ('w1', 1, 1, 'pubsub', 'so2', '{}', 5)
        """
    )
    monkeypatch.setattr(migrations, "_files", lambda: whole)

    migrations.migrate(empty)

    edges = "SELECT reader, group_name, stream_id, tenant_id FROM graph_edges ORDER BY 2"
    assert empty.rows(edges) == [("so2", "g", 1, 1), ("so2", "h", 1, 1)]
    assert empty.rows("SELECT id, callback FROM subscriptions") == [("w1", "pubsub")]
    with pytest.raises(Exception, match="subscriptions_of_applications"):
        empty.rows("UPDATE subscriptions SET callback = 'internal'")


def test_what_composites_were_made_from_becomes_their_state(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0013: exact, also what JavaScript's numbers cannot hold."""
    whole = migrations._files()
    before = [each for each in whole if each.name < "0013"]
    monkeypatch.setattr(migrations, "_files", lambda: before)
    migrations.migrate(empty)
    empty.rows(
        """
        INSERT INTO last_updates (stream_id, tenant_id, "timestamp", document, version, uses)
        VALUES (1, 5, 7, '{}', 1, '{"so/\u00e9": 7, "so/ns": 1700000000123456789}'),
               (2, 5, 7, '{}', 1, NULL), (3, 5, 7, '{}', 1, '{}')
        """
    )
    monkeypatch.setattr(migrations, "_files", lambda: whole)

    migrations.migrate(empty)

    states = "SELECT stream_id, tenant_id, convert_from(state, 'UTF8')::jsonb FROM states"
    assert empty.rows(f"{states} ORDER BY 1") == [
        (1, 5, {"so/\u00e9": 7, "so/ns": "1700000000123456789"}),
        (3, 5, {}),
    ]


def test_updates_stay_where_row_level_security_comes(
    empty: Database, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0080: what is stored is read as before, and what comes is beside it."""
    whole = migrations._files()
    before = [each for each in whole if each.name < "0080"]
    monkeypatch.setattr(migrations, "_files", lambda: before)
    migrations.migrate(empty)
    empty.rows("INSERT INTO updates VALUES (5, 1, 7, '{}', 1, 0, 0, 0)")
    monkeypatch.setattr(migrations, "_files", lambda: whole)

    migrations.migrate(empty)

    pipeline = Database(empty_dsn, role=Role.PIPELINE)
    store = PostgresPartitionStore(pipeline, lambda _: ())
    store.begin(0)
    store.store(Batch(0, 0, 1, 0, [StoredUpdate(5, 1, 8, b"{}", 1, 0, 0, True)]))
    pipeline.close()
    stored = 'SELECT tenant_id, "timestamp" FROM updates ORDER BY 2'
    assert empty.rows(stored) == [(5, 7), (5, 8)]


def test_what_the_audit_log_holds_is_of_the_parts_that_are_bounded_apart(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0111: numbered as if each had come since."""
    whole = migrations._files()
    monkeypatch.setattr(migrations, "_files", lambda: [e for e in whole if e.name < "0111"])
    migrations.migrate(empty)
    empty.rows(
        "INSERT INTO audit (tenant_id, number, actor_tenant, action, kind, subject)"
        " VALUES (1, 1, NULL, 'made', 'token', 't'), (1, 2, 1, 'made', 'token', 'u'),"
        " (1, 3, 1, 'made', 'token', 'v'), (1, 4, 2, 'made', 'grant', 'g')"
    )
    empty.rows("INSERT INTO audit_counts (tenant_id, number) VALUES (1, 4)")
    monkeypatch.setattr(migrations, "_files", lambda: whole)
    migrations.migrate(empty)

    empty.rows("SELECT note_in_audit(1, 'made', 'token', 'w')")
    assert empty.rows("SELECT causer, place, subject FROM audit ORDER BY number") == [
        (0, 1, "t"),
        (1, 1, "u"),
        (1, 2, "v"),
        (2, 1, "g"),
        (0, 2, "w"),
    ]


def test_what_was_deleted_before_keeps_nothing_and_versions_have_their_bytes(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0121: and no version goes that the log may have still to name."""
    whole = sorted(migrations._files(), key=lambda each: each.name)
    monkeypatch.setattr(migrations, "_files", lambda: [f for f in whole if f.name < "0121"])
    migrations.migrate(empty)
    empty.rows(
        """
        INSERT INTO tenants (name) VALUES ('acme');
        INSERT INTO pending_changes (tenant_id, change) VALUES (1, '{}'), (1, '{}');
        INSERT INTO service_objects (id, tenant_id, public, created_at, updated_at, version,
                                     component, route_partition, owner_partition, custom_fields)
        SELECT id, 1, false, 0, 0, 1, id, 0, 0, '{"owner":"me"}'
          FROM unnest('{a,b}'::text[]) AS id;
        INSERT INTO definitions (service_object, version, tenant_id, document, created_at)
        SELECT id, 1, 1, '{"name":"\u00e9"}', 0 FROM service_objects
        """
    )
    empty.rows("UPDATE service_objects SET deleted_at = 5 WHERE id = 'b'")
    assert empty.rows("SELECT count(*) FROM listings") == [(2,)]
    monkeypatch.setattr(migrations, "_files", lambda: whole)

    migrations.migrate(empty)

    kept = "SELECT id, custom_fields::text FROM service_objects ORDER BY id"
    assert empty.rows(kept) == [("a", '{"owner":"me"}'), ("b", None)]
    assert empty.rows("SELECT service_object FROM listings") == [("a",)]
    named = "SELECT DISTINCT bytes, named_by FROM definitions"
    assert empty.rows(named) == [(len('{"name":"\u00e9"}'.encode()), 2)]


def test_documents_go_on_to_mean_the_owners_of_operators_that_they_meant(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0270: and nobody where the name was given to somebody else since, or to nobody."""
    whole = sorted(migrations._files(), key=lambda each: each.name)
    monkeypatch.setattr(migrations, "_files", lambda: [f for f in whole if f.name < "0270"])
    migrations.migrate(empty)
    empty.rows(
        """
        INSERT INTO tenants (name, created_at, deleted_at)
        VALUES ('acme', 'epoch', NULL), ('a "b" é', 'epoch', NULL), ('gone', 'epoch', now()),
               ('young', '1980-01-01', NULL), ('unnamed', 'epoch', NULL);
        INSERT INTO service_objects (id, tenant_id, public, created_at, updated_at, version,
                                     component, route_partition, owner_partition)
        SELECT id, 1, false, 0, 0, 1, id, 0, 0 FROM unnest('{a,b,c}'::text[]) AS id
        """
    )
    named = ("acme/x", 'a "b" é/y-1', "gone/x", "young/x", "nobody/x", "x")
    streams = {
        str(number): {"operator": {"name": name, "version": 1}, "nul": "\0"}
        for number, name in enumerate(named)
    }
    for id_, content in (
        ("a", {"name": "unnamed", "streams": streams}),
        ("b", {"name": "acme/x"}),
        ("c", {"streams": {"s": {"operator": {"version": 1, "name": "acme/x"}}}}),
    ):
        empty.rows(
            "INSERT INTO definitions (service_object, version, tenant_id, document, created_at)"
            " VALUES (%(id)s, 1, 1, %(document)s, 0)",
            {"id": id_, "document": orjson.dumps(content).decode()},
        )
    monkeypatch.setattr(migrations, "_files", lambda: whole)

    migrations.migrate(empty)

    found = dict(empty.rows("SELECT service_object, operator_owners FROM definitions"))
    assert found == {"a": {"acme": 1, 'a "b" é': 2}, "b": None, "c": {"acme": 1}}


LATER = "9999_later.sql"
EXPANDING = "ALTER TABLE service_objects ADD COLUMN later text;"


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that changes a table which is in use."""
    (tmp_path / LATER).write_text(EXPANDING)
    files = migrations._files()
    monkeypatch.setattr(migrations, "_files", lambda: [*files, tmp_path / LATER])


@pytest.fixture
def reader(dsn: str) -> Iterator[Database]:
    """Who reads a table in a transaction that does not end, as a back-up does."""
    found = Database(dsn)
    with found.transaction():
        found.rows("SELECT count(*) FROM service_objects")
        yield found
    found.close()


def test_nobody_waits_behind_a_migration_that_waits(
    later: None, reader: Database, database: Database, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the back-up is over it has asked in vain, and others have read in between."""
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as beside:
        migrating = beside.submit(migrations.migrate, database)
        other, longest = Database(dsn), 0.0
        for _ in range(20):
            began = time.monotonic()
            other.rows("SELECT count(*) FROM service_objects")
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.05)
        other.close()
        assert not migrating.done()
        reader.rows("COMMIT")

        assert migrating.result() == [LATER]
    assert longest < 5.0  # it waits for the lock, not for the back-up


def test_a_table_that_is_never_to_be_had_is_told(
    later: None, reader: Database, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.1)

    with pytest.raises(Unavailable, match="a back-up or a long transaction: nothing was changed"):
        migrations.migrate(database, try_seconds=0.3)
    assert LATER not in migrations.applied(database)
