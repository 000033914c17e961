"""Which streams subscriptions to Service Objects and groups are about, as Postgres knows it."""

from __future__ import annotations

from typing import Any

import pytest
from port_builders import Stored

from servioticy.domain.model import Grant, StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import NewGrant
from servioticy.ports.cursors import Change, DurableSubscription, Source, StoredCursor
from servioticy.ports.effects import Delete
from servioticy.storage.cursors import PostgresCursors
from servioticy.storage.partition_store import PostgresPartitionStore

pytestmark = pytest.mark.real

BEGUN = StoredCursor({0: 5}, newest=7, before={0: 3})


@pytest.fixture
def cursors(stored: Stored) -> PostgresCursors:
    return PostgresCursors(stored.database)


def subscribe(stored: Stored, id_: str, source: Source, **more: Any) -> bool:
    return stored.subscribe(id_, source, callback="pull", cursor=BEGUN, **more)


def one(cursors: PostgresCursors, id_: str = "1") -> DurableSubscription:
    (found,) = cursors.subscriptions([id_])
    return found


def names(cursors: PostgresCursors, id_: str = "1") -> set[str]:
    return {f"{each.service_object}/{each.stream}" for each in one(cursors, id_).streams}


def reader_of(stored: Stored, *members: str) -> None:
    stored.create("reader", groups=tuple(("g", StreamRef(each, "a")) for each in members))


def test_one_to_a_service_object_is_about_its_streams(
    stored: Stored, cursors: PostgresCursors
) -> None:
    stored.create("so1")
    assert subscribe(stored, "1", Source("so1"))
    found = one(cursors)

    assert found.streams == {StreamRef("so1", each): stored.stream("so1", each) for each in "ab"}
    assert (found.source, found.cursor) == (Source("so1"), BEGUN)
    assert found.newest == max(each.stream_id for each in found.streams.values())
    stored.create("so2")
    assert (one(cursors).newest or 0) > found.newest


def test_streams_that_the_document_has_no_more_are_none_of_it(
    stored: Stored, cursors: PostgresCursors
) -> None:
    stored.create("so1")
    subscribe(stored, "1", Source("so1"))
    stored.database.rows("UPDATE streams SET declared = false WHERE name = 'b'")

    assert names(cursors) == {"so1/a"}


def test_one_to_a_group_is_about_what_the_group_reads(
    stored: Stored, cursors: PostgresCursors
) -> None:
    stored.create("so1")
    stored.create("so2")
    reader_of(stored, "so1", "so2")
    assert subscribe(stored, "1", Source("reader", group="g"))
    assert subscribe(stored, "2", Source("reader", group="other"))

    assert names(cursors) == {"so1/a", "so2/a"}
    assert names(cursors, "2") == set()
    assert one(cursors).source == Source("reader", None, "g")


def test_members_that_may_not_be_read_are_left_out_and_come_back(
    stored: Stored, cursors: PostgresCursors
) -> None:
    """Each change is seen by its number, of the groups that read the member and of no other."""
    tenant, stored.tenant = stored.tenant, stored.other
    stored.create("theirs", public=True)
    stored.tenant = tenant
    stored.create("ours")
    reader_of(stored, "ours", "theirs")
    subscribe(stored, "1", Source("reader", group="g"))
    subscribe(stored, "2", Source("ours"))
    numbers = [cursors.changes()["1"]]
    assert names(cursors) == {"ours/a", "theirs/a"}
    for public, found in ((False, {"ours/a"}), (True, {"ours/a", "theirs/a"})):
        stored.database.rows(
            "UPDATE service_objects SET public = %(public)s WHERE id = 'theirs'",
            {"public": public},
        )
        assert names(cursors) == found
        numbers.append(cursors.changes()["1"])

    assert [each.streams for each in numbers] == [0, 1, 2]
    assert len({each.own for each in numbers}) == 1
    assert cursors.changes()["2"].streams == 0


