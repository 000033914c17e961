"""A back-up of Postgres and the log, restored into others: what is stored, and what is to come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backup_world import Got, World
from port_builders import PARTITIONS

from sandbox import argument_names
from servioticy import bootstrap
from servioticy.backup import restoring
from servioticy.backup.archive import Archive
from servioticy.backup.taking import back_up
from servioticy.domain import log_loss
from servioticy.domain.kept import TABLES
from servioticy.domain.log_loss import LogLost
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    BorderRecord,
    BorderUpdate,
    ReleaseRecord,
    Source,
    read_record,
    write,
)
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.errors import ServioticyError, Unavailable
from servioticy.messaging.admin import ensure_topics
from servioticy.ports.batches import Batch
from servioticy.ports.cursors import StoredCursor
from servioticy.ports.put_off import PutOff
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage import migrations
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.filling import NotEmpty
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.migrations import migrate
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.snapshot import PostgresSnapshot

NOTHING = ReleaseRecord((), 0)
A, B = StreamRef("so1", "a"), StreamRef("so2", "a")
OTHERS = {each.name for each in TABLES if each.counted} | {"cursors"}
"""Tables in which places in the log are others."""


def restore(file: Path, settings: Settings) -> None:
    with Archive(file) as archive:
        restoring.restore(archive, settings)


@pytest.fixture
def world(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[World]:
    made = World(dsn, real_kafka.bootstrap_servers, topic_prefix)
    yield made
    made.close()


@pytest.fixture
def empty(empty_dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[World]:
    """Where it is restored."""
    made = World(empty_dsn, real_kafka.bootstrap_servers, f"{topic_prefix}new-", made=False)
    yield made
    made.close()


@pytest.fixture
def moved(world: World, empty: World, tmp_path: Path) -> Callable[[], World]:
    """Back the world up, and restore it."""

    def move() -> World:
        back_up(tmp_path / "file", world.settings)
        restore(tmp_path / "file", empty.settings)
        return empty

    return move


def test_all_rows_are_there_and_the_log_goes_on(world: World, moved: Callable[[], World]) -> None:
    """What is stored is below zero; what is not yet comes first in the new log, in order."""
    first, second = world.create("so1"), world.create("so2", 1)
    world.accept(0, *(world.update("so1", at) for at in range(10)))
    world.accept(1, *(world.update("so2", at) for at in range(3)))
    world.store_up_to(0, 7, 7, [world.row(first, at, at) for at in range(7)])
    world.store_up_to(1, 3, 3, [world.row(second, at, at) for at in range(3)])

    there = moved()

    for table in TABLES:
        if table.name not in OTHERS and "made_in" not in table.without:
            assert there.table(table.name) == world.table(table.name), table.name
    sql = (
        "SELECT stream_id, timestamp, document::text, log_offset FROM stored_updates ORDER BY 1, 2"
    )
    assert [row[:3] for row in there.owner.rows(sql)] == [row[:3] for row in world.owner.rows(sql)]
    assert [row[3] for row in there.owner.rows(sql)] == [*range(-7, 0), *range(-3, 0)]
    assert there.table("progress") == ["(0,1,1,0)", "(1,1,1,0)"]
    assert there.records(0) == [NOTHING, *(world.update("so1", at) for at in (7, 8, 9))]
    assert there.records(1) == [NOTHING]
    numbers = "SELECT nextval('streams_id_seq'), nextval('pending_changes_id_seq')"
    assert there.owner.rows(numbers) == world.owner.rows(numbers)


def test_programs_find_that_it_is_their_log(world: World, moved: Callable[[], World]) -> None:
    world.create("so1")
    there = moved()

    log_loss.check(PostgresLogIdentity(there.owner), lambda: bootstrap.present_log(there.settings))


def test_what_is_perhaps_not_emitted_is_emitted_again_and_nothing_else(
    world: World, moved: Callable[[], World]
) -> None:
    """What the new log has at the same offsets is others'."""
    stream = world.create("so1")
    world.accept(0, *(world.update("so1", at) for at in range(10)))
    world.store_up_to(0, 8, 5, [world.row(stream, at, at) for at in range(8)])
    there = moved()

    database = Database(there.settings.store.dsn, role=Role.PIPELINE)
    store = PostgresPartitionStore(database, argument_names)
    next_offset, _tree, emitted_offset = store.begin(0)
    again = store.not_acknowledged(0, emitted_offset, next_offset + 100)
    database.close()

    assert [each.timestamp for each in again] == [5, 6, 7]


