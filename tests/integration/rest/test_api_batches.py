"""Many updates in one request: each is accepted or refused by itself, and kept in order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_builders import NOW, Caller, Served
from werkzeug.test import TestResponse

from api.http.quotas import Quotas
from servioticy.domain.batches import items
from servioticy.domain.quotas import Exceeded, quotas
from servioticy.domain.records import UpdateRecord
from servioticy.settings import Settings

TWO = {
    "streams": {
        "a": {"channels": {"x": {"type": "number"}, "on": {"type": "boolean"}}},
        "b": {"channels": {"t": {"type": "string"}}},
    }
}
NDJSON, CSV, SENML = "application/x-ndjson", "text/csv", "application/senml+json"


def update(at: Any, value: Any = 1) -> dict[str, Any]:
    return {"channels": {"x": {"current-value": value}}, "lastUpdate": at}


def named(so: str, stream: str, at: int) -> dict[str, Any]:
    return {"serviceObject": so, "stream": stream, "update": update(at)}


def post(caller: Caller, path: str, body: Any, content_type: str = "") -> TestResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": content_type} if content_type else {}
    return caller.ask("POST", path, data=data, headers=headers)


def taken(served: Served) -> list[tuple[str, str, Any]]:
    """What stands in the log: service object, stream, and the update."""
    return [
        (record.service_object, record.stream, json.loads(bytes(record.update)))
        for partition in range(served.platform.log.partitions())
        for _, record in served.platform.records(partition)
        if isinstance(record, UpdateRecord)
    ]


def test_a_batch_is_in_the_log_in_its_order(served: Served, alice: Caller) -> None:
    """Older ones too: all are stored, and each is evaluated by itself."""
    so = alice.create(TWO)

    answer = post(alice, f"/{so}/streams/a/updates", [update(3), update(1), update(2)])

    assert (answer.status_code, answer.data) == (202, b'{"accepted":3,"refused":0}')
    assert taken(served) == [(so, "a", update(n)) for n in (3, 1, 2)]


def test_what_is_wrong_is_told_by_its_place_and_the_rest_is_accepted(
    served: Served, alice: Caller
) -> None:
    so = alice.create(TWO)
    batch = [update(1), update(2, "text"), 7, update(-1), update(5), {"lastUpdate": 6}]

    answer = post(alice, f"/{so}/streams/a/updates", batch)

    assert answer.status_code == 207
    body = answer.get_json()
    assert (body["accepted"], body["refused"]) == (2, 4)
    told = [(i["index"], i["status"], i["pointer"], i["code"]) for i in body["items"]]
    assert told == [
        (1, 400, "/channels/x/current-value", "wrong-type"),
        (2, 400, "", "wrong-type"),
        (3, 400, "/lastUpdate", "wrong-type"),
        (5, 400, "", "required"),
    ]
    assert "x" in body["items"][0]["message"]
    assert [each["lastUpdate"] for _, _, each in taken(served)] == [1, 5]


def test_a_batch_may_be_for_many_streams(served: Served, alice: Caller, bob: Caller) -> None:
    """What does not exist and what is another tenant's is told alike."""
    one, two, bobs = alice.create(TWO), alice.create(TWO), bob.create(TWO | {"public": True})
    batch = [
        named(one, "a", 1),
        named(two, "a", 2),
        named(bobs, "a", 3),
        named("nothing", "a", 4),
        named(one, "none", 5),
        named(one, "\0", 6),
        named(one, "a", 7),
        named(one, "b", 8),
        {"stream": "a", "update": update(9)},
        {"serviceObject": 1, "stream": "a", "update": update(10)},
    ]

    answer = post(alice, "/updates", batch)

    body = answer.get_json()
    assert answer.status_code == 207
    told = {each["index"]: (each["status"], each["code"]) for each in body["items"]}
    unknown = (404, "unknown-stream")
    assert told == dict.fromkeys((2, 3, 4, 5), unknown) | {
        7: (400, "unknown-channel"),
        8: (400, "required"),
        9: (400, "wrong-type"),
    }
    assert body["items"][0]["message"] == body["items"][1]["message"]
    assert sorted((so, u["lastUpdate"]) for so, _, u in taken(served)) == sorted(
        [(one, 1), (two, 2), (one, 7)]
    )


def test_lines_of_json(served: Served, alice: Caller) -> None:
    so = alice.create(TWO)
    body = b"\n\r\n".join(json.dumps(each).encode() for each in (update(1), update(2))) + b"\n{"

    answer = post(alice, f"/{so}/streams/a/updates", body, NDJSON)

    assert answer.status_code == 207
    assert [each["index"] for each in answer.get_json()["items"]] == [3]
    assert [each for _, _, each in taken(served)] == [update(1), update(2)]