def test_a_grant_that_has_expired_is_seen_by_the_number(
    stored: Stored, cursors: PostgresCursors
) -> None:
    """Nobody need have revoked it; and what is asked for tells when it will be so."""
    tenant, stored.tenant = stored.tenant, stored.other
    key = stored.create("theirs")
    stored.tenant = tenant
    stored.create("ours")
    reader_of(stored, "ours", "theirs")
    for id_, source in (("1", Source("reader", group="g")), ("2", Source("ours"))):
        subscribe(stored, id_, source)
    grant = NewGrant(key, Grant("g1", tenant, "a", False), 0, 9 * 10**15)
    stored.change_store.grant(grant, 10)
    before, about = cursors.changes(), cursors.about(tenant, Source("reader", group="g"), 10)
    assert names(cursors) == {"ours/a", "theirs/a"}
    stored.database.rows("UPDATE grants SET expires_at = 1")
    after = cursors.changes()

    assert (about.holds_for or 0) > 10**9
    assert names(cursors) == {"ours/a"}
    assert after["1"].streams != before["1"].streams
    assert after["2"] == before["2"]
    later = cursors.about(tenant, Source("reader", group="g"), 10)
    assert (len(later.streams), later.holds_for) == (1, None)


def test_a_member_that_is_deleted_is_none_any_more(
    stored: Stored, cursors: PostgresCursors
) -> None:
    key = stored.create("so1")
    reader_of(stored, "so1")
    subscribe(stored, "1", Source("reader", group="g"))
    stored.change_store.delete(key, None, 2000)

    assert names(cursors) == set()
    assert cursors.changes()["1"].streams == 1


def test_another_version_is_seen_by_its_number(stored: Stored, cursors: PostgresCursors) -> None:
    stored.create("so1")
    stored.create("so2")
    for id_, source in (("1", Source("so1")), ("2", Source("so1", group="g"))):
        subscribe(stored, id_, source)
    subscribe(stored, "3", Source("so2"))
    before = cursors.changes()
    stored.database.rows("UPDATE service_objects SET version = 2 WHERE id = 'so1'")
    after = cursors.changes()

    assert [after[id_].streams - before[id_].streams for id_ in "123"] == [1, 1, 0]


def test_what_is_private_is_not_given_to_others(stored: Stored, cursors: PostgresCursors) -> None:
    stored.create("so1")
    subscribe(stored, "1", Source("so1"), tenant=stored.other)
    subscribe(stored, "2", Source("so1"))

    assert names(cursors) == set()
    assert cursors.changes().keys() == {"2"}


def test_it_ends_with_its_service_object_and_goes_with_it(
    stored: Stored, cursors: PostgresCursors
) -> None:
    key = stored.create("so1")
    subscribe(stored, "1", Source("so1"))
    subscribe(stored, "2", Source("so1", group="g"))
    stored.change_store.delete(key, None, 2000)
    assert cursors.changes() == {}
    assert stored.subscriptions.row("subscription", id="1") is None
    store = PostgresPartitionStore(stored.database, lambda _text: ())
    store.begin(0)
    store.store(Batch(0, 0, 1, 0, [], effect=Delete("so1")))
    while store.purge(0, 1, 10**6) is not None:
        pass

    assert stored.database.rows("SELECT id FROM subscriptions") == []


def test_the_same_pubsub_subscription_to_many_is_refused(stored: Stored) -> None:
    stored.create("so1")
    assert stored.subscribe("1", Source("so1"))
    assert not stored.subscribe("2", Source("so1"))
    assert stored.subscribe("3", Source("so1", group="g"))
    assert not stored.subscribe("4", Source("so1", group="g"))
    assert stored.subscribe("5", Source("so1", group="h"))


def test_groups_count_together_and_a_service_object_for_itself(stored: Stored) -> None:
    stored.create("so1")
    stored.create("so2")
    full, made, sources = (
        {},
        {},
        (Source("so1", group="g"), Source("so2", group="h"), Source("so1")),
    )
    for number, source in enumerate((*sources, *sources)):
        values = {
            "id": str(number),
            "tenant": stored.tenant,
            "stream": None,
            "service_object": source.service_object,
            "group": source.group,
            "callback": "pull",
            "destination": "",
            "document": "{}",
            "now": 1,
            "most": 2,
            "cursor": None,
            "expires_at": None,
        }
        ((full[number], made[number]),) = stored.subscriptions.rows("subscribe", **values)

    assert list(full.values()) == [False, False, False, True, True, False]
    assert [each for each in made if made[each]] == [0, 1, 2, 5]


def test_a_change_of_its_own_is_told_from_one_of_its_streams(
    stored: Stored, cursors: PostgresCursors
) -> None:
    stored.create("so1")
    subscribe(stored, "1", Source("so1"))
    before = cursors.changes()["1"]
    stored.subscriptions.rows("resume", id="1", tenant=stored.tenant)
    after = cursors.changes()["1"]

    assert (after.own > before.own, after.streams) == (True, before.streams)
    assert isinstance(after, Change)