def test_what_was_put_off_waits_in_its_order(world: World, moved: Callable[[], World]) -> None:
    world.create("so1")
    world.accept(0, *(world.update("so1", at) for at in range(6)))
    world.store.begin(0)
    late = [PutOff(at, world.stored.tenant, "so1", b"record %d" % at) for at in (1, 3)]
    world.store.store(Batch(0, 0, 5, 5, put_off=late))
    world.store.end(0)

    there = moved()

    sql = "SELECT log_offset, record FROM put_off ORDER BY 1"
    assert [(at, bytes(record)) for at, record in there.owner.rows(sql)] == [
        (-4, b"record 1"),
        (-2, b"record 3"),
    ]


def test_a_move_that_is_under_way_goes_on(world: World, moved: Callable[[], World]) -> None:
    """What one partition waits for in the other, and what it has forwarded, comes once."""
    world.create("so1")
    world.accept(0, *(world.update("so1", at) for at in range(4)))
    (released,) = world.accept(0, ReleaseRecord(("so1",), 1))
    world.accept(0, world.update("so1", 5), world.update("so1", 6), world.update("so1", 7))
    world.accept(1, AcquireRecord(("so1",), 0, released), AcquireRecord(("so1",), 0, 1))
    world.accept(
        1,
        *(world.update("so1", at, forwarded=(0, at)) for at in (5, 5, 6, 7)),
        world.update("so1", 8),
    )
    world.store_up_to(0, 6, 6, [])
    world.owner.rows("INSERT INTO forwarded VALUES (1, 0, 5)")

    there = moved()

    # Partition 0 begins at its record 6, which is offset 1 there.
    assert there.records(0) == [NOTHING, world.update("so1", 6), world.update("so1", 7)]
    assert there.records(1)[1:] == [
        AcquireRecord(("so1",), 0, 0),
        AcquireRecord(("so1",), 0, 0),
        world.update("so1", 5),
        NOTHING,  # it had come before
        world.update("so1", 6, forwarded=(0, 1)),
        world.update("so1", 7, forwarded=(0, 2)),
        world.update("so1", 8),
    ]
    assert there.table("forwarded") == ["(1,0,0)"]


