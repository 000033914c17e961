"""Tokens of a tenant: what they are for, for how long, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served

from api.app import SERVICES
from api.background.forgetting import TOKENS_KEPT_DAYS, old_tokens
from api.resources import tokens
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.statements import PostgresStatements


@pytest.fixture
def so(alice: Caller) -> str:
    return alice.create()


def made(caller: Caller, **wanted: Any) -> Any:
    answer = caller.ask("POST", "/tokens", json={"name": "n"} | wanted)
    assert answer.status_code == 201, answer.text
    return answer.get_json()


def by(caller: Caller, token: str) -> Caller:
    """The same client, by another token."""
    return Caller(caller.client, token)


def test_a_token_may_do_what_it_is_for_and_nothing_else(alice: Caller, so: str) -> None:
    reader = by(alice, made(alice, rights=["read"])["token"])

    assert reader.ask("GET", f"/{so}").status_code == 200
    assert reader.put(so).status_code == 403
    assert reader.ask("GET", "/").status_code == 403
    assert reader.ask("POST", "/tokens", json={"name": "more"}).status_code == 403


def test_a_token_of_a_stream_reaches_that_stream_only(alice: Caller, so: str) -> None:
    other = alice.create()
    token = made(alice, serviceObject=so, stream="a", rights=["send", "read"])["token"]
    device = by(alice, token)

    assert device.put(so).status_code == 202
    assert device.ask("GET", f"/{so}/streams/a/lastUpdate").status_code in (200, 204)
    assert device.put(so, stream="b").status_code == 403
    assert device.put(other).status_code == 403
    assert device.ask("GET", f"/{so}").status_code == 403
    assert device.ask("DELETE", f"/{so}/streams/a").status_code == 403


def test_a_revoked_token_is_good_for_nothing(alice: Caller, so: str) -> None:
    new = made(alice)
    holder = by(alice, new["token"])
    assert holder.put(so).status_code == 202

    assert alice.ask("DELETE", f"/tokens/{new['id']}").status_code == 204

    assert holder.put(so).status_code == 403
    assert alice.ask("DELETE", f"/tokens/{new['id']}").status_code == 404
    assert alice.ask("GET", "/tokens").get_json()["tokens"] != []


def test_a_token_ends_when_it_is_to(alice: Caller, so: str, served: Served) -> None:
    new = made(alice, expiresIn=60)
    holder = by(alice, new["token"])
    assert holder.put(so).status_code == 202
    assert new["expiresAt"] > 0

    served.platform.database.rows("UPDATE tokens SET expires_at = now() WHERE name = 'n'")

    assert holder.put(so).status_code == 403
    assert new["id"] not in {
        each["id"] for each in alice.ask("GET", "/tokens").get_json()["tokens"]
    }


def test_a_token_is_exchanged(alice: Caller, so: str) -> None:
    """The old one is good for a while yet, or not at all any more."""
    first = made(alice, serviceObject=so, rights=["send"])
    path = f"/tokens/{first['id']}/rotation"

    second = alice.ask("POST", path, json={"overlapSeconds": 60}).get_json()
    assert by(alice, first["token"]).put(so).status_code == 202
    assert by(alice, second["token"]).put(so).status_code == 202
    third = alice.ask("POST", f"/tokens/{second['id']}/rotation").get_json()

    assert by(alice, second["token"]).put(so).status_code == 403
    assert by(alice, third["token"]).put(so).status_code == 202
    assert {key: third[key] for key in ("name", "serviceObject", "rights")} == {
        "name": "n",
        "serviceObject": so,
        "rights": ["send"],
    }
    assert alice.ask("POST", f"/tokens/{second['id']}/rotation").status_code == 404


def test_as_many_are_good_as_there_may_be_and_more_have_been(
    alice: Caller, bob: Caller, served: Served
) -> None:
    """Those that have ended count no more, and exchanging them makes no more of them."""
    assert made(alice)
    PostgresQuotas(served.platform.database).give("alice", "tokens", 5)
    served.app.extensions[SERVICES].quotas._known.clear()
    so = bob.create()
    first, second = made(alice, expiresIn=60), made(alice)
    made(alice, serviceObject=alice.create())
    rotation, both = f"/tokens/{second['id']}/rotation", {"overlapSeconds": 60}

    refused = alice.ask("POST", "/tokens", json={"name": "n"})
    assert (refused.status_code, refused.get_json()["quota"]["name"]) == (429, "tokens")
    assert made(bob, serviceObject=so)
    assert alice.ask("POST", rotation, json=both).status_code == 201
    assert alice.ask("POST", rotation, json=both).status_code == 429
    past = "UPDATE tokens SET expires_at = now() - interval '1 day' WHERE expires_at IS NOT NULL"
    served.platform.database.rows(past)
    assert alice.ask("POST", f"/tokens/{first['id']}/rotation").status_code == 404
    assert made(alice)
    assert alice.ask("POST", "/tokens", json={"name": "n"}).status_code == 429


def test_of_those_that_have_ended_the_last_ones_stay(
    alice: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who makes short-lived ones all day would leave a row for each, which nobody counts."""
    monkeypatch.setattr(tokens, "ENDED_KEPT", 2)
    monkeypatch.setattr(tokens, "FORGOTTEN_EACH", 1)
    past = "UPDATE tokens SET expires_at = now() - interval '1 s' WHERE expires_at IS NOT NULL"
    for _ in range(5):
        made(alice, expiresIn=60)
        served.platform.database.rows(past)

    ended = "SELECT count(*) FROM tokens WHERE expires_at < now()"
    assert served.platform.database.rows(ended) == [(3,)]
    counted = {each["name"]: each for each in alice.ask("GET", "/quotas").get_json()["quotas"]}
    assert counted["tokens"]["used"] == 1


