"""0130: components that reach from tenant to tenant are split where the log is stored up to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from old_store import Old

from sandbox import argument_names
from servioticy.domain.model import InputFromOutside, LastUpdate, StreamRef
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import OutsideReader
from servioticy.ports.change_store import Change, Reading
from servioticy.ports.effects import Activate, Delete
from servioticy.ports.partition_store import ComponentMember
from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.storage import migrations
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role

ALICE, BOB, CAROL = 1, 2, 3


@pytest.fixture
def upgrade(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], PostgresPartitionStore]]:
    """A store of the release before; calling it upgrades the store, and claims partition 0."""
    owner = Database(empty_dsn)
    whole = sorted(migrations._files(), key=lambda each: each.name)
    monkeypatch.setattr(migrations, "_files", lambda: [f for f in whole if f.name < "0130"])
    migrations.migrate(owner)
    owner.rows("INSERT INTO tenants (name) VALUES ('alice'), ('bob'), ('carol')")
    pipeline = Database(empty_dsn, role=Role.PIPELINE)

    def upgraded() -> PostgresPartitionStore:
        monkeypatch.setattr(migrations, "_files", lambda: whole)
        migrations.migrate(owner)
        assert migrations.migrate(owner) == []
        store = PostgresPartitionStore(pipeline, argument_names)
        store.begin(0)
        return store

    yield upgraded
    owner.close()
    pipeline.close()


@pytest.fixture
def old(upgrade: object, empty_dsn: str) -> Iterator[Old]:
    owner = Database(empty_dsn)
    yield Old(owner)
    owner.close()


Upgrade = Callable[[], PostgresPartitionStore]


def components(store: PostgresPartitionStore, *ids: str) -> list[list[str]]:
    found = store.components(ids)
    for members in found:
        assert len({each.tenant for each in members}) == 1
    return sorted([each.id for each in members] for members in found)


def pending(dsn: str) -> list[Change]:
    api = Database(dsn, role=Role.API)
    found = [change for _, change in PostgresChangeStore(api).pending()]
    api.close()
    return found


def test_components_are_found_anew_within_each_tenant(old: Old, upgrade: Upgrade) -> None:
    """By who reads whom; a name is that of the member that comes first. Nobody moves."""
    old.create(BOB, "reader1", "hub", [], partition=1)
    old.create(ALICE, "hub", "hub", public=True, partition=1)
    old.create(BOB, "reader2", "hub", [("hub", "a"), ("reader1", "a")], partition=1)
    old.create(BOB, "apart", "hub", [("hub", "a")], partition=1)
    old.create(CAROL, "carols", "hub", [("reader2", "a")], partition=1)
    old.create(ALICE, "derived", "hub", [("carols", "a")], partition=1)
    for number in range(40):  # a long chain, told from its far end
        before = [(f"c{number - 1:02}", "a")] if number else [("hub", "a")]
        old.create(CAROL, f"c{number:02}", "hub", before, partition=1)
    old.create(ALICE, "single1", "single", partition=1)
    old.create(ALICE, "single2", "single", partition=1)

    store = upgrade()

    everybody = ["hub", "reader1", "reader2", "apart", "carols", "derived", "c20", "single1"]
    assert components(store, *everybody) == [
        ["apart"],
        [f"c{number:02}" for number in range(40)],
        ["carols"],
        ["derived"],
        ["hub"],
        ["reader1", "reader2"],
        ["single1", "single2"],
    ]
    names = "SELECT DISTINCT component, owner_partition, route_partition FROM service_objects"
    assert sorted(old.rows(names)) == [
        (name, 1, 1) for name in ("apart", "c00", "carols", "derived", "hub", "reader1", "single")
    ]


def test_what_is_read_of_others_is_read_on(old: Old, upgrade: Upgrade, empty_dsn: str) -> None:
    """Where it may be, with the last update as it is stored."""
    old.create(ALICE, "x", "x", public=True)
    old.create(ALICE, "given", "x")
    old.create(ALICE, "ended", "x")
    old.create(ALICE, "silent", "x", public=True)
    sources = [(each, "a") for each in ("x", "given", "ended", "silent")]
    old.create(BOB, "r", "x", [*sources, ("x", "a")], change=7)
    old.create(CAROL, "other", "x", [("given", "a")])
    old.grant("g1", "given", BOB, active=True)
    old.grant("g2", "ended", BOB, active=False)
    for id_ in ("x", "given", "ended"):
        old.update(id_, 5, 2)
        old.update(id_, 9, 3)
        old.update(id_, 7, 4)

    store = upgrade()

    x, given, ended, silent = (StreamRef(each, "a") for each, _ in sources)
    (found,) = store.service_objects(["r"])
    assert found.inputs == {
        x: InputFromOutside(ALICE, True),
        given: InputFromOutside(ALICE, True),
        ended: InputFromOutside(ALICE, False),
        silent: InputFromOutside(ALICE, True),
    }
    last = LastUpdate(9, b'{"v":9}')
    assert store.last_inputs([("r", each) for each in found.inputs]) == {
        ("r", x): last,
        ("r", given): last,
    }
    assert {
        ref: [e.reader for e in each.readers]
        for ref, each in store.channels(0, found.inputs).items()
    } == {
        x: ["r"],
        given: ["r"],
        silent: ["r"],
    }
    assert store.outside_readers("given") == [
        OutsideReader("r", BOB, given, 0, 7, True),
        OutsideReader("other", CAROL, given, 0, 1, False),
    ]
    (provider,) = store.service_objects(["x"])
    assert provider.read_in == {"a": (0,)}
    assert pending(empty_dsn) == []


def test_the_pipeline_goes_on_where_it_was(old: Old, upgrade: Upgrade) -> None:
    """What was put off, displaced, or taken up, is there under its key."""
    old.create(ALICE, "x", "x", public=True)
    old.create(BOB, "r", "x", [("x", "a")])
    old.update("x", 5, 2)
    old.rows("INSERT INTO progress VALUES (0, 9, 2)")
    old.rows(
        "INSERT INTO put_off (log_partition, log_offset, tenant_id, service_object, record,"
        " taken_up) VALUES (0, 2, 1, 'x', '', true), (0, 4, 2, 'r', 'abc', false)"
    )

    store = upgrade()

    assert store.begin(0) == (9, 0, 2)
    assert store.taken_up(0) == [TreeKey(2)]
    assert store.put_off(0, BOB, 9, 99) == [PutOff(4, BOB, "r", b"abc")]
    again = store.not_acknowledged(0, 9, 9)
    assert [each.timestamp for each in again] == [5]
    update = StoredUpdate(BOB, 2, 6, b"{}", 1, 4, 0)
    store.store(Batch(0, 9, 9, 9, [update], taken_up=[TreeKey(4)], emitted_late=[TreeKey(2)]))
    store.store(Batch(0, 9, 10, 9, effect=Delete("r")))
    assert store.channels(0, [StreamRef("x", "a")]) == {}


def test_a_definition_that_is_still_to_come_is_told_again_with_what_it_reads(
    old: Old, upgrade: Upgrade, empty_dsn: str
) -> None:
    """Until the pipeline comes to it, what it read before is read, and computed together."""
    old.create(ALICE, "x", "x", public=True)
    old.create(ALICE, "y", "x", public=True)
    old.create(BOB, "own", "x")
    old.create(BOB, "r", "x", [("x", "a"), ("own", "a")])
    old.replace("r", [("y", "a")])
    old.create(CAROL, "new", "x", [("y", "a")], active=None)

    store = upgrade()

    assert components(store, "own", "new", "x") == [["new"], ["own", "r"], ["x"]]
    (found,) = store.service_objects(["r"])
    assert set(found.inputs) == {StreamRef("x", "a")}
    assert sorted(pending(empty_dsn), key=lambda each: each.service_object) == [
        Change(
            "new",
            1,
            0,
            readings=(Reading("new", CAROL, 0, ALICE, 0, (("y", "a"),)),),
        ),
        Change("r", 2, 0, readings=(Reading("r", BOB, 0, ALICE, 0, (("y", "a"),)),)),
    ]
    named = "SELECT version, named_by > 1 FROM definitions WHERE service_object = 'r' ORDER BY 1"
    assert old.rows(named) == [(1, False), (2, True)]
    store.store(Batch(0, 0, 1, 0, effect=Activate("r", 2, 9, (StreamRef("y", "a"),))))
    (found,) = store.service_objects(["r"])
    assert set(found.inputs) == {StreamRef("y", "a")}


def test_a_move_that_is_still_to_come_is_told_to_whom_it_concerns(
    old: Old, upgrade: Upgrade, empty_dsn: str
) -> None:
    """In the log, or pending yet; where a provider will be then is where it is told."""
    old.create(ALICE, "x", "x", public=True, partition=1)
    old.create(BOB, "r", "x", [("x", "a")], partition=1)
    old.create(BOB, "routed", "x", [("x", "a")], partition=1)
    old.rows("UPDATE service_objects SET route_partition = 0 WHERE id = 'routed'")
    old.pending('{"service_object":"s","version":1,"partition":0,"moves":[[1,["r","x"]]]}')

    upgrade()

    first, *told = pending(empty_dsn)
    assert first == Change("s", 1, 0, ((1, ("r", "x")),))
    readings = [Reading(each, BOB, 0, ALICE, 0, (("x", "a"),)) for each in ("r", "routed")]
    assert told == [Change(each.reader, 1, 0, readings=(each,)) for each in readings]


def test_a_document_that_ceases_to_be_public_is_so_where_the_log_says_it(
    old: Old, upgrade: Upgrade
) -> None:
    """And so one that becomes public."""
    old.create(ALICE, "x", "x", public=True)
    old.create(ALICE, "y", "x")
    old.create(BOB, "r", "x", [("x", "a"), ("y", "a")])
    old.replace("x")
    old.replace("y", public=True)

    store = upgrade()

    (found,) = store.service_objects(["r"])
    assert {ref.service_object: each.is_open for ref, each in found.inputs.items()} == {
        "x": True,
        "y": False,
    }


def test_who_is_deleted_goes_with_what_it_reads(old: Old, upgrade: Upgrade) -> None:
    """The record is in the log, and tells no provider."""
    old.create(ALICE, "x", "x", public=True)
    old.create(BOB, "r", "x", [("x", "a")])
    old.create(BOB, "gone", "deleted gone", [("x", "a")], active=None)
    old.rows("UPDATE service_objects SET deleted_at = 5 WHERE id IN ('r', 'gone')")
    old.rows("UPDATE service_objects SET active_change = 9223372036854775807 WHERE id = 'gone'")
    store = upgrade()
    (found,) = store.component("r")
    assert found._replace(size=0) == ComponentMember("r", BOB, 0, 1)

    store.store(Batch(0, 0, 1, 0, effect=Delete("r")))
    while store.purge(0, 100, 10**6) is not None:
        pass

    assert store.outside_readers("x") == []
    assert old.rows("SELECT count(*) FROM inputs_from_outside") == [(0,)]


def test_a_document_that_postgres_cannot_read_stops_nobody(
    old: Old, upgrade: Upgrade, empty_dsn: str
) -> None:
    old.create(ALICE, "x", "x", public=True)
    old.create(BOB, "r", "x", [("x", "a")])
    old.replace("r", [("x", "a")])
    old.rows(
        "UPDATE definitions SET document = %(text)s WHERE service_object = 'r' AND version = 1",
        text='{"streams":{},"groups":{"\\u0000":{"soIds":["x"],"stream":"a"}}}',
    )

    upgrade()

    assert [each.service_object for each in pending(empty_dsn)] == ["r"]