def test_what_is_read_over_borders_goes_on_by_places_of_the_new_log(
    world: World, moved: Callable[[], World]
) -> None:
    """What has been taken in, what is in the log, and what is still to be sent."""
    world.create("so1")
    world.create("so2", 1)
    reading, other = world.stored.tenant, world.stored.tenant + 1
    world.accept(0, *(world.update("so1", at) for at in range(8)))
    text = msgspec.Raw(b"{}")
    updates = (BorderUpdate("so1", "a", 5, (), text),)
    crossed = [BorderRecord(Source(0, at), other, updates) for at in (3, 4)]
    world.accept(1, *crossed, BorderRecord(Source(0, 4), other, updates, forwarded=(0, 2)))
    world.store_up_to(0, 6, 6, [])
    world.store_up_to(1, 1, 1, [])
    sent = write(BorderRecord(Source(0, 5), other, updates))
    world.owner.rows(
        "INSERT INTO inputs_from_outside (reader, source, stream, tenant_id, provider_id, kept,"
        " fed_in, told_in, told_at, awaits_in, awaits_at)"
        " VALUES ('so2', 'so1', 'a', %(reading)s, %(other)s, true, 1, 0, 2, 1, 0);"
        " INSERT INTO outside_readers VALUES ('so2', 'so1', 'a', %(reading)s, %(other)s, 1, 7,"
        " true);"
        " INSERT INTO marks VALUES (1, 'so1', 'a', 0, %(other)s, 3, 1);"
        " INSERT INTO crossings VALUES (0, 5, 0, 0, '{1}', %(sent)s)",
        {"reading": reading, "other": other, "sent": sent},
    )

    there = moved()

    # Partition 0 begins at its record 6, which is offset 1 there; partition 1 at its record 1.
    assert there.records(1)[1:] == [
        BorderRecord(Source(0, -2), other, updates),
        BorderRecord(Source(0, -2), other, updates, forwarded=(0, -4)),
    ]
    rows = there.owner.rows
    assert rows("SELECT log_partition, from_partition, log_offset, part FROM marks") == [
        (1, 0, -3, 1)
    ]
    assert rows("SELECT told_in, told_at, awaits_in, awaits_at FROM inputs_from_outside") == [
        (0, -4, 1, -1)
    ]
    assert there.table("outside_readers") == world.table("outside_readers")
    ((offset, record),) = rows("SELECT log_offset, record FROM crossings")
    assert offset == -1
    assert read_record(bytes(record)) == BorderRecord(Source(0, -1), other, updates)


def test_durable_subscriptions_go_on_where_they_were(
    world: World, moved: Callable[[], World]
) -> None:
    """One that keeps pace, and one that is far behind; what is computed again is not kept."""
    one, two = world.create("so1"), world.create("so2")
    world.accept(0, *(world.update("so1", at) for at in range(6)))
    world.store_up_to(0, 4, 4, [world.row(one, at, at) for at in range(4)])
    world.emit(
        0, *(Got(A, at, at) for at in range(4)), Got(B, 9, 2), Got(A, 4, 4), Got(B, 8, None)
    )
    cursor = StoredCursor({0: 2, 1: 0}, since={0: 1, 1: 0})
    assert world.stored.subscribe("s1", world.stored.stream("so1"), cursor=cursor)
    cursor = StoredCursor({0: 7}, {A: 3}, before={0: 5}, newest=two, begun=frozenset({one}))
    assert world.stored.subscribe("s2", world.stored.stream("so2"), "y", cursor=cursor)

    there = moved()

    assert there.emitted(0) == [
        Got(A, 2, 2 - 4 + 1),
        Got(A, 3, 3 - 4 + 1),
        Got(B, 9, 2 - 4 + 1),
        Got(B, 8, None),
    ]
    assert there.cursor("s1") == StoredCursor({0: 0, 1: 0}, since={0: -2, 1: 1})
    assert there.cursor("s2") == StoredCursor(
        {0: 4}, {A: 3}, before={0: 3}, newest=two, begun=frozenset({one})
    )


