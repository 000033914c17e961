"""The audit log: whatever defines, allows or revokes something is told of, by whom and when."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from contract_world import OPERATIONS, a_world, ask, request_examples

from api.app import SERVICES
from api.background.forgetting import old_entries

Entry = tuple[str, str, str]

NOT_TOLD = {
    ("PUT", "/{so}/streams/{s}"): "updates are the history itself",
    ("POST", "/{so}/streams/{s}/updates"): "updates are the history itself",
    ("POST", "/updates"): "updates are the history itself",
    ("POST", "/lastUpdates"): "reads",
    ("POST", "/{so}/streams/{s}/search"): "reads",
    ("DELETE", "/jobs/{job}"): "that it has begun is told; what is cancelled leaves nothing",
    ("POST", "/platform/rebalance"): "nothing is defined: what computes it is another process",
    ("POST", "/{so}/try"): "nothing changes: it is tried on what is stored",
    ("POST", "/{so}/versions"): "nothing is in force by it: that it is put in force is told",
    ("POST", "/{so}/actuations/{actuation}"): "an actuation says itself what became of it",
    ("PUT", "/{so}/actuations/{actuation}"): "an actuation says itself what became of it",
    ("POST", "/workflows/{workflow}/atoms"): "atoms are what is worked on, as updates are",
    ("POST", "/workflows/{workflow}/dead-letters/redrive"): "nothing is defined: tried once more",
    ("POST", "/subscriptions/{id}/test"): "nothing is defined: one request is sent",
    ("POST", "/subscriptions/{id}/resume"): "nothing is defined: what waits goes on",
    ("POST", "/subscriptions/{id}/dead-deliveries/redrive"): "nothing is defined: sent once more",
}
"""Routes that change something and leave no entry, each with the reason."""

CHANGING = [each for each in OPERATIONS if each[0] != "GET"]


def entries(caller: Caller, **query: Any) -> list[dict[str, Any]]:
    answer = caller.ask("GET", "/audit", query_string=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["data"]
    return found


def told(caller: Caller) -> list[Entry]:
    """What was done, the oldest first."""
    return [(e["action"], e["kind"], e["id"]) for e in reversed(entries(caller))]


@pytest.mark.parametrize("route", CHANGING, ids=[" ".join(each) for each in CHANGING])
def test_every_route_that_changes_something_is_told_of(
    route: tuple[str, str], served: Served
) -> None:
    """Whoever adds one that is not says here why."""
    world = a_world(served)
    document = {**request_examples("POST", "/")["thermometer"], "description": "another"}
    world.tenant.ask("PUT", f"/{world.names['so']}", json=document)  # a version to go back from
    before = entries(world.tenant, limit=1)[0]["number"]
    answer = ask(world.tenant, route, world.names)
    assert answer.status_code < 300, answer.text
    new = [each for each in entries(world.tenant) if each["number"] > before]

    assert bool(new) is (route not in NOT_TOLD)
    assert {each["by"] for each in new} <= {"tenant"}


def test_it_tells_what_was_done_to_a_service_object(alice: Caller) -> None:
    so = alice.create(SIMPLE)
    alice.ask("PUT", f"/{so}", json={**SIMPLE, "public": True})
    alice.ask("PUT", f"/{so}", json={"customFields": {"a": 1}})
    alice.ask("POST", f"/{so}/versions/1/activate")
    alice.ask("DELETE", f"/{so}/streams/a")
    alice.ask("DELETE", f"/{so}")

    kinds = [(action, id_) for action, kind, id_ in told(alice) if kind != "token"]
    assert kinds == [
        ("created", so),
        ("replaced", so),
        ("made public", so),
        ("customised", so),
        ("activated", so),
        ("made private", so),
        ("erased", f"{so}/a"),
        ("deleted", so),
    ]


def test_it_tells_which_token_it_was_and_no_secret(alice: Caller, bob: Caller) -> None:
    made = alice.ask("POST", "/tokens", json={"name": "one", "rights": ["create"]}).get_json()
    so = Caller(alice.client, made["token"]).create({**SIMPLE, "public": True})
    wanted = {"callback": "http", "destination": "http://example.org/?secret"}
    id_ = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]
    alice.ask("DELETE", f"/subscriptions/{id_}")
    answer = alice.ask("GET", "/audit")

    (created,) = [e for e in entries(alice) if (e["action"], e["id"]) == ("created", so)]
    assert (created["by"], created["token"]) == ("tenant", made["id"])
    ended = entries(bob)[0]
    assert (ended["action"], ended["id"], ended["by"]) == ("deleted", id_, "another tenant")
    assert "token" not in ended
    assert made["token"] not in answer.text
    assert "secret" not in answer.text
    assert entries(alice)[-1]["by"] == "platform"  # the operator made the first token


def test_tokens_that_end_together_are_told_one_by_one(served: Served, alice: Caller) -> None:
    """Numbered without a gap; by one change of the tenant's count, as there may be thousands."""
    so = alice.create()
    for name in ("one", "two"):
        assert alice.ask("POST", "/tokens", json={"name": name, "serviceObject": so}).is_json
    database = served.platform.database
    rows = database.rows("SELECT id FROM tokens WHERE service_object IS NOT NULL ORDER BY id")
    versions = "SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'audit_counts'"
    with database.transaction():
        database.rows("DELETE FROM tokens WHERE service_object IS NOT NULL")
        counted = database.rows(versions)

    newest = entries(alice)[: len(rows)]
    assert len(rows) == 3
    assert counted == [(1,)]
    assert [(e["action"], e["kind"], e["id"]) for e in reversed(newest)] == [
        ("revoked", "token", id_) for (id_,) in rows
    ]
    assert [e["number"] for e in newest] == [newest[0]["number"] - n for n in range(len(newest))]


