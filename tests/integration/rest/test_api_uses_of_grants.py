"""What a grant was used for: both sides find it, and nobody more than is theirs to know."""

from __future__ import annotations

from typing import Any

from api_builders import Caller, Served
from granting import ALICE, BOB, alice, bob, give, id_of, known, reader, so
from uses_of_grants import World, told, world

from api.app import create_app
from api.background.worker import worker
from sandbox.text import argument_names
from servioticy.settings import Settings, changed

__all__ = ["alice", "bob", "so", "world"]

SPAN = "from=0&to=9007199254740991"


def usage(who: Caller, query: str) -> list[dict[str, Any]]:
    answer = who.ask("GET", f"/usage?{SPAN}&{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["data"]
    return found


def test_both_sides_are_told_what_a_grant_was_used_for(
    world: World, alice: Caller, bob: Caller
) -> None:
    """Its consumer with the names of what it made, its provider by numbers."""
    grant, other = give(alice, world.so), give(alice, world.so, "b")
    world.active()
    first, second = bob.create(reader(world.so)), bob.create(reader(world.so))
    for composite in (first, second):
        world.derived(bob, composite)
    world.derived(bob, first, "b", times=1)
    world.delivered(bob, 3)

    used = {each["grant"]: each for each in usage(bob, "by=grant")}
    assert used.keys() == {grant, other}
    assert used[grant]["computations"] == {"emitted": 4, "stale": 2}
    assert used[grant] == {
        **used[grant],
        "processorSeconds": 1.0,
        "storedUpdates": 4,
        "storedBytes": 40,
        "deliveries": 3,
    }
    streams = usage(bob, f"by=stream&grant={grant}")
    assert {(each["serviceObject"], each["stream"]) for each in streams} == {
        (first, "c"),
        (second, "c"),
        (world.so, "a"),
    }
    provided = usage(alice, "side=provided&by=grant")
    assert sorted(provided, key=lambda each: -each["deliveries"]) == [
        {
            "grant": grant,
            "wokenComputations": 6,
            "derivedUpdates": 4,
            "deliveries": 3,
            "composites": 2,
            "tenants": 1,
        },
        {
            "grant": other,
            "wokenComputations": 2,
            "derivedUpdates": 1,
            "deliveries": 0,
            "composites": 1,
            "tenants": 1,
        },
    ]
    assert len(usage(alice, f"side=provided&by=hour&grant={grant}")) == 1
    assert usage(alice, f"by=grant&grant={grant}") == []


def test_of_a_grant_to_everyone_strangers_are_counted_and_not_named(
    world: World, served: Served, alice: Caller, bob: Caller
) -> None:
    """A grant that names its tenant is the one that it uses, where both are there."""
    everyone = alice.ask("POST", f"/{world.so}/streams/a/grants", json={"everyone": True})
    grant = everyone.get_json()["id"]
    named = give(alice, world.so, None)
    carol, dora = (known(served, name, 32 * name[0]) for name in ("carol", "dora"))
    world.active()
    for who in (bob, carol, dora):
        world.derived(who, who.create(reader(world.so)))
    answer = alice.ask("GET", f"/usage?{SPAN}&side=provided&by=grant")

    found = {each["grant"]: each["tenants"] for each in answer.get_json()["data"]}
    assert found == {grant: 2, named: 1}
    assert "carol" not in answer.text
    assert [action for action, _ in told(carol)] == []
    assert {id_ for action, id_ in told(alice) if action == "used"} == {grant, named}


def test_what_is_public_is_used_by_no_grant(world: World, alice: Caller, bob: Caller) -> None:
    world.derived(bob, bob.create())
    world.delivered(bob, 1)

    assert [each["grant"] for each in usage(bob, "by=grant")] == [None]


def test_a_grant_to_derive_gives_no_updates(world: World, alice: Caller, bob: Caller) -> None:
    """So what was delivered was read by another."""
    derive, read = give(alice, world.so, use="derive"), give(alice, world.so, None)
    world.active()
    world.derived(bob, "composite")
    world.delivered(bob, 1)

    found = {each["grant"]: each for each in usage(bob, "by=grant")}
    assert found.keys() == {derive, read}
    assert found[derive]["deliveries"] == 0


def test_when_it_was_used_stands_with_the_grant_and_once_a_day_in_both_audit_logs(
    world: World, served: Served, alice: Caller, bob: Caller
) -> None:
    grant = give(alice, world.so)
    assert "lastUsedAt" not in bob.ask("GET", f"/grants/{grant}").get_json()
    world.active()
    world.derived(bob, "composite")
    world.derived(bob, "composite")
    seen = [who.ask("GET", f"/grants/{grant}").get_json() for who in (alice, bob)]
    listed = [who.ask("GET", "/grants").get_json()["grants"][0] for who in (alice, bob)]

    assert seen == listed
    assert [each["side"] for each in seen] == ["given", "received"]
    assert all(each["firstUsedAt"] == each["lastUsedAt"] for each in seen)
    for who in (alice, bob):
        assert told(who) == [("made", grant), ("used", grant)]
    carol = known(served, "carol", "c" * 32)
    assert carol.ask("GET", f"/grants/{grant}").status_code == 404
    world.rows("UPDATE grants SET last_used = last_used - 86400000")
    world.delivered(bob, 1)
    for who in (alice, bob):
        assert told(who) == [("made", grant), ("used", grant), ("used", grant)]


def test_what_was_used_until_it_ended_is_told_after_it(
    world: World, served: Served, alice: Caller, bob: Caller
) -> None:
    """The accounts are some seconds late; and both may ask for it as long as for the usage."""
    grant = give(alice, world.so)
    world.active()
    alice.ask("DELETE", f"/grants/{grant}")
    assert "endedAt" in bob.ask("GET", f"/grants/{grant}").get_json()
    world.rows("DELETE FROM grants")  # where the log says so
    world.derived(bob, "composite")

    assert [each["grant"] for each in usage(bob, "by=grant")] == [grant]
    for who in (alice, bob):
        found = who.ask("GET", f"/grants/{grant}").get_json()
        assert found["endedAt"] >= found["createdAt"]
        assert found["lastUsedAt"]
        assert (found["from"], found["tenant"]) == ("alice", BOB)
        assert told(who) == [("made", grant), ("revoked", grant), ("used", grant)]
    world.rows("UPDATE ended_grants SET ended_at = ended_at - 60001")
    world.derived(bob, "composite")
    assert {each["grant"] for each in usage(bob, "by=grant")} == {None, grant}

    settings = changed(Settings(), usage_days=1)
    app = create_app(served.platform.ports, settings, lambda: 4e9, argument_names)
    worker(app.extensions["servioticy"]).turn()
    assert bob.ask("GET", f"/grants/{grant}").status_code == 404
    assert id_of(alice) == ALICE


def test_in_its_receivers_log_whatever_becomes_of_a_grant_is_its_givers_doing(
    world: World, alice: Caller, bob: Caller
) -> None:
    """Else whoever gives grants that expire by themselves hides what the platform has told."""
    give(alice, world.so)
    world.active()
    world.derived(bob, "composite")
    world.rows("DELETE FROM grants")
    told_by_platform = "kind = 'grant' AND actor_tenant IS NULL"

    parts = world.rows(
        f"SELECT DISTINCT tenant_id, causer FROM audit WHERE {told_by_platform} ORDER BY 1"
    )
    assert parts == [(world.tenant(alice), 0), (world.tenant(bob), world.tenant(alice))]
    newest = bob.ask("GET", "/audit?kind=grant").get_json()["data"][0]
    assert (newest["action"], newest["by"]) == ("ended", "platform")


def test_others_grants_of_the_same_object_are_not_looked_at(
    world: World, alice: Caller, bob: Caller
) -> None:
    """A Service Object may have a thousand; and each use asks."""
    named = give(alice, world.so)
    world.rows(
        "INSERT INTO grants (id, tenant_id, service_object, grantee, derived_only, created_at)"
        " SELECT 'g' || n, tenant_id, service_object, tenant_id, false, 1"
        "   FROM grants, generate_series(1, 500) AS n"
    )
    world.active()
    world.rows("ANALYZE grants")
    read = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
        " WHERE relname = 'grants'"
    )
    used = f"SELECT grant_id FROM grant_used('{world.so}', 'a', {world.tenant(bob)}, true)"

    with world.served.platform.database.transaction():
        (((before,),), found, ((after,),)) = (world.rows(sql) for sql in (read, used, read))
    assert found == [(named,)]
    assert after - before == 1
