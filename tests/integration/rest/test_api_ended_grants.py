"""Grants that have ended: both sides are told, together, and so many of them are kept."""

from __future__ import annotations

import pytest
from api_builders import Caller, Served
from departing import compute, turns
from granting import alice, bob, give, known, so
from uses_of_grants import World, told, world

from servioticy.storage.database import Database

__all__ = ["alice", "bob", "so", "world"]

MOST_ENDED = 1_000


def given(world: World, giver: int, ids: range, receivers: tuple[int, ...] = ()) -> None:
    world.rows(
        "INSERT INTO grants (id, tenant_id, service_object, grantee, derived_only, created_at)"
        f" SELECT 'g' || n, {giver}, '{world.so}',"
        f"       ('{{{','.join(map(str, receivers))}}}'::bigint[])[n % {len(receivers) or 1} + 1],"
        f"       false, 1 FROM generate_series({ids.start}, {ids.stop - 1}) AS n"
    )


def end(world: World, giver: int, ids: range) -> None:
    """So many grants are given, and end together."""
    given(world, giver, ids)
    world.rows("DELETE FROM grants")


def kept(world: World) -> int:
    ((count,),) = world.rows("SELECT count(*) FROM ended_grants")
    return int(count)


def test_of_a_tenant_so_many_grants_that_ended_are_kept(
    world: World, alice: Caller, bob: Caller
) -> None:
    first = give(alice, world.so)
    world.rows("DELETE FROM grants")
    end(world, world.tenant(alice), range(1, MOST_ENDED))
    assert bob.ask("GET", f"/grants/{first}").status_code == 200
    end(world, world.tenant(bob), range(MOST_ENDED, 2 * MOST_ENDED))
    assert bob.ask("GET", f"/grants/{first}").status_code == 200
    end(world, world.tenant(alice), range(-3, 0))

    assert kept(world) == 2 * MOST_ENDED
    assert bob.ask("GET", f"/grants/{first}").status_code == 404


def test_the_end_of_grants_waits_for_nobody_who_notes_a_use_of_old_ones(
    world: World, alice: Caller, session_dsn: str
) -> None:
    """Who does waits for the audit logs of both sides, which whoever ends grants has locked."""
    giver = world.tenant(alice)
    end(world, giver, range(MOST_ENDED))
    world.rows("UPDATE ended_grants SET ended_at = 1 WHERE id = 'g7'")
    given(world, giver, range(-3, -2))
    other = Database(session_dsn, statement_seconds=20)

    with world.served.platform.database.transaction():
        world.rows("SELECT FROM ended_grants WHERE id = 'g7' FOR UPDATE")
        other.rows("DELETE FROM grants")
    other.close()
    assert kept(world) == MOST_ENDED + 1
    end(world, giver, range(-2, -1))
    assert kept(world) == MOST_ENDED
    assert world.rows("SELECT 1 FROM ended_grants WHERE id = 'g7'") == []


@pytest.mark.parametrize("whose", ["its Service Object", "its tenant", "who it was for"])
def test_a_grant_that_goes_with_something_is_told_of_as_ended(
    world: World, served: Served, alice: Caller, bob: Caller, whose: str
) -> None:
    """Else its holder's log shows one that never ended, and composites that stopped."""
    grant, revoked = give(alice, world.so), give(alice, world.so)
    alice.ask("DELETE", f"/grants/{revoked}")
    if whose == "its Service Object":
        alice.ask("DELETE", f"/{world.so}")
    else:
        served.platform.ports.tenants.delete_tenant(
            "bob" if whose == "who it was for" else "alice"
        )
        turns(served)
    compute(served)
    turns(served)

    ended = [("made", grant), ("made", revoked), ("revoked", revoked), ("ended", grant)]
    if whose != "its tenant":
        assert told(alice) == ended
    if whose != "who it was for":
        assert told(bob) == ended
    left = "SELECT count(DISTINCT tenant_id) FROM audit WHERE action = 'ended'"
    assert world.rows(left) == [(2 if whose == "its Service Object" else 1,)]


def test_grants_that_end_together_are_told_of_together(
    world: World, served: Served, alice: Caller, bob: Caller
) -> None:
    """By one trigger each: a Service Object may have a thousand, and a partition waits for it.

    Tenants come by their numbers: of two that tell the same ones, one waits for the other.
    """
    giver = known(served, "carol", "c" * 32)
    first, second, last = (world.tenant(who) for who in (alice, bob, giver))
    assert first < second < last

    given(world, last, range(8), (second, first))

    ((plan,),) = world.rows("EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM grants")
    assert {each["Trigger Name"]: each["Calls"] for each in plan[0]["Triggers"]} == {
        "audit_ended_grants": 1,
        "keep_ended_grants": 1,
    }
    told_to = world.rows("SELECT tenant_id FROM audit WHERE action = 'ended' ORDER BY ctid")
    assert [tenant for (tenant,) in told_to] == [first] * 4 + [second] * 4 + [last] * 8
    assert kept(world) == 8
