"""Claim codes: a device without a token comes by one, once, whatever is lost and whoever asks."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from fleet_builders import DOCUMENT, TEMPLATE, a_template, get, post
from werkzeug.test import TestResponse

from api.http import attempts
from servioticy.domain.records import DefinitionRecord
from servioticy.domain.tokens import digest
from servioticy.errors import Unavailable

KEY = "0123456789abcdef"


@pytest.fixture
def template(alice: Caller) -> str:
    return a_template(alice)


def a_code(caller: Caller, template: str, **wanted: Any) -> str:
    made = post(caller, f"/templates/{template}/claim-codes", {"deviceAs": "room"} | wanted, 201)
    code: str = made["claimCodes"][0]["code"]
    return code


def id_of(served: Served, code: str) -> str:
    sql = "SELECT id FROM claim_codes WHERE digest = %(digest)s"
    row = served.platform.database.row(sql, {"digest": digest(code.replace("-", ""))})
    assert row is not None
    return str(row[0])


def claim(served: Served, code: str, device: str = "kitchen", **sent: Any) -> TestResponse:
    body = {"code": code, "device": device, "key": KEY} | sent
    return served.app.test_client().post("/claims", json=body)


def refused(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, answer.get_json()["message"]


def objects(caller: Caller) -> list[str]:
    found: list[str] = get(caller, "/")
    return found


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
    made = alice.ask("POST", f"/{so}/claim-codes").get_json()

    answer = claim(served, made["claimCodes"][0]["code"])

    device = Caller(alice.client, answer.get_json()["api_token"])
    assert (answer.status_code, answer.get_json()["id"]) == (201, so)
    assert (device.put(so).status_code, before.put(so).status_code) == (202, 202)
    assert objects(alice) == [so]


def test_of_devices_that_come_together_one_gets_the_last_use(
    served: Served, alice: Caller, template: str
) -> None:
    """The others leave nothing behind; nor does who sends the same twice at once."""
    code = a_code(alice, template)
    names = ["a", "b", "c", "c", "c"]
    statuses = together(
        [lambda name=name: claim(served, code, name).status_code for name in names]
    )

    given = [name for name, status in zip(names, statuses, strict=True) if status < 300]
    assert len(set(given)) == 1
    assert sorted(statuses) in ([201, 409, 409, 409, 409], [200, 200, 201, 409, 409])
    assert len(objects(alice)) == 1
    (code_row,) = get(alice, "/claim-codes")["data"]
    assert (code_row["used"], code_row["uses"]) == (1, 1)


def test_claims_and_changes_at_once_wait_for_each_other_and_for_nothing_else(
    served: Served, alice: Caller, template: str
) -> None:
    """A code that is revoked, and a template that is replaced, while devices claim."""
    clients = [Caller(served.app.test_client(), alice.token) for _ in range(3)]
    for number in range(6):
        code = a_code(alice, template, uses=9)
        path = f"/claim-codes/{id_of(served, code)}"
        statuses = together(
            [lambda n=n, code=code: claim(served, code, f"room {n}").status_code for n in range(3)]
            + [
                lambda path=path: clients[0].ask("DELETE", path).status_code,
                lambda n=number: put_template(clients[1], template, n),
                lambda n=number: put_template(clients[2], template, n + 100),
            ]
        )
        assert set(statuses[:3]) <= {201, 404, 429}
        assert statuses[3:] == [204, 202, 202]
    given = served.platform.database.rows("SELECT count(*) FROM tokens WHERE name = ''")
    assert given == [(len(objects(alice)) + 1,)]


def put_template(caller: Caller, template: str, number: int) -> int:
    content = {**TEMPLATE, "document": {**DOCUMENT, "description": f"the {number}th"}}
    return caller.ask("PUT", f"/templates/{template}", json=content).status_code


def together(asked: list[Any]) -> list[Any]:
    """The results of these calls, each by a thread of its own, begun at once."""
    found: list[Any] = [None] * len(asked)
    begin = threading.Barrier(len(asked))

    def run(number: int) -> None:
        begin.wait()
        found[number] = asked[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(asked))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


def test_a_broker_that_is_away_costs_no_second_use(
    served: Served, alice: Caller, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored before the log knows is the same as after kill -9 there."""
    code = a_code(alice, template)

    def away(*_: Any) -> int:
        raise Unavailable("the broker does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(served.platform.log, "append", away)
        patch.setattr(served.platform.log, "append_all", away)
        assert claim(served, code).status_code == 503

    assert claim(served, code).status_code == 200
    assert len(objects(alice)) == 1


def test_what_ends_before_it_is_stored_leaves_the_use(
    served: Served, alice: Caller, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is lost in the middle of the transaction: no use, no object, no token."""
    code = a_code(alice, template)
    database = served.platform.database
    rows = database.api.rows

    def losing(sql: Any, values: Any = None) -> Any:
        found = rows(sql, values)
        if "counted AS" in str(sql):
            assert found == [(1,)]
            raise Unavailable("Postgres does not answer")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(database.api, "rows", losing)
        assert claim(served, code).status_code == 503
    tokens = "SELECT 1 FROM tokens WHERE service_object IS NOT NULL"
    assert (objects(alice), database.rows(tokens)) == ([], [])

    assert claim(served, code).status_code == 201


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


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"deviceAs": None}, ""),
        ({"deviceAs": "rom"}, ""),
        ({"deviceAs": ["room"]}, ""),
        ({"deviceAs": "limit", "parameters": {"room": "x"}}, "/deviceAs"),
        ({"allowed": ["room"]}, ""),
        ({"allowed": "limit"}, "/allowed"),
        ({"parameters": {"limit": "x"}}, "/parameters/limit"),
        ({"parameters": {"room": "x"}}, ""),
        ({"parameters": 1}, "/parameters"),
        ({"count": 0}, "/count"),
        ({"count": 1001}, "/count"),
        ({"count": True}, "/count"),
        ({"uses": 10_001}, "/uses"),
        ({"expiresIn": 0}, "/expiresIn"),
        ({"devices": []}, "/devices"),
        ({"devices": ["a", "a"]}, "/devices"),
        ({"devices": ["a", "\0"]}, "/devices/1"),
        ({"devices": ["a"], "count": 2}, "/count"),
        ({"devices": ["a", "b"], "uses": 1}, "/uses"),
        ({"devicePattern": ""}, "/devicePattern"),
    ],
)
def test_codes_that_cannot_be(
    wanted: dict[str, Any], pointer: str, alice: Caller, template: str
) -> None:
    body = {"deviceAs": "room"} | wanted

    answer = alice.ask("POST", f"/templates/{template}/claim-codes", json=body)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)
    assert get(alice, "/claim-codes") == {"data": []}


def test_codes_of_a_service_object_have_no_parameters_and_fewer_uses(alice: Caller) -> None:
    so = alice.create()
    for wanted, pointer in (({"allowed": []}, "/allowed"), ({"uses": 101}, "/uses")):
        answer = alice.ask("POST", f"/{so}/claim-codes", json=wanted)
        assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


def test_a_tenant_sees_its_codes_and_who_has_claimed(
    served: Served, alice: Caller, bob: Caller, template: str
) -> None:
    """The codes themselves are told once, and stored nowhere."""
    code = a_code(alice, template, devices=["a", "b"])
    made = claim(served, code, "a").get_json()

    (told,) = get(alice, "/claim-codes")["data"]

    assert (told["uses"], told["used"], told["listed"]) == (2, 1, True)
    assert get(alice, f"/claim-codes/{told['id']}") == told
    claims = get(alice, f"/claim-codes/{told['id']}/claims")["data"]
    assert [each["device"] for each in claims] == ["a", "b"]
    assert [each.get("serviceObject") for each in claims] == [made["id"], None]
    assert get(bob, "/claim-codes") == {"data": []}
    for path in ("", "/claims"):
        assert bob.ask("GET", f"/claim-codes/{told['id']}{path}").status_code == 404
    assert bob.ask("DELETE", f"/claim-codes/{told['id']}").status_code == 404
    database = served.platform.database
    for (table,) in database.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        rows = database.rows(f"SELECT t::text FROM {table} AS t")
        for secret in (code, code.replace("-", ""), KEY, made["api_token"]):
            assert not any(secret in text for (text,) in rows)


def test_the_token_of_one_device_is_revoked(served: Served, alice: Caller) -> None:
    """By the id that the list of claims tells; the others of its Service Object go on."""
    so = alice.create()
    made = post(alice, f"/{so}/claim-codes", {"uses": 2}, 201)["claimCodes"][0]
    one, other = (
        Caller(alice.client, claim(served, made["code"], each).get_json()["api_token"])
        for each in ("one", "other")
    )
    first, _second = get(alice, f"/claim-codes/{made['id']}/claims")["data"]

    assert alice.ask("DELETE", f"/tokens/{first['token']}").status_code == 204

    assert (one.put(so).status_code, other.put(so).status_code) == (403, 202)


def test_a_code_that_has_ended_is_as_if_there_were_none(
    served: Served, alice: Caller, template: str
) -> None:
    """Revoked, expired, of a template that is gone, or never there."""
    revoked, expired, gone = (a_code(alice, template) for _ in range(3))
    path = f"/claim-codes/{id_of(served, revoked)}"
    assert alice.ask("DELETE", path).status_code == 204
    past = "UPDATE claim_codes SET expires_at = now() WHERE id = %(id)s"
    served.platform.database.rows(past, {"id": id_of(served, expired)})
    assert alice.ask("DELETE", f"/templates/{template}").status_code == 204

    answers = {refused(claim(served, each)) for each in (revoked, expired, gone, "7" * 20)}

    assert answers == {(404, "There is no such claim code, or it has ended.")}
    assert objects(alice) == []


def test_all_codes_of_a_tenant_have_so_many_uses(
    served: Served, alice: Caller, template: str
) -> None:
    """Those that have ended long ago count no more."""
    path = f"/templates/{template}/claim-codes"
    post(alice, path, {"deviceAs": "room", "count": 10, "uses": 10_000}, 201)

    assert alice.ask("POST", path, json={"deviceAs": "room"}).status_code == 409
    served.platform.database.rows("UPDATE claim_codes SET expires_at = now() - interval '31 days'")
    assert alice.ask("POST", path, json={"deviceAs": "room"}).status_code == 201
    assert len(get(alice, "/claim-codes")["data"]) == 1


def test_who_tries_codes_is_stopped_and_nobody_else(
    served: Served, alice: Caller, template: str
) -> None:
    """Right or wrong, that address gets the same answer then."""
    code = a_code(alice, template)
    most = int(attempts.OF_AN_ADDRESS.most)
    client = served.app.test_client()

    def tried(wanted: str, address: str) -> int:
        body = {"code": wanted, "device": "kitchen", "key": KEY}
        sent = client.post("/claims", json=body, environ_base={"REMOTE_ADDR": address})
        return sent.status_code

    guesses = [tried("7" * 20, f"2001:db8::{number:x}") for number in range(most)]
    assert guesses == [404] * most
    assert tried(code, "2001:db8::ffff") == 429
    assert tried(code, "2001:db8:0:1::1") == 201


def test_the_audit_log_tells_of_codes(served: Served, alice: Caller, template: str) -> None:
    code = a_code(alice, template)
    made = claim(served, code).get_json()
    (told,) = get(alice, "/claim-codes")["data"]
    alice.ask("DELETE", f"/claim-codes/{told['id']}")

    entries = get(alice, "/audit")["data"]

    done = [each["action"] for each in entries if each["kind"] == "claim code"]
    assert done == ["revoked", "used", "made"]
    (creation,) = (each for each in entries if each["id"] == made["id"])
    assert (creation["by"], creation["token"]) == ("tenant", f"claim-code:{told['id']}")


def test_a_claim_counts_by_the_quotas_of_its_tenant(
    served: Served, alice: Caller, template: str
) -> None:
    code = a_code(alice, template)
    served.platform.database.rows(
        "INSERT INTO quotas (tenant_id, name, most) VALUES (1, 'documents', 0)"
    )

    answer = claim(served, code)

    assert (answer.status_code, answer.get_json()["quota"]["name"]) == (429, "documents")
    assert get(alice, "/claim-codes")["data"][0]["used"] == 0


def test_only_who_may_make_objects_or_change_one_makes_codes(alice: Caller, template: str) -> None:
    so = alice.create(SIMPLE)
    made = alice.ask("POST", "/tokens", json={"name": "n", "rights": ["list", "read", "send"]})
    reader = Caller(alice.client, made.get_json()["token"])

    assert reader.ask("POST", f"/templates/{template}/claim-codes").status_code == 403
    assert reader.ask("POST", f"/{so}/claim-codes").status_code == 403
