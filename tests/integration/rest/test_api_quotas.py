"""Quotas as a tenant meets them: which one, how much of it, and when there is some again."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from quota_builders import given, told

from command import cli, commands, running
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import quotas
from servioticy.errors import SettingsError
from servioticy.ports.accounts import Use
from servioticy.ports.usage import Given
from servioticy.settings import Settings
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.usage import PostgresUsage

__all__ = ["given"]


def test_which_quota_is_used_up_is_told(
    served: Served, alice: Caller, bob: Caller, given: PostgresQuotas
) -> None:
    so, theirs = alice.create(), bob.create()
    carol = served.tenant("carol")
    assert given.give("carol", "updates", 2)
    own = carol.create()
    served.stop_clock()

    answers = [carol.put(own) for _ in range(3)]

    assert [each.status_code for each in answers] == [202, 202, 429]
    assert told(answers[2]) == ("updates", '"updates";q=2;w=1', '"updates";r=0;t=1')
    assert answers[2].get_json()["quota"] == {
        "name": "updates",
        "limit": 2,
        "unit": "updates a second",
    }
    assert [alice.put(so).status_code, bob.put(theirs).status_code] == [202, 202]


@pytest.mark.parametrize(("quota", "most"), [("documents", 1), ("streams", 2), ("streams", 1)])
def test_documents_and_streams_end_at_their_border(
    alice: Caller, given: PostgresQuotas, quota: str, most: int
) -> None:
    given.give("alice", quota, most)
    so = alice.create()
    two = {"streams": dict.fromkeys("ab", SIMPLE["streams"]["a"])}

    changed = alice.ask("PUT", f"/{so}", json=two)

    if quota == "streams" and most == 1:
        assert told(changed)[0] == "streams"
    else:
        assert changed.status_code == 200
        answer = alice.ask("POST", "/", json=SIMPLE)
        assert told(answer) == (quota, f'"{quota}";q={most}', f'"{quota}";r=0;t=60')
    alice.ask("DELETE", f"/{so}")
    assert alice.ask("POST", "/", json=SIMPLE).status_code == 201


def test_subscriptions_end_at_their_border(alice: Caller, given: PostgresQuotas) -> None:
    given.give("alice", "subscriptions", 1)
    so = alice.create()
    path, wanted = f"/{so}/streams/a/subscriptions", {"callback": "pull"}

    assert alice.ask("POST", path, json=wanted).status_code == 201
    assert told(alice.ask("POST", path, json=wanted))[0] == "subscriptions"


def used(served: Served, so: str) -> dict[str, Any]:
    """Let a stream have used some of everything that is metered."""
    key = served.platform.stream(so)
    use = Use(
        key.tenant,
        StreamRef(so, "a"),
        key.tenant,
        updates=10,
        rows=10,
        bytes=1000,
        computations={"emitted": 5, "stale": 2},
    )
    served.platform.store.account([use])
    PostgresUsage(served.platform.database).deliver({Given(key.tenant, key.tenant, so, "a"): 4})
    return {"computations": 7, "deliveries": 4, "stored-bytes": 1000}


@pytest.mark.parametrize("quota", ["computations", "stored-bytes"])
def test_what_is_metered_ends_where_it_is_used_up(
    served: Served, alice: Caller, given: PostgresQuotas, quota: str
) -> None:
    so = alice.create()
    most = used(served, so)[quota]
    given.give("alice", quota, most)
    given.give("alice", "documents", 5)
    served.app.extensions["servioticy"].quotas._known.clear()

    assert told(alice.put(so))[0] == quota
    assert alice.ask("GET", f"/{so}").status_code == 200


def test_subscriptions_of_who_may_be_given_no_more_are_paused_and_nothing_else_is(
    served: Served, alice: Caller, bob: Caller, given: PostgresQuotas
) -> None:
    so = alice.create({"public": True, **SIMPLE})
    path, wanted = f"/{so}/streams/a/subscriptions", {"callback": "pull"}
    mine, theirs = (who.ask("POST", path, json=wanted).get_json()["id"] for who in (alice, bob))
    given.give("alice", "deliveries", used(served, so)["deliveries"])
    served.app.extensions["servioticy"].quotas._known.clear()

    def states(who: Caller) -> dict[str, Any]:
        listed = who.ask("GET", path).get_json()["subscriptions"]
        return {each["id"]: (each["state"], "paused" in each) for each in listed}

    assert states(alice) == {mine: ("paused", True), theirs: ("active", False)}
    assert states(bob) == {theirs: ("active", False)}
    told_of_it = alice.ask("GET", f"/subscriptions/{mine}").get_json()
    assert told_of_it["paused"]["quota"] == "deliveries"
    left = told_of_it["paused"]["until"] - served.app.extensions["servioticy"].now()
    assert 0 < left <= 3_600_000, "until the hour is over"
    rows = {each["name"]: each for each in alice.ask("GET", "/quotas").get_json()["quotas"]}
    assert {name for name, each in rows.items() if "retryAfter" in each} == {"deliveries"}
    assert alice.put(so).status_code == 202
    assert told(alice.ask("POST", path, json=wanted))[0] == "deliveries"

    given.give("alice", "deliveries", 100)
    served.app.extensions["servioticy"].quotas._known.clear()
    assert states(alice) == {mine: ("active", False), theirs: ("active", False)}


def test_what_is_purged_is_not_stored_any_more(served: Served, alice: Caller) -> None:
    so = alice.create()
    alice.put(so)
    served.store()
    used(served, so)

    def stored() -> int:
        served.app.extensions["servioticy"].quotas._known.clear()
        rows = alice.ask("GET", "/quotas").get_json()["quotas"]
        (found,) = [each["used"] for each in rows if each["name"] == "stored-bytes"]
        return int(found)

    before = stored()
    store = served.platform.store
    key = served.platform.stream(so)
    served.platform.database.rows(
        "INSERT INTO purge (log_partition, tenant_id, stored_as) VALUES (0, %(t)s, %(s)s)",
        {"t": key.tenant, "s": key.stream_id},
    )
    while store.purge(0, 100, 10**6) is not None:
        pass

    assert before == 1000
    assert 0 < stored() < before


def test_quotas_are_told_with_what_is_used(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    so = alice.create()
    metered = used(served, so)
    given.give("alice", "documents", 3)
    served.app.extensions["servioticy"].quotas._known.clear()

    rows = alice.ask("GET", "/quotas").get_json()["quotas"]

    found = {each["name"]: each for each in rows}
    assert found.keys() == quotas(Settings()).keys()
    assert found["documents"] == {
        "name": "documents",
        "limit": 3,
        "unit": "Service Objects",
        "used": 1,
    }
    assert found["streams"]["used"] == 1
    assert {name: found[name]["used"] for name in metered} == metered
    assert found["updates"]["window"] == 1


def command(*arguments: str) -> Any:
    parsed = cli.parser().parse_args(["tenant", "quota", *arguments])
    assert isinstance(parsed, argparse.Namespace)
    return commands.tenant_quota(parsed, Settings())


def test_an_operator_gives_a_tenant_another_quota(
    served: Served,
    alice: Caller,
    given: PostgresQuotas,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Opened:
        def __enter__(self) -> Any:
            return served.platform.database

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(running, "database", lambda _settings, _role: Opened())
    command("alice", "documents", "7")
    assert given.of_tenant("alice") == {"documents": 7}
    shown = capsys.readouterr().out.splitlines()
    assert [each.split()[:2] for each in shown if "(given)" in each] == [["documents", "7"]]
    command("alice", "documents", "default")
    assert given.of_tenant("alice") == {}
    assert given.of_all("documents") == {}
    for wrong in (
        ("nobody",),
        ("nobody", "documents", "7"),
        ("alice", "wishes", "7"),
        ("alice", "documents"),
        ("alice", "documents", "-1"),
        ("alice", "documents", "9" * 30),
    ):
        with pytest.raises(SettingsError):
            command(*wrong)
