"""Many updates in one request: each is accepted or refused by itself, and kept in order."""

from __future__ import annotations

import json

from api_builders import NOW, Caller, Served
from update_batches import CSV, NDJSON, SENML, TWO, named, post, taken, update


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