def test_who_makes_tokens_all_day_has_those_that_ended_looked_at_now_and_then(
    alice: Caller, bob: Caller, served: Served
) -> None:
    """A look goes past a thousand that are kept: one for each token is all of Postgres' time."""
    looked: list[int] = []
    rows = PostgresStatements.rows

    def counted(self: PostgresStatements, name: str, /, **values: Any) -> Any:
        looked.extend([values["tenant"]] if name == "forget_ended" else [])
        return rows(self, name, **values)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PostgresStatements, "rows", counted)
        for _ in range(2 * tokens.FORGOTTEN_EACH):
            made(alice, expiresIn=60)
        of_alice = len(looked)
        made(bob, expiresIn=60)

    assert of_alice == 2
    assert len(looked) == 3


def test_a_device_has_so_many_tokens_however_they_are_exchanged(
    alice: Caller, so: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MOST_OF_ONE", 2)
    born = "SELECT id FROM tokens WHERE service_object IS NOT NULL"
    ((id_,),) = served.platform.database.rows(born)
    path, both = f"/tokens/{id_}/rotation", {"overlapSeconds": 60}

    found = [alice.ask("POST", path, json=both).status_code for _ in range(3)]

    assert found == [201, 201, 409]


def test_tokens_go_some_days_after_their_end(alice: Caller, served: Served) -> None:
    """Nobody has revoked them: the audit log does not tell of it."""
    old, late, good = made(alice, expiresIn=60), made(alice, expiresIn=60), made(alice)
    ended = "UPDATE tokens SET expires_at = now() - %(days)s * interval '1 day' WHERE id = %(id)s"
    served.platform.database.rows(ended, {"id": old["id"], "days": TOKENS_KEPT_DAYS + 1})
    served.platform.database.rows(ended, {"id": late["id"], "days": TOKENS_KEPT_DAYS - 1})

    old_tokens(served.app.extensions[SERVICES]).turn()

    left = {id_ for (id_,) in served.platform.database.rows("SELECT id FROM tokens")}
    assert old["id"] not in left
    assert {late["id"], good["id"]} <= left
    told = {each["action"] for each in alice.ask("GET", "/audit").get_json()["data"]}
    assert "revoked" not in told
    alice.ask("DELETE", f"/tokens/{good['id']}")
    assert alice.ask("GET", "/audit").get_json()["data"][0]["action"] == "revoked"


@pytest.mark.parametrize(
    ("first", "wanted", "seconds"),
    [
        ({"expiresIn": 60}, {}, 60),
        ({"expiresIn": 60}, {"overlapSeconds": 30}, 60),
        ({"expiresIn": 60}, {"expiresIn": 3600}, 3600),
        ({}, {"overlapSeconds": 30}, None),
    ],
)
def test_another_token_is_good_for_as_long_as_the_one_before(
    alice: Caller, first: Any, wanted: Any, seconds: int | None, served: Served
) -> None:
    """From now on, and not for ever where the one before was to end."""
    path = f"/tokens/{made(alice, **first)['id']}/rotation"
    earlier = "created_at - interval '50 s', expires_at = expires_at - interval '50 s'"
    served.platform.database.rows(f"UPDATE tokens SET created_at = {earlier} WHERE name = 'n'")

    id_ = alice.ask("POST", path, json=wanted).get_json()["id"]

    sql = "SELECT extract(epoch FROM expires_at - created_at)::float FROM tokens WHERE id = %(id)s"
    ((life,),) = served.platform.database.rows(sql, {"id": id_})
    assert life == seconds


def test_tokens_are_listed_without_their_secrets(alice: Caller, bob: Caller, so: str) -> None:
    new = [made(alice, name=f"n{n}", serviceObject=so) for n in range(105)]
    made(bob)

    first = alice.ask("GET", "/tokens").get_json()
    rest = alice.ask("GET", f"/tokens?after={first['next']}").get_json()

    found = {each["id"]: each for each in first["tokens"] + rest["tokens"]}
    assert {each["id"] for each in new} <= found.keys()
    assert found.keys() >= {each["id"] for each in new}
    assert len(found) == 106  # her first one, too
    assert all("token" not in each for each in found.values())
    assert found[new[0]["id"]]["serviceObject"] == so


@pytest.mark.parametrize("how", [("DELETE", ""), ("POST", "/rotation")])
def test_tokens_of_others_are_not_there(alice: Caller, bob: Caller, how: tuple[str, str]) -> None:
    method, rest = how
    theirs = made(bob)

    assert alice.ask(method, f"/tokens/{theirs['id']}{rest}").status_code == 404
    assert by(bob, theirs["token"]).ask("GET", "/").status_code == 200


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": 5}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"name": "a\0"}, "/name"),
        ({"rights": []}, "/rights"),
        ({"rights": "read"}, "/rights"),
        ({"rights": ["read", "fly"]}, "/rights/1"),
        ({"rights": [5]}, "/rights/0"),
        ({"expiresIn": 0}, "/expiresIn"),
        ({"expiresIn": True}, "/expiresIn"),
        ({"expiresIn": 1.5}, "/expiresIn"),
        ({"expiresIn": 10**12}, "/expiresIn"),
        ({"serviceObject": "nothing"}, "/serviceObject"),
        ({"serviceObject": 5}, "/serviceObject"),
        ({"serviceObject": "a\0"}, "/serviceObject"),
        ({"stream": "a"}, "/stream"),
        ({"stream": None}, "/stream"),
        ({"serviceObject": None}, "/serviceObject"),
        ({"rights": None}, "/rights"),
        ({"expiresIn": None}, "/expiresIn"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(alice: Caller, wrong: Any, pointer: str) -> None:
    answer = alice.ask("POST", "/tokens", json={"name": "n"} | wrong)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


def test_a_token_is_for_what_there_is_of_ones_own(alice: Caller, bob: Caller, so: str) -> None:
    theirs = bob.create()
    wanted = [
        ({"serviceObject": theirs}, 400, "/serviceObject"),
        ({"serviceObject": so, "stream": "nothing"}, 404, "/stream"),
        ({"serviceObject": so, "rights": ["admin"]}, 400, "/rights/0"),
    ]
    for wrong, status, pointer in wanted:
        answer = alice.ask("POST", "/tokens", json={"name": "n"} | wrong)
        assert (answer.status_code, answer.get_json()["pointer"]) == (status, pointer)
    assert alice.ask("POST", "/tokens", json={}).status_code == 400
