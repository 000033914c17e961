"""What clients of the original rely on, row by row: statuses and messages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served

CHANNELS = {
    "n": {"type": "Number"},
    "t": {"type": "STRING", "unit": "u"},
    "b": {"type": "boolean"},
    "location": {"type": "geo_point"},
}
DOCUMENT = {
    "streams": {"data": {"channels": CHANNELS, "description": "d", "type": "sensor"}},
    "customFields": {"k": 1},
    "public": "True",
    "URL": "x",
    "iserveAnnotation": [1],
    "userId": "mallory",
    "dataTTL": -1,
}


def channel(content: Any, name: str = "c") -> dict[str, Any]:
    return {"streams": {"s": {"channels": {name: content}}}}


CREATION: list[tuple[Any, int, str]] = [
    (b"", 400, "No data in the request"),
    ({}, 400, "Service Object without streams"),
    ({"streams": {}}, 201, ""),
    ({"streams": {"X": {}}}, 400, "stream: X without channels"),
    (channel({}), 400, "channel c without type info"),
    (channel({"type": "numeric"}), 400, "Channel c with incorrect type: numeric"),
    (channel({"type": "geopositon"}), 400, "Channel c with incorrect type: geopositon"),
    (channel({"type": "Array[Number]"}), 201, ""),
    (channel({"type": "number"}, "location"), 400, "location channel has to be geo_point type"),
    ({**SIMPLE, "actions": {"name": "x"}}, 400, "actions has to be an array"),
    ({**SIMPLE, "actions": [{"name": "x"}, {"name": "x"}]}, 400, "actions with the same name"),
    ({**SIMPLE, "actions": [{"name": " "}]}, 400, "actions has to be an array"),
    ({**SIMPLE, "groups": {"g": {"stream": "s"}}}, 404, "group g without soIds or stream"),
    ({**SIMPLE, "groups": {"g": {"soIds": ["x"]}}}, 404, "group g without soIds or stream"),
    (
        {**SIMPLE, "groups": {"g": {"soIds": ["x"], "stream": "s"}}},
        400,
        "The Service Object: x does not exist.",
    ),
    ({**SIMPLE, "dataTTL": "1"}, 400, "dataTTL has to be an integer"),
    ({**SIMPLE, "dataTTL": 5_184_000}, 201, ""),
    # Names that mean something to JavaScript, or to a URL.
    (channel({"type": "number"}, "__proto__"), 201, ""),
    ({"streams": {"constructor": {"channels": {}}, "toString": {"channels": {}}}}, 201, ""),
    ({"streams": {"a/b": {"channels": {}}}}, 400, "stream name"),
    ({"streams": {"'; DROP TABLE streams; --": {"channels": {}}}}, 201, ""),
]


@pytest.mark.parametrize(("body", "status", "message"), CREATION)
def test_creating(body: Any, status: int, message: str, alice: Caller) -> None:
    content = body if isinstance(body, bytes) else orjson.dumps(body)

    answer = alice.ask("POST", "/", data=content)

    assert answer.status_code == status
    assert answer.get_json().get("message", "").startswith(message)


def value(content: Any, name: str = "n", at: Any = 1) -> dict[str, Any]:
    return {"channels": {name: {"current-value": content}}, "lastUpdate": at}


UPDATES: list[tuple[Any, int, str]] = [
    (value(1), 202, ""),
    (value(-68, at=1_401_819_725), 202, ""),
    (value(1, at=1_401_819_725_000), 202, ""),
    (value(1, at=0), 202, ""),
    ({"channels": {"n": {"current-value": 1}}}, 400, "The lastUpdate field was not found"),
    (value(1, at=1.0), 400, "The lastUpdate has to be a long type"),
    (value(1, at="1"), 400, "The lastUpdate has to be a long type"),
    (value(1, at=-1), 400, "The lastUpdate has to be a long type"),
    (value(1, at=2**63), 400, "The lastUpdate has to be a long type"),
    (value(1, at=253_402_300_799_000), 400, "The lastUpdate 253402300799000 is more than"),
    ({"lastUpdate": 1}, 400, "No channels"),
    ({"channels": {}, "lastUpdate": 1}, 400, "No channels"),
    ({"channels": {"n": {}}, "lastUpdate": 1}, 400, "channel n without current-value"),
    (value({"a": 1}), 400, "current-value cannot be an Object. channel: n"),
    (value(1, "x"), 400, "The Service Object Stream does not have a channel: x"),
    (
        value(1, "__proto__"),
        400,
        "The Service Object Stream does not have a channel: __proto__",
    ),
    (value("1"), 400, "The Service Object stream channel n data type does not match"),
    (value(True), 400, "The Service Object stream channel n data type does not match"),
    (value([1]), 400, "The Service Object stream channel n data type does not match"),
    (value(None), 400, "The Service Object stream channel n data type does not match"),
    (value(1, "t"), 400, "The Service Object stream channel t data type does not match"),
    (value("", "t"), 202, ""),
    (value(1, "b"), 400, "The Service Object stream channel b data type does not match"),
    (value(False, "b"), 202, ""),
    (value("41.38,2.11", "location"), 202, ""),
    (value(" 41.38 , 2.11 ", "location"), 202, ""),
    (value("u0m", "location"), 202, ""),
    (value([2.11, 41.38], "location"), 202, ""),
    (value([2.11, 91], "location"), 400, "The Service Object stream channel location"),
    (value({"lat": 1, "lon": 2}, "location"), 400, "current-value cannot be an Object"),
    (value("nowhere!", "location"), 400, "The Service Object stream channel location"),
    ({**value(1), "unit": "x", "extra": {"kept": True}}, 202, ""),
]


@pytest.mark.parametrize(("body", "status", "message"), UPDATES)
def test_sending(body: Any, status: int, message: str, alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    answer = alice.ask("PUT", f"/{so}/streams/data", data=orjson.dumps(body))

    assert answer.status_code == status
    if status == 202:
        assert answer.get_json() == body
    else:
        assert answer.get_json()["message"].startswith(message)


# Of one Service Object with one update stored: what each route answers to its owner.
ROUTES: list[tuple[str, str, int, str | None]] = [
    ("GET", "/", 200, None),
    ("HEAD", "/", 200, None),
    ("GET", "/unknown", 404, "The Service Object was not found."),
    ("PUT", "/unknown", 404, "The Service Object was not found."),
    ("DELETE", "/unknown", 404, "The Service Object was not found."),
    ("GET", "/{so}/streams", 200, None),
    ("GET", "/{so}/streams/", 200, None),
    ("GET", "/{so}/streams/data", 200, None),
    ("GET", "/{so}/streams/data/", 200, None),
    ("GET", "/{so}/streams/data/lastUpdate", 200, None),
    ("GET", "/{so}/streams/nothing", 404, "This Service Object does not have this stream."),
    ("PUT", "/{so}/streams/nothing", 404, "This Service Object does not have this stream."),
    ("PATCH", "/{so}/streams/data", 405, "Method not allowed. Check the documentation"),
    ("GET", "/{so}/streams/data/subscriptions", 200, None),
    ("POST", "/{so}/streams/data/subscriptions", 400, "No callback in the request"),
    ("GET", "/subscriptions/unknown", 404, "The Subscription was not found."),
    ("DELETE", "/subscriptions/unknown", 404, "The Subscription was not found."),
    ("POST", "/{so}/streams/data/search", 200, None),
    ("GET", "/{so}/actuations", 200, None),
    ("DELETE", "/{so}/streams/data", 204, None),
    ("DELETE", "/{so}", 204, None),
]


@pytest.mark.parametrize(("method", "path", "status", "message"), ROUTES)
def test_asking(
    method: str, path: str, status: int, message: str | None, served: Served, alice: Caller
) -> None:
    so = alice.create(DOCUMENT)
    alice.ask("PUT", f"/{so}/streams/data", data=orjson.dumps(value(1)))
    served.store()

    answer = alice.ask(method, path.format(so=so), json={})

    assert answer.status_code == status
    if message is not None:
        assert answer.get_json()["message"] == message


def test_a_document_comes_back_without_what_is_private(alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    found = alice.ask("GET", f"/{so}").get_json()

    assert {each: found[each] for each in ("URL", "iserveAnnotation", "customFields")} == {
        "URL": "x",
        "iserveAnnotation": [1],
        "customFields": {"k": 1},
    }
    assert "userId" not in found
    assert found["streams"] == DOCUMENT["streams"]
    # Real documents write "True", which the original took for private.
    assert found["public"] == "false"


def test_streams_are_an_array_with_their_names(alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    assert alice.ask("GET", f"/{so}/streams").get_json() == {
        "streams": [{"name": "data", "channels": CHANNELS, "description": "d", "type": "sensor"}]
    }
