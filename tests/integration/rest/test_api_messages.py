"""What a newcomer does wrong, and what is said: the original's message, and what to do next."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import composite
from granting import give, id_of

from api.app import SERVICES
from api.edge.calls import Answer, Application, Request
from api.updates_lane import UpdatesLane
from servioticy.http_heads import parse
from servioticy.ports.batches import Batch, StoredVerdict

NO_STREAM = "This Service Object does not have this stream."
NOT_FOUND = "Not found. Check the documentation"
NO_METHOD = "Method not allowed. Check the documentation"
FUNCTION = "function(a) { return iot.value(a) }"
VALUE = b'{"channels":{"x":{"current-value":1}}%b}'


def computed(version: str, code: str = FUNCTION) -> bytes:
    """A document with a stream that is computed."""
    channels = {"x": {"type": "number", "current-value": code}}
    document = {"version": version, "streams": {**SIMPLE["streams"], "b": {"channels": channels}}}
    return orjson.dumps(document)


DATE = "2026-11-24T09:30:00.250Z"
MESSAGES: list[tuple[str, str, bytes, str, str]] = [
    # Addresses.
    ("GET", "/nothing/at/all", b"", NOT_FOUND, "docs/rest.md"),
    ("GET", "/{so}/streams/a/live", b"", NOT_FOUND, "docs/rest/live.md"),
    ("GET", "/{so}/streams/a/events/", b"", NOT_FOUND, "docs/rest/live.md"),
    ("GET", "/{so}/streams/b", b"", NO_STREAM, "Its streams are a"),
    ("PUT", "/{so}/streams/b", b"", NO_STREAM, "Its streams are a"),
    ("POST", "/{so}/streams/a", b"{}", NO_METHOD, "This address has DELETE, GET, PUT"),
    ("GET", "/{so}/streams/a/updates?form=1", b"", "there is no parameter", "'from'"),
    ("GET", "/{so}/streams/a/updates?from=noon", b"", "from has to be", "date as 2026"),
    # Documents.
    ("POST", "/", b"{}", "Service Object without streams", '"streams":{'),
    ("POST", "/", b'{"streams":[]}', "streams: has to be a JSON object", '"streams":{'),
    (
        "POST",
        "/",
        b'{"streams":{"a":{"channels":{"x":{"type":"float"}}}}}',
        "Channel x with incorrect type: float",
        "A type is number, string",
    ),
    (
        "POST",
        "/",
        b'{"streams":{"a":{"channels":{"x":{"type":"number","curent-value":""}}}}}',
        "stream a: channel x: there is no 'curent-value'",
        "'current-value'?",
    ),
    ("POST", "/", computed("0.1.0"), "stream b: channel x: this is a function", '"0.2.0"'),
    (
        "POST",
        "/",
        computed("0.2.0", "function(c) { return 1 }"),
        "stream b: a function names 'c'",
        "neither a stream nor a group",
    ),
    # Updates.
    (
        "PUT",
        "/{so}/streams/a",
        b'{"channels":{"x":1},"lastUpdate":1}',
        "channel x without",
        '"cur',
    ),
    ("PUT", "/{so}/streams/a", b'{"lastUpdate":1}', "No channels", '{"channels":{'),
    ("PUT", "/{so}/streams/a", VALUE % b"", "The lastUpdate field was not found", "milliseconds"),
    ("PUT", "/{so}/streams/a", VALUE % b',"lastUpdate":"noon"', "The lastUpdate has", "date as"),
    (
        "PUT",
        "/{so}/streams/a",
        b'{"channels":{"y":{"current-value":1}},"lastUpdate":1}',
        "The Service Object Stream does not have a channel: y",
        "Its channels are x",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "message", "next_"), MESSAGES)
def test_a_mistake_is_told_what_to_do_next(
    alice: Caller, method: str, path: str, body: bytes, message: str, next_: str
) -> None:
    """Where the message is the original's, it stays, and `detail` has a sentence more."""
    so = alice.create()

    said: dict[str, Any] = alice.ask(method, path.format(so=so), data=body).get_json()

    assert said["message"].startswith(message)
    assert said["detail"].startswith(said["message"])
    assert next_ in said["detail"]


@pytest.mark.parametrize("form", ["text/plain", "application/xml"])
def test_another_content_type_is_told_how_to_say_json(alice: Caller, form: str) -> None:
    said = alice.ask("POST", "/", data=b"{}", headers={"Content-Type": form}).get_json()["detail"]

    assert "-H 'Content-Type: application/json'" in said
    assert "--json" in said


