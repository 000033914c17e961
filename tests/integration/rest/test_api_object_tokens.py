"""A token of one Service Object: for the device, and for nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from api_builders import SIMPLE, UPDATE, Caller, Served
from claim_builders import claim

DOCUMENT = {**SIMPLE, "actions": [{"name": "reboot"}]}
WRONG = "The web object has presented the wrong API_TOKEN"


def made(caller: Caller) -> tuple[str, Caller]:
    """A new Service Object, and its device."""
    answer = caller.ask("POST", "/", json=DOCUMENT)
    # As shell clients take it: field 4 of the line is the id, field 8 the token.
    fields = answer.text.split('"')
    return fields[3], Caller(caller.client, fields[7])


def test_who_creates_an_object_gets_its_token_second(alice: Caller) -> None:
    answer = alice.ask("POST", "/", json=DOCUMENT)

    pattern = r'\{"id":"[0-9a-f]+","api_token":"[0-9A-Za-z]{22}","createdAt":\d+\}'
    assert re.fullmatch(pattern, answer.text)


def test_a_device_may_do_what_a_device_does(served: Served, alice: Caller) -> None:
    so, device = made(alice)
    id_ = alice.ask("POST", f"/{so}/actuations/reboot").get_json()["id"]
    body = {"callback": "websocket"}

    assert device.put(so).status_code == 202
    served.store()
    assert device.ask("GET", f"/{so}").status_code == 200
    assert device.ask("GET", f"/{so}/streams/a").status_code == 200
    assert device.ask("PUT", f"/{so}/actuations/{id_}", data="done").status_code == 201
    assert device.ask("GET", f"/{so}/actuations/{id_}").get_json()["status"] == "done"
    assert device.ask("POST", f"/{so}/streams/a/subscriptions", json=body).status_code == 201


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("POST", "/"),
        ("PUT", "/{so}"),
        ("DELETE", "/{so}"),
        ("DELETE", "/{so}/streams/a"),
        ("GET", "/{so}/versions"),
        ("POST", "/{so}/versions/1/activate"),
        ("POST", "/{so}/api_token"),
        ("GET", "/subscriptions/x"),
        ("GET", "/{other}"),
        ("PUT", "/{other}/streams/a"),
        ("GET", "/{public}"),
        ("GET", "/unknown"),
        ("GET", "/{so}%00"),
    ],
)
def test_a_device_may_do_nothing_else(alice: Caller, bob: Caller, method: str, path: str) -> None:
    """The same answer for what is there and what is not."""
    so, device = made(alice)
    other, public = alice.create(), bob.create({**SIMPLE, "public": True})

    answer = device.ask(method, path.format(so=so, other=other, public=public), data=UPDATE)

    assert (answer.status_code, answer.get_json()["message"]) == (403, WRONG)


def test_a_new_token_takes_the_place_of_the_old(alice: Caller) -> None:
    so, device = made(alice)

    answer = alice.ask("POST", f"/{so}/api_token")

    token = answer.get_json()["api_token"]
    assert (answer.status_code, answer.get_json()["id"]) == (201, so)
    assert device.put(so).get_json()["message"] == "Access was denied!"
    assert Caller(alice.client, token).put(so).status_code == 202
    assert alice.put(so).status_code == 202


def test_a_device_changes_its_token_without_a_gap(served: Served, alice: Caller) -> None:
    """Both are good for a while; of those before the last but one none is, however often."""
    so, first = made(alice)
    path, wanted = f"/{so}/api_token", {"overlapSeconds": 60}

    tokens = [alice.ask("POST", path, json=wanted).get_json()["api_token"] for _ in range(2)]

    second, third = (Caller(alice.client, each) for each in tokens)
    assert [each.put(so).status_code for each in (first, second, third)] == [403, 202, 202]
    past = "UPDATE tokens SET expires_at = expires_at - interval '60 seconds'"
    served.platform.database.rows(past)
    assert [each.put(so).status_code for each in (second, third)] == [403, 202]
    assert alice.ask("POST", path, json={"overlapSeconds": -1}).status_code == 400


def ending(alice: Caller, so: str, **more: Any) -> tuple[Caller, int]:
    """Somebody who may change the Service Object for a minute, and until when."""
    wanted = {"name": "n", "rights": ["change"], "serviceObject": so, "expiresIn": 60, **more}
    made = alice.ask("POST", "/tokens", json=wanted).get_json()
    return Caller(alice.client, made["token"]), made["expiresAt"]


def test_nobody_gives_more_time_than_he_has(served: Served, alice: Caller) -> None:
    """Else who may change something for a minute could read it for ever."""
    so, _device = made(alice)
    changer, until = ending(alice, so)

    told = changer.ask("POST", f"/{so}/api_token", json={"overlapSeconds": 3600}).get_json()
    second = Caller(alice.client, told["api_token"])
    assert (told["expiresAt"], second.put(so).status_code) == (until, 202)
    last = alice.ask("POST", f"/{so}/api_token", json={"overlapSeconds": 30}).get_json()
    assert "expiresAt" not in last
    assert second.put(so).status_code == 202, "within the overlap, though it ended before"
    served.platform.database.rows(
        "UPDATE tokens SET expires_at = now() WHERE expires_at < 'infinity'"
    )

    assert second.put(so).status_code == 403
    assert Caller(alice.client, last["api_token"]).put(so).status_code == 202


def test_nor_by_claim_codes(served: Served, alice: Caller) -> None:
    so, _device = made(alice)
    changer, until = ending(alice, so)
    told = changer.ask("POST", f"/{so}/claim-codes", json={}).get_json()
    assert told["expiresAt"] == until

    claimed = claim(served, told["claimCodes"][0]["code"]).get_json()
    device = Caller(alice.client, claimed["api_token"])
    assert device.put(so).status_code == 202
    served.platform.database.rows(
        "UPDATE tokens SET expires_at = now() WHERE expires_at < 'infinity'"
    )

    assert device.put(so).status_code == 403


def test_the_token_goes_with_its_object(served: Served, alice: Caller) -> None:
    so, device = made(alice)

    alice.ask("DELETE", f"/{so}")

    assert device.put(so).get_json()["message"] == "Access was denied!"
    bound = "SELECT 1 FROM tokens WHERE service_object IS NOT NULL"
    assert served.platform.database.rows(bound) == []


def test_tokens_are_stored_nowhere(served: Served, alice: Caller) -> None:
    _, device = made(alice)

    for (table,) in served.platform.database.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    ):
        rows = served.platform.database.rows(f"SELECT t::text FROM {table} AS t")
        assert not any(device.token in text for (text,) in rows)