def test_csv_of_one_stream(served: Served, alice: Caller) -> None:
    """An empty cell is a channel that the update does not have."""
    so = alice.create(TWO)
    body = b"\xef\xbb\xbflastUpdate,on,x\r\n1,true,1.5\r\n2,,2\r\n3,yes,1\r\n4,true\r\n"

    answer = post(alice, f"/{so}/streams/a/updates", body, "text/csv; charset=utf-8")

    assert answer.status_code == 207
    assert [(i["index"], i["pointer"], i["code"]) for i in answer.get_json()["items"]] == [
        (2, "/channels/on/current-value", "wrong-type"),
        (3, "", "not-csv"),
    ]
    both = {"on": {"current-value": True}, "x": {"current-value": 1.5}}
    assert [each for _, _, each in taken(served)] == [
        {"channels": both, "lastUpdate": 1},
        update(2, 2),
    ]


def test_csv_of_many_streams(served: Served, alice: Caller) -> None:
    """Text is itself, with comma, quote and line end."""
    so = alice.create(TWO)
    body = f'stream,lastUpdate,serviceObject,t,x\nb,1,{so},"a ""b"",\n1",\na,2,{so},,3\n'

    answer = post(alice, "/updates", body.encode(), CSV)

    assert answer.status_code == 202
    text = {"channels": {"t": {"current-value": 'a "b",\n1'}}, "lastUpdate": 1}
    assert sorted(taken(served)) == [(so, "a", update(2, 3)), (so, "b", text)]


def test_senml_of_one_stream(served: Served, alice: Caller) -> None:
    """Base fields hold for what follows; records of one time are one update."""
    so = alice.create(TWO)
    batch = [
        {"bn": "urn:dev:ow:1:", "bt": 1.4e9, "bu": "Cel", "n": "x", "v": 20},
        {"n": "on", "vb": True},
        {"n": "x", "v": 21.5, "t": 1},
        {"n": "x", "v": 1, "t": 0.5},
        {"n": "x", "vs": "text", "t": 3},
        {"n": "x", "v": 1, "must_": 1},
        {"n": "x"},
    ]

    answer = post(alice, f"/{so}/streams/a/updates", batch, SENML)
    finer = post(alice, f"/{so}/streams/a/updates?timestamps=ms", batch[:4], SENML)

    assert (answer.status_code, finer.status_code) == (207, 202)
    assert [(i["index"], i["code"]) for i in answer.get_json()["items"]] == [
        (3, "wrong-type"),
        (4, "wrong-type"),
        (5, "wrong-type"),
        (6, "required"),
    ]
    first = {
        "x": {"current-value": 20, "unit": "Cel"},
        "on": {"current-value": True, "unit": "Cel"},
    }
    updates = [each for _, _, each in taken(served)]
    assert updates[0] == {"channels": first, "lastUpdate": 1_400_000_000}
    times = [each["lastUpdate"] for each in updates]
    assert times[:2] == [1_400_000_000, 1_400_000_001]
    assert times[2:] == [1_400_000_000_000, 1_400_000_001_000, 1_400_000_000_500]