def test_only_who_may_read_them_all_is_told_which_streams_there_are(
    alice: Caller, bob: Caller
) -> None:
    """Who was granted one, or has a token for one, does not learn of the others."""
    so = alice.create({"streams": {f"s{n}": SIMPLE["streams"]["a"] for n in range(12)}})
    give(alice, so, "s1", tenant=id_of(bob), use="read")
    scope = {"name": "n", "serviceObject": so, "stream": "s1", "rights": ["send", "read"]}
    token = alice.ask("POST", "/tokens", json=scope).get_json()["token"]
    path = f"/{so}/streams/none"

    own = alice.ask("GET", path).get_json()["detail"]
    others = bob.ask("GET", path)
    narrow = alice.ask("GET", path, headers={"Authorization": token})

    assert "s0, s1, s2" in own
    assert own.endswith("s9 and 2 more")
    for answer in (others, narrow):
        assert answer.status_code in (401, 403, 404)
        assert "s0" not in answer.text


def test_the_platforms_own_ports_are_told_when_they_are_named(
    served: Served, alice: Caller
) -> None:
    """Also when the address is changed; the callback is there all the same."""
    port = served.app.extensions[SERVICES].settings.api.port
    so, wanted = alice.create(), {"callback": "http", "destination": f"http://localhost:{port}/"}

    made = alice.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()
    public = {"destination": "http://example.org/"}
    moved = alice.ask("PUT", f"/subscriptions/{made['id']}", json=public).get_json()
    back = alice.ask("PUT", f"/subscriptions/{made['id']}", json=wanted).get_json()

    assert ["one of the platform's own" in each for each in made["warnings"]] == [True]
    assert "warnings" not in moved
    assert back["warnings"] == made["warnings"]


def test_a_subscription_may_be_changed_to_end_at_a_date(alice: Caller) -> None:
    so, wanted = alice.create(), {"callback": "http", "destination": "http://example.org/"}
    id_ = alice.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]

    assert alice.ask("PUT", f"/subscriptions/{id_}", json={"expire": DATE}).status_code == 200

    assert alice.ask("GET", f"/subscriptions/{id_}").get_json()["expire"] == 1_795_512_600_250


def test_an_unknown_token_is_told_how_to_get_one(served: Served) -> None:
    said = served.app.test_client().get("/", headers={"Authorization": "nobodys"}).get_json()

    assert said["message"] == "Access was denied!"
    assert "servioticy tenant create" in said["detail"]


@pytest.mark.parametrize(
    ("host", "warned"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.1", True),
        ("[::1]", True),
        ("192.0.2.1.example.org", False),
        ("8.8.8.8", False),
    ],
)
def test_an_address_that_is_not_called_is_told_when_it_is_named(
    alice: Caller, host: str, warned: bool
) -> None:
    so = alice.create()
    wanted = {"callback": "http", "destination": f"http://{host}:9999/"}

    said = alice.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted)

    assert said.status_code == 201
    warnings = said.get_json().get("warnings", [])
    assert any("live_callback_networks" in each for each in warnings) == warned


def test_an_update_in_another_unit_of_time_is_taken_and_told(
    served: Served, alice: Caller
) -> None:
    """Also where updates are answered many at once; the body is the update as ever."""
    so = alice.create({"streams": {"a": {"channels": {"x": {"type": "number", "unit": "C"}}}}})
    lane = UpdatesLane(served.app.extensions[SERVICES].ingest)
    application = Application(served.app, "127.0.0.1", 8080, lane.answers)
    now = int(served.app.extensions[SERVICES].clock())
    body = b'{"channels":{"x":{"current-value":1,"unit":"F"}},"lastUpdate":%d}'
    head = f"PUT /{so}/streams/a HTTP/1.1\r\nHost: h\r\nAuthorization: {alice.token}"

    def put(at: int, *, together: bool) -> tuple[bytes, str]:
        request = Request(parse(head.encode()), body % at, "127.0.0.1")
        answer = application.call(request)
        if together:
            assert application.together is not None
            (answer,) = application.together([request])
        assert isinstance(answer, Answer)
        assert answer.status == "202 ACCEPTED"
        return answer.body, dict(answer.headers).get("Warning", "")

    for together in (False, True):
        said, warning = put(now * 1000, together=together)
        assert said == body % (now * 1000)
        assert "channel x is in C" in warning
        assert "is in seconds" not in warning
        said, warning = put(now, together=together)
        assert said == body % now
        assert f"lastUpdate {now} is in seconds" in warning


