"""Claims: a device without a token comes by one, and nobody takes its place."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served
from claim_builders import a_code, a_code_of, claim, id_of, objects, refused
from fleet_builders import a_template, get, post

from api.http.attempts import MOST
from api.resources import claims
from servioticy.domain.records import DefinitionRecord
from servioticy.storage.quotas import PostgresQuotas


@pytest.fixture
def template(alice: Caller) -> str:
    return a_template(alice)


def test_a_device_gets_a_service_object_and_a_token_of_its_own(
    served: Served, alice: Caller, template: str
) -> None:
    """It follows the template, the log knows it, and the token is good for it alone."""
    code = a_code(alice, template, parameters={"limit": 7})

    answer = claim(served, code)

    made = answer.get_json()
    device = Caller(alice.client, made["api_token"])
    document = get(device, f"/{made['id']}")
    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"/{made['id']}")
    assert document["name"] == "Thermometer of kitchen"
    assert document["template"]["parameters"] == {"limit": 7, "room": "kitchen"}
    assert device.put(made["id"], stream="air", body=b'{"channels":{},"lastUpdate":1}').is_json
    assert device.ask("GET", "/").status_code == 403
    assert get(alice, f"/templates/{template}")["objects"] == [{"version": 1, "count": 1}]
    records = [each for part in (0, 1) for _, each in served.platform.records(part)]
    assert [each.service_object for each in records if isinstance(each, DefinitionRecord)] == [
        made["id"]
    ]


def test_who_asks_again_gets_the_same_and_makes_no_second_one(
    served: Served, alice: Caller, template: str
) -> None:
    """However the code is typed; and after it has expired, as the answer may come late."""
    code = a_code(alice, template)
    first = claim(served, code)
    served.platform.database.rows("UPDATE claim_codes SET expires_at = now()")

    again = claim(served, code.lower().replace("-", " ").replace("0", "o").replace("1", "l"))

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.get_json() == first.get_json()
    assert objects(alice) == [first.get_json()["id"]]


def test_nobody_else_takes_the_place_of_a_device(
    served: Served, alice: Caller, template: str
) -> None:
    code = a_code(alice, template, uses=5)
    made = claim(served, code).get_json()

    answer = claim(served, code, key="x" * 16)

    assert refused(answer) == (409, "This device has claimed already, with another key.")
    assert objects(alice) == [made["id"]]


def test_a_token_that_was_renewed_is_not_given_again(
    served: Served, alice: Caller, template: str
) -> None:
    """Else whoever has the key of a stolen device would undo its end."""
    code = a_code(alice, template)
    made = claim(served, code).get_json()
    post(alice, f"/{made['id']}/api_token", {}, 201)

    assert refused(claim(served, code)) == (
        409,
        "The token that this device got is good no longer.",
    )


def test_a_code_is_for_so_many_devices(served: Served, alice: Caller, template: str) -> None:
    code = a_code(alice, template, uses=2)

    statuses = [claim(served, code, device=f"room {n}").status_code for n in range(3)]

    assert statuses == [201, 201, 409]
    assert len(objects(alice)) == 2


def test_a_code_may_be_for_certain_devices(served: Served, alice: Caller, template: str) -> None:
    """Each of a list once; of a pattern whoever fits."""
    listed = a_code(alice, template, devices=["a", "b"])
    fitting = a_code(alice, template, uses=9, devicePattern="SN-[?]-*")
    not_for = (409, "The claim code is not for this device.")

    assert claim(served, listed, "a").status_code == 201
    assert refused(claim(served, listed, "c")) == not_for
    assert claim(served, listed, "b").status_code == 201
    assert refused(claim(served, listed, "d")) == (409, "The claim code has been used up.")
    assert claim(served, fitting, "SN-[7]-x").status_code == 201
    assert refused(claim(served, fitting, "SN-?-x")) == not_for


def test_a_code_of_a_service_object_gives_tokens_of_it(served: Served, alice: Caller) -> None:
    """Beside those that there are, so that nothing that runs is cut off."""
    so = alice.create()
    before = Caller(alice.client, post(alice, f"/{so}/api_token", {}, 201)["api_token"])

    answer = claim(served, a_code_of(alice, so))

    device = Caller(alice.client, answer.get_json()["api_token"])
    assert (answer.status_code, answer.get_json()["id"]) == (201, so)
    assert (device.put(so).status_code, before.put(so).status_code) == (202, 202)
    assert objects(alice) == [so]


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({"code": "7K3QM"}, "/code"),
        ({"code": "U" * 20}, "/code"),
        ({"code": 7}, "/code"),
        ({"key": "short"}, "/key"),
        ({"key": "x" * 201}, "/key"),
        ({"key": "with\ttabs and more"}, "/key"),
        ({"device": ""}, "/device"),
        ({"device": "a\0b"}, "/device"),
        ({"device": "x" * 201}, "/device"),
        ({"parameters": []}, "/parameters"),
        ({"parameters": {"limit": 1}}, "/parameters/limit"),
        ({"parameters": {"room": "mine"}}, "/parameters/room"),
    ],
)
def test_a_device_may_not_say_that(
    sent: dict[str, Any], pointer: str, served: Served, alice: Caller, template: str
) -> None:
    answer = claim(served, **{"code": a_code(alice, template)} | sent)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)
    assert objects(alice) == []


def test_a_device_gives_the_parameters_that_it_may(
    served: Served, alice: Caller, template: str
) -> None:
    code = a_code(alice, template, allowed=["limit"])

    wrong = claim(served, code, parameters={"limit": "high"})
    right = claim(served, code, parameters={"limit": 3})

    assert (wrong.status_code, wrong.get_json()["pointer"]) == (400, "/parameters/limit")
    document = get(alice, f"/{right.get_json()['id']}")
    assert document["template"]["parameters"] == {"limit": 3, "room": "kitchen"}


def test_who_guesses_keys_is_stopped_and_nobody_else(
    served: Served, alice: Caller, template: str
) -> None:
    """However wrong strangers are about codes, from the same address: who has one is let in."""
    code = a_code(alice, template, uses=9)
    for _ in range(int(MOST) + 1):
        assert claim(served, "7" * 20).status_code == 404
    assert claim(served, code).status_code == 201

    guesses = [claim(served, code, key=f"{n:016}").status_code for n in range(int(MOST))]

    assert guesses == [409] * int(MOST)
    assert claim(served, code).status_code == 429
    assert claim(served, code, "hall").status_code == 201


def test_a_code_of_what_is_deleted_is_good_for_nothing(served: Served, alice: Caller) -> None:
    so = alice.create()
    code = a_code_of(alice, so)
    alice.ask("DELETE", f"/{so}")

    assert refused(claim(served, code)) == (404, "There is no such claim code, or it has ended.")


def test_of_a_service_object_there_are_so_many_tokens(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own, however its codes were ended meanwhile; those with a name do not count."""
    monkeypatch.setattr(claims, "MAX_TOKENS", 4)
    so = alice.create()
    post(alice, "/tokens", {"name": "one", "serviceObject": so}, 201)
    statuses = []
    for number in range(4):
        code = a_code_of(alice, so)
        statuses.append(claim(served, code, f"room {number}").status_code)
        alice.ask("DELETE", f"/claim-codes/{id_of(served, code)}")
    code = a_code_of(alice, so)
    full = claim(served, code)
    post(alice, f"/{so}/api_token", {}, 201)

    assert statuses == [201, 201, 201, 409]
    assert full.get_json()["message"].startswith("The Service Object has 4 tokens already")
    assert claim(served, code).status_code == 201


def test_a_claim_counts_by_the_quotas_of_its_tenant(
    served: Served, alice: Caller, request: pytest.FixtureRequest
) -> None:
    PostgresQuotas(served.platform.database).give("alice", "documents", 0)
    code = a_code(alice, request.getfixturevalue("template"))

    answer = claim(served, code)

    assert (answer.status_code, answer.get_json()["quota"]["name"]) == (429, "documents")
    assert get(alice, "/claim-codes")["data"][0]["used"] == 0