def test_what_fails_is_not_told(alice: Caller) -> None:
    before = told(alice)
    alice.ask("POST", "/", data=b"{")
    alice.ask("DELETE", f"/{'0' * 45}")

    assert told(alice) == before


def test_pages_follow_each_other(alice: Caller) -> None:
    for _ in range(3):
        alice.create(SIMPLE)
    whole = entries(alice)
    found, path = [], "/audit?limit=3"
    while path:
        answer = alice.ask("GET", path)
        found += answer.get_json()["data"]
        link = answer.headers.get("Link", "")
        path = link.partition(">")[0].partition("/audit")[2] and (
            "/audit" + link.partition(">")[0].partition("/audit")[2]
        )

    assert found == whole
    assert [each["number"] for each in whole] == list(range(len(whole), 0, -1))


def test_entries_go_when_they_are_old(served: Served, alice: Caller) -> None:
    services = served.app.extensions[SERVICES]
    alice.create(SIMPLE)
    database = served.platform.database
    database.rows("UPDATE audit SET at = now() - interval '366 days' WHERE number = 1")

    assert [each["number"] for each in entries(alice)][-1] == 2
    assert old_entries(services).turn() is False
    assert database.rows("SELECT number FROM audit WHERE number = 1") == []


MOST, MOST_OF_A_STRANGER, STRANGERS = 20_000, 500, 40


def flood(served: Served, whose: Caller, kind: str, times: int, by: int | None = None) -> None:
    """Let somebody cause so many entries of a kind, as by so many requests."""
    database = served.platform.database
    tenant = served.platform.ports.tenants.tenant_of(whose.token)
    actor = f"{tenant if by is None else by} token"
    with database.transaction():
        database.rows("SELECT set_config('servioticy.actor', %(actor)s, true)", {"actor": actor})
        database.rows(
            "SELECT note_all_in_audit(%(tenant)s, 'made', %(kind)s,"
            " (SELECT array_agg(n::text ORDER BY n) FROM generate_series(1, %(times)s) AS n))",
            {"tenant": tenant, "kind": kind, "times": times},
        )


def subjects(served: Served, whose: Caller, kind: str) -> list[str]:
    """What entries of this kind are about, the oldest first."""
    tenant = served.platform.ports.tenants.tenant_of(whose.token)
    sql = "SELECT subject FROM audit WHERE tenant_id = %(tenant)s AND kind = %(kind)s"
    rows = served.platform.database.rows(
        f"{sql} ORDER BY number", {"tenant": tenant, "kind": kind}
    )
    return [subject for (subject,) in rows]


def test_whoever_fills_the_log_with_one_kind_hides_no_other(served: Served, alice: Caller) -> None:
    """A viewer may make and end subscriptions as often as the quotas let it."""
    so = alice.create(SIMPLE)
    flood(served, alice, "subscription", 100_001)

    assert ("created", so) in [
        (e["action"], e["id"]) for e in entries(alice, kind="service object")
    ]
    assert [e["kind"] for e in entries(alice, limit=1)] == ["subscription"]
    assert alice.ask("GET", "/audit?kind=thing").status_code == 400


def test_of_a_kind_the_newest_stay(served: Served, alice: Caller) -> None:
    flood(served, alice, "job", MOST)
    assert len(subjects(served, alice, "job")) == MOST
    flood(served, alice, "job", 1)

    left = subjects(served, alice, "job")
    assert len(left) == MOST
    assert (left[0], left[-1]) == ("2", "1")


def test_whoever_fills_anothers_log_hides_only_what_it_did_itself(
    served: Served, alice: Caller
) -> None:
    """A tenant that knows the id of another may give it grants, and end them, for ever."""
    flood(served, alice, "grant", 3)
    flood(served, alice, "grant", 2, by=10**6)
    flood(served, alice, "grant", MOST_OF_A_STRANGER, by=10**6 + 1)
    before = subjects(served, alice, "grant")
    flood(served, alice, "grant", 1, by=10**6 + 1)

    assert len(before) == 5 + MOST_OF_A_STRANGER
    assert subjects(served, alice, "grant") == [*before[:5], *before[6:], "1"]


def test_of_strangers_those_stay_that_came_last(served: Served, alice: Caller) -> None:
    flood(served, alice, "grant", 1)
    for number in range(STRANGERS):
        flood(served, alice, "grant", 2, by=10**6 + number)
    assert len(subjects(served, alice, "grant")) == 1 + 2 * STRANGERS
    flood(served, alice, "grant", 1, by=10**6)
    flood(served, alice, "grant", 2, by=10**7)

    database = served.platform.database
    left = database.rows("SELECT DISTINCT causer - 1000000 FROM audit WHERE kind = 'grant'")
    assert len(left) == 1 + STRANGERS
    assert (0,) in left, "it has done something since"
    assert (1,) not in left