def test_of_one_that_is_far_behind_only_its_streams_are_kept(
    world: World, moved: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servioticy.backup.wanted.NEAR", 2)
    for each in ("so1", "so2"):
        world.create(each)
    world.accept(0, *(world.update("so1", at) for at in range(10)))
    world.store_up_to(0, 10, 10, [])
    world.emit(0, *(Got(B if at % 2 else A, at, at) for at in range(10)))
    behind, near = StoredCursor({0: 1, 1: 0}), StoredCursor({0: 9, 1: 0})
    assert world.stored.subscribe("s1", world.stored.stream("so1"), cursor=behind)
    assert world.stored.subscribe("s2", world.stored.stream("so2"), "y", cursor=near)

    there = moved()

    assert [each.timestamp for each in there.emitted(0)] == [2, 4, 6, 8, 9]
    assert there.cursor("s1").offsets == {0: 0, 1: 0}
    assert there.cursor("s2").offsets == {0: 4, 1: 0}


def test_a_platform_that_is_not_empty_is_left_as_it_is(world: World, tmp_path: Path) -> None:
    world.create("so1")
    back_up(tmp_path / "file", world.settings)
    before = {each.name: world.table(each.name) for each in TABLES}

    with pytest.raises(NotEmpty, match=r"not empty .table tenants"):
        restore(tmp_path / "file", world.settings)

    assert {each.name: world.table(each.name) for each in TABLES} == before
    assert world.records(0) == []


def test_topics_of_others_are_left_as_they_are(world: World, empty: World, tmp_path: Path) -> None:
    back_up(tmp_path / "file", world.settings)
    world.accept(0, world.update("so1", 1))
    there = changed(world.settings, dsn=empty.settings.store.dsn)

    with pytest.raises(NotEmpty, match=r"topics .*updates"):
        restore(tmp_path / "file", there)

    assert world.records(0) == [world.update("so1", 1)]
    assert empty.owner.rows("SELECT to_regclass('tenants')") == [(None,)]


def test_a_platform_that_was_started_and_not_used_is_empty(
    world: World, empty: World, tmp_path: Path
) -> None:
    world.create("so1")
    back_up(tmp_path / "file", world.settings)
    migrate(empty.owner)
    empty.owner.rows(
        "INSERT INTO progress VALUES (0, 0, 0);"
        "INSERT INTO log_identity (topic, topic_id) VALUES ('updates', 'x')"
    )
    restore(tmp_path / "file", empty.settings)

    assert empty.table("service_objects") == world.table("service_objects")


def test_another_number_of_partitions_is_refused(
    world: World, empty: World, tmp_path: Path
) -> None:
    back_up(tmp_path / "file", world.settings)
    ensure_topics(bootstrap.kafka(empty.settings), empty.topics, PARTITIONS + 1)

    with pytest.raises(ServioticyError, match="has 3 partitions"):
        restore(tmp_path / "file", empty.settings)


def test_a_log_that_has_lost_what_is_stored_is_not_backed_up(world: World, tmp_path: Path) -> None:
    """What it would hold did not belong together."""
    world.owner.rows("UPDATE progress SET next_offset = 7")

    with pytest.raises(LogLost):
        back_up(tmp_path / "file", world.settings)

    assert list(tmp_path.iterdir()) == []


def test_where_no_platform_has_run_there_is_nothing_to_back_up(
    world: World, tmp_path: Path
) -> None:
    there = changed(world.settings, topic_prefix=f"{world.topics.prefix}none-")

    with pytest.raises(ServioticyError, match=r"there is no topic .*none-updates"):
        back_up(tmp_path / "file", there)

    assert list(tmp_path.iterdir()) == []


def test_a_schema_of_another_release_is_not_backed_up(world: World, tmp_path: Path) -> None:
    world.owner.rows("DELETE FROM migrations WHERE name LIKE '%backups.sql'")

    with pytest.raises(ServioticyError, match="servioticy migrate"):
        back_up(tmp_path / "file", world.settings)

    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from servioticy.settings import load
from servioticy.backup.archive import Archive
from servioticy.backup.restoring import restore
from servioticy.backup.taking import back_up

def told(_done, what):
    if {at!r} in what and not what.startswith("checking"):
        os.kill(os.getpid(), signal.SIGKILL)

file = Path(sys.argv[1])
{what}
"""
BACK_UP = "back_up(file, load(), told)"
RESTORE = "restore(Archive(file), load(), told)"


def killed(what: str, at: str, world: World, file: Path) -> None:
    script = KILLED.format(what=what, at=at)
    environment = {**os.environ, **to_environment(world.settings)}
    done = subprocess.run([sys.executable, "-c", script, str(file)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("at", ["tables/tenants", "tables/stored_updates", "log/updates-0"])
def test_a_back_up_that_is_killed_leaves_nothing_that_looks_whole(
    world: World, empty: World, tmp_path: Path, at: str
) -> None:
    """And the next one goes its way."""
    world.create("so1")
    world.accept(0, world.update("so1", 1))
    world.store_up_to(0, 1, 1, [world.row(world.stored.stream("so1").stream_id, 1, 0)])
    world.accept(0, world.update("so1", 2))
    file = tmp_path / "file"

    killed(BACK_UP, at, world, file)

    assert [each.name for each in tmp_path.iterdir()] == ["file.partial"]
    with pytest.raises(ServioticyError, match="no whole back-up"):
        restore(tmp_path / "file.partial", empty.settings)
    back_up(file, world.settings)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", ["tables/streams", "log/emitted-0", "log/updates-1"])
def test_a_restore_that_is_killed_may_be_begun_again(
    world: World, empty: World, tmp_path: Path, at: str
) -> None:
    """Postgres is as it was; what is in the log already is passed over."""
    world.create("so1")
    world.accept(0, *(world.update("so1", at) for at in range(4)))
    world.store_up_to(0, 2, 2, [])
    world.emit(0, *(Got(A, at, at) for at in range(2)))
    cursor = StoredCursor({0: 1, 1: 0}, since={0: 0, 1: 0})
    assert world.stored.subscribe("s", world.stored.stream("so1"), cursor=cursor)
    file = tmp_path / "file"
    back_up(file, world.settings)

    killed(RESTORE, at, empty, file)
    assert empty.owner.rows("SELECT to_regclass('tenants')") == [(None,)]
    restore(file, empty.settings)

    assert empty.table("streams") == world.table("streams")
    ((begin,),) = empty.owner.rows("SELECT next_offset FROM progress WHERE log_partition = 0")
    records = empty.records(0)
    assert records[begin:] == [world.update("so1", 2), world.update("so1", 3)]
    assert records[begin - 1] == NOTHING
    at_emitted = empty.cursor("s").offsets[0]
    assert [each.timestamp for each in empty.emitted(0)][at_emitted:] == [1]
    assert empty.cursor("s").since[0] == begin - 2


LATER = """
ALTER TABLE streams NO FORCE ROW LEVEL SECURITY;
ALTER TABLE streams ADD COLUMN later text NOT NULL DEFAULT '';
UPDATE streams SET later = upper(name);
ALTER TABLE streams FORCE ROW LEVEL SECURITY;
"""


@pytest.fixture
def later_release(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Callable[[], None]:
    """Let this be a release with one migration more."""
    file = tmp_path_factory.mktemp("later") / "9999_later.sql"
    file.write_text(LATER)
    before = migrations._files()

    def upgrade() -> None:
        monkeypatch.setattr(migrations, "_files", lambda: [*before, file])

    return upgrade


def test_an_older_back_up_becomes_what_this_release_has(
    world: World, empty: World, tmp_path: Path, later_release: Callable[[], None]
) -> None:
    """Its schema is made first, then filled, then brought up to date."""
    world.create("so1")
    back_up(tmp_path / "file", world.settings)
    later_release()

    restore(tmp_path / "file", empty.settings)

    sql = "SELECT name, later FROM streams ORDER BY name"
    assert empty.owner.rows(sql) == [("a", "A"), ("b", "B")]
    assert "9999_later.sql" in migrations.applied(empty.owner)


def test_an_older_back_up_is_not_restored_into_a_later_schema(
    world: World, empty: World, tmp_path: Path, later_release: Callable[[], None]
) -> None:
    back_up(tmp_path / "file", world.settings)
    later_release()
    migrate(empty.owner)

    with pytest.raises(ServioticyError, match=r"a later release already .9999_later.sql"):
        restore(tmp_path / "file", empty.settings)


def test_a_later_back_up_is_not_restored_by_an_older_release(
    world: World,
    empty: World,
    tmp_path: Path,
    later_release: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later_release()
    migrate(world.owner)
    back_up(tmp_path / "file", world.settings)
    monkeypatch.undo()

    with pytest.raises(ServioticyError, match=r"by a later release .*9999_later.sql"):
        restore(tmp_path / "file", empty.settings)

    assert empty.owner.rows("SELECT to_regclass('tenants')") == [(None,)]


def test_while_the_moment_is_fixed_no_document_changes_and_then_they_may(world: World) -> None:
    """So what the log has, when it is looked at, is all that the moment knows of, and no more."""
    other = Database(world.settings.store.dsn, role=Role.API)
    changes = PostgresChangeStore(other, 0.05)
    database = Database(world.settings.store.dsn, role=Role.BACKUP)

    def changing() -> bool:
        try:
            with changes.changing():
                return True
        except Unavailable:
            return False

    with PostgresSnapshot(database).taken(changing) as during:
        after = changing()
        world.create("so1")
        seen = database.rows("SELECT count(*) FROM service_objects")
    database.close()
    other.close()

    assert (during, after, seen) == (False, True, [(0,)])


def test_a_platform_that_runs_is_not_filled(world: World, empty: World, tmp_path: Path) -> None:
    back_up(tmp_path / "file", world.settings)
    migrate(empty.owner)
    pipeline = Database(empty.settings.store.dsn, role=Role.PIPELINE)
    PostgresPartitionStore(pipeline, argument_names).begin(0)

    with pytest.raises(NotEmpty, match="stop its programs"):
        restore(tmp_path / "file", empty.settings)
    pipeline.close()


@pytest.fixture
def plain(real_postgres: EmbeddedPostgres, empty: World) -> Iterator[World]:
    """The empty one, of an owner who is nothing else, as on a server of others."""
    name = empty.settings.store.dsn.rpartition("/")[2]
    empty.owner.rows(
        "CREATE ROLE restorer LOGIN PASSWORD 'plain' CREATEROLE;"
        f"GRANT {', '.join(each.value for each in Role)} TO restorer;"
        f"ALTER DATABASE {name} OWNER TO restorer; ALTER SCHEMA public OWNER TO restorer"
    )
    whom = real_postgres.dsn.split("//")[1].split("@")[0]
    dsn = empty.settings.store.dsn.replace(whom, "restorer:plain")
    found = World(dsn, empty.settings.log.bootstrap_servers, empty.topics.prefix, made=False)
    yield found
    found.close()
    empty.owner.rows(
        "REASSIGN OWNED BY restorer TO CURRENT_USER; DROP OWNED BY restorer; DROP ROLE restorer"
    )


def test_an_owner_who_passes_no_policy_restores_and_backs_up(
    world: World, plain: World, empty: World, tmp_path: Path
) -> None:
    """And row level security is forced again on all that was filled."""
    stream = world.create("so1")
    world.accept(0, *(world.update("so1", at) for at in range(3)))
    world.store_up_to(0, 2, 0, [world.row(stream, at, at) for at in range(2)])
    assert world.stored.subscribe("s", world.stored.stream("so1"), cursor=StoredCursor({0: 0}))
    back_up(tmp_path / "file", world.settings)

    restore(tmp_path / "file", plain.settings)
    about = back_up(tmp_path / "again", plain.settings)

    counts = {each.name: each.count for each in about.parts}
    assert counts["tables/stored_updates"] == 2
    assert counts["tables/tokens"] == 2
    assert counts["tables/put_off"] == 2  # not acknowledged
    assert counts["log/updates-0"] == 1
    assert plain.cursor("s").offsets == {0: 0}
    sql = "SELECT relname FROM pg_class WHERE relrowsecurity AND NOT relforcerowsecurity"
    assert empty.owner.rows(sql) == []
    disabled = "SELECT tgname FROM pg_trigger WHERE tgenabled <> 'O'"
    assert empty.owner.rows(disabled) == []