def test_senml_of_many_streams_and_relative_times(served: Served, alice: Caller) -> None:
    """A small time counts from now on (RFC 8428, 4.5.3), no time at all is now."""
    so = alice.create(TWO)
    batch = [
        {"bn": f"{so}/", "n": "a/x", "v": 1},
        {"n": "b/t", "vs": "text", "t": -5},
        {"n": "a", "v": 1},
    ]

    answer = post(alice, "/updates", batch, SENML)

    assert [i["code"] for i in answer.get_json()["items"]] == ["bad-name"]
    assert sorted((stream, each["lastUpdate"]) for _, stream, each in taken(served)) == [
        ("a", int(NOW)),
        ("b", int(NOW) - 5),
    ]


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"[", "", "not-json"),
        (b"[1,]", "", "not-json"),
        (b"{}", "", "wrong-type"),
        (b"\xef\xbb\xbf[]", "", "not-json"),
        (b"\xff\xfe[\0]\0", "", "not-json"),
        (b"[" * 15_000, "", "not-json"),
        (b"1", SENML, "wrong-type"),
        (b"[", SENML, "not-json"),
        (b"lastUpdate,x,x\n1,1,1", CSV, "duplicate"),
        (b"x\n1", CSV, "required"),
        (b'lastUpdate,x\n1,"2', CSV, "not-csv"),
        (b"lastUpdate,x\n1,\xff", CSV, "not-csv"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_as_a_whole(
    body: bytes, content_type: str, code: str, served: Served, alice: Caller
) -> None:
    so = alice.create(TWO)

    answer = post(alice, f"/{so}/streams/a/updates", body, content_type)

    assert answer.status_code == 400, answer.text
    assert answer.get_json()["code"] in (code, "too-nested")
    assert taken(served) == []


@pytest.mark.parametrize(
    ("content_type", "more"),
    [
        ("application/x-www-form-urlencoded", {}),
        ("multipart/form-data; boundary=x", {}),
        ("application/xml", {}),
        ("text/plain", {}),
        ("application/json; charset=utf-16", {}),
        ("nonsense", {}),
        ("application/json", {"Content-Encoding": "gzip"}),
    ],
)
def test_other_content_types_are_told_what_is_taken(
    content_type: str, more: dict[str, str], alice: Caller
) -> None:
    so = alice.create(TWO)
    headers = {"Content-Type": content_type} | more

    answer = alice.ask("POST", f"/{so}/streams/a/updates", data=b"[]", headers=headers)

    assert answer.status_code == 415


HOSTILE: list[bytes] = [
    b"[]",
    b"[NaN]",
    b"[{}]",
    b"[null,true,[],1e400,-0]",
    b'["\\ud800"]',
    b"[\xff]",
    b'[{"channels":{"x":{"current-value":1e400}},"lastUpdate":1}]',
    b'[{"channels":{"x":{"current-value":' + b"9" * 10_000 + b'}},"lastUpdate":1}]',
    b'[{"channels":{"x":{"current-value":"1"}},"lastUpdate":1}]',
    b'[{"channels":{"__proto__":{"current-value":1}},"lastUpdate":1}]',
    b'[{"channels":{"constructor":{"current-value":1}},"lastUpdate":1.5}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":9223372036854775808}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":"1"}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":253402300799000}]',
    b'[{"a":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001 + b"]",
    b'[{"serviceObject":"\' OR 1=1 --","stream":"%","update":{}}]',
    b'[{"serviceObject":"../x","stream":"a\\u0000","update":{}}]',
    b'[{"serviceObject":"x","stream":"\\ud800","update":{}}]',
    b'[{"serviceObject":"' + b"x" * 10_000 + b'","stream":"a","update":1}]',
]


@pytest.mark.parametrize("content_type", ["application/json", NDJSON, CSV, SENML])
@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_hostile_batches_are_refused_and_leave_nothing(
    body: bytes, content_type: str, many: bool, served: Served, alice: Caller
) -> None:
    """Each in every form, whatever it is meant to be."""
    so = alice.create(TWO)

    answer = post(alice, "/updates" if many else f"/{so}/streams/a/updates", body, content_type)

    assert answer.status_code in (202, 207, 400)
    assert answer.status_code == 400 or answer.get_json()["accepted"] == 0
    assert taken(served) == []


def test_items_and_streams_of_a_batch_are_counted(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    so = alice.create(TWO)
    monkeypatch.setattr(items, "MAX_ITEMS", 3)
    monkeypatch.setattr(items, "MAX_STREAMS", 2)

    def one(count: int) -> int:
        batch = [update(n) for n in range(count)]
        return post(alice, f"/{so}/streams/a/updates", batch).status_code

    def many(count: int) -> int:
        return post(alice, "/updates", [named(so, f"{n}", 1) for n in range(count)]).status_code

    assert (one(3), one(4), many(2), many(3)) == (202, 400, 207, 400)


def test_a_batch_that_the_broker_does_not_take_is_not_accepted(
    served: Served, alice: Caller
) -> None:
    so = alice.create(TWO)
    served.platform.state.broker_answers = False

    answer = post(alice, f"/{so}/streams/a/updates", [update(1)])

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_a_batch_counts_as_its_updates_and_more(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand short updates cost more than one long one."""
    so = alice.create(TWO)
    sizes: list[int] = []

    def used_up(_self: Quotas, _tenant: int, number: int, size: int) -> Exceeded:
        assert number == 2
        sizes.append(size)
        return Exceeded(quotas(Settings())["update-bytes"], 1)

    monkeypatch.setattr(Quotas, "send", used_up)

    answer = post(alice, f"/{so}/streams/a/updates", [update(1), update(2), 7])

    document = len(json.dumps(update(1), separators=(",", ":")))
    assert (answer.status_code, sizes) == (429, [2 * (document + 64)])
    assert answer.headers["Retry-After"] == "1"
    assert taken(served) == []


@pytest.mark.parametrize("path", ["/{so}/streams/none/updates", "/none/streams/a/updates"])
def test_an_unknown_stream_is_not_found(path: str, alice: Caller) -> None:
    so = alice.create(TWO)

    assert post(alice, path.format(so=so), [update(1)]).status_code == 404


def test_only_the_owner_sends(served: Served, alice: Caller, bob: Caller) -> None:
    so = alice.create(TWO | {"public": True})

    answer = post(bob, f"/{so}/streams/a/updates", [update(1)])

    assert answer.status_code == 401
    assert post(Caller(bob.client, ""), "/updates", []).status_code == 403
    assert taken(served) == []