def test_the_verdict_of_a_trigger_in_another_unit_says_so(served: Served, alice: Caller) -> None:
    """Last output in milliseconds, last trigger in seconds: every next one is stale, too."""
    so = alice.create()
    now = int(served.app.extensions[SERVICES].clock())
    body = b'{"channels":{"x":{"current-value":1}},"lastUpdate":%d}'
    assert alice.put(so, body % (now * 1000)).status_code == 202
    served.store()
    key = served.platform.stream(so)
    for at, told in ((now * 1000 - 5, False), (now, True)):
        about = b'{"trigger":"A/s","timestamp":%d,"version":1,"message":"","inputs":{}}' % at
        verdict = StoredVerdict(*key, "stale", 1, about)
        place = served.platform.store.begin(0)[0]
        served.platform.store.store(Batch(0, place, place + 1, place, verdicts=[verdict]))

        (found,) = alice.ask("GET", f"/{so}/streams/a/status").get_json()["verdicts"]

        assert ("is in seconds" in found["last"].get("hint", "")) is told


def test_the_raw_subscription_is_as_the_original_stored_it(alice: Caller, bob: Caller) -> None:
    """For whoever made it: the owner of the stream does not learn where it goes."""
    so = alice.create({**SIMPLE, "public": True})
    wanted = {"callback": "http", "destination": "http://example.org/in"}
    id_ = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]
    path = f"/private/security/subscriptions/{id_}"

    said = bob.ask("GET", path)
    assert list(said.get_json()) == [
        *["id", "userId", "createdAt", "updatedAt", "callback", "source", "destination"],
        *["stream", "customFields", "delay", "expire"],
    ]
    assert said.get_json()["destination"] == "http://example.org/in"
    assert alice.ask("GET", path).status_code == 401
    assert bob.ask("GET", path[:-1] + "x").status_code == 404
    assert bob.ask("GET", path, headers={"Authorization": ""}).status_code == 403


def test_a_query_takes_dates(alice: Caller) -> None:
    so = alice.create()
    path = f"/{so}/streams/a/updates"

    assert alice.ask("GET", f"{path}?from=2026-11-24T09:30:00+01:00").status_code == 200
    for wrong in ("from=2026-11-24T09:30:00", "to=1950-01-01T00:00:00Z"):
        assert alice.ask("GET", f"{path}?{wrong}").status_code == 400


def test_what_had_to_do_without_an_input_is_told_why(
    served: Served, alice: Caller, bob: Caller
) -> None:
    """One member deleted, one closed by its owner, one that has never sent; nothing by itself."""
    silent, gone = alice.create(), alice.create()
    closed = bob.create({**SIMPLE, "public": True})
    document = composite("g", g=([silent, gone, closed], "a"))
    so = alice.create(document)
    (stream,) = document["streams"]
    about = b'{"trigger":"A/s","timestamp":5,"version":1,"message":"d: null is no number"'

    def hint(verdict: str, inputs: bytes) -> str:
        key = served.platform.stream(so, stream)
        stored = StoredVerdict(*key, verdict, 1, about + b',"inputs":%b}' % inputs)
        place = served.platform.store.begin(0)[0]
        served.platform.store.store(Batch(0, place, place + 1, place, verdicts=[stored]))
        found = alice.ask("GET", f"/{so}/streams/{stream}/status").get_json()["verdicts"]
        told: str = next(e for e in found if e["verdict"] == verdict)["last"].get("hint", "")
        return told

    assert hint("error", b'{"g":null}') == (
        "g had no update: what it reads had sent nothing by then"
    )
    alice.ask("DELETE", f"/{gone}")
    bob.ask("PUT", f"/{closed}", json={**SIMPLE, "public": False})

    for verdict in ("error", "script-error", "filtered", "missing"):
        assert hint(verdict, b'{"g":null}') == (
            f"g had no update: {gone} was deleted, {closed} may not be read any more, the "
            "rest had sent nothing by then"
        )
    assert hint("error", b'{"g":5}') == ""
    assert hint("emitted", b'{"g":null}') == ""
    assert hint("error", b'{"%b":null}' % stream.encode()) == ""
