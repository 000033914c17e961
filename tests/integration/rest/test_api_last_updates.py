"""The last updates of many streams come in one answer, in the order of the question."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from histories import store_documents
from werkzeug.test import TestResponse

from api.resources import last_updates


def asked(caller: Caller, streams: Any, query: str = "") -> TestResponse:
    body = orjson.dumps({"streams": streams})
    return caller.ask("POST", f"/lastUpdates{query}", data=body)


def named(so: str, stream: str = "a") -> dict[str, str]:
    return {"serviceObject": so, "stream": stream}


def update(value: int) -> dict[str, Any]:
    return {"channels": {"x": {"current-value": value}}, "lastUpdate": value}


def test_each_stream_has_an_entry_in_its_place(served: Served, alice: Caller, bob: Caller) -> None:
    """What does not exist and what is another's private one are told alike."""
    full, empty, private = alice.create(), alice.create(), bob.create()
    public = bob.create(SIMPLE | {"public": True})
    for so in (full, private, public):
        store_documents(served, so, [orjson.dumps(update(n)) for n in (0, 1)])
    question = [
        named(public),
        named(private),
        named(empty),
        named(full),
        named(full, "none"),
        named("none"),
        named(full),
    ]

    answer = asked(alice, question)

    told = [
        {"update": update(1)},
        {"status": 404},
        {"update": None},
        {"update": update(1)},
        {"status": 404},
        {"status": 404},
        {"update": update(1)},
    ]
    expected = [q | t for q, t in zip(question, told, strict=True)]
    assert (answer.status_code, answer.get_json()) == (200, {"data": expected})


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_an_answer_in_pages_reads_as_one(
    count: int, served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_updates, "AT_ONCE", 2)
    so = alice.create()
    store_documents(served, so, [orjson.dumps(update(0))])

    answer = asked(alice, [named(so)] * count)

    assert answer.get_json() == {"data": [named(so) | {"update": update(0)}] * count}


def test_versions_are_told_to_who_asks(served: Served, alice: Caller) -> None:
    so = alice.create()
    store_documents(served, so, [orjson.dumps(update(0))])

    answer = asked(alice, [named(so)], "?versions=true")

    assert answer.get_json()["data"][0]["update"]["version"] == 1


def test_it_waits_for_every_partition_that_it_reads(served: Served, alice: Caller) -> None:
    """Nobody stores here: the header says that something is missing."""
    objects = [alice.create() for _ in range(2)]
    served.store()
    assert "X-Servioticy-Behind" not in asked(alice, [named(so) for so in objects]).headers

    alice.put(objects[1])

    behind = asked(alice, [named(so) for so in objects]).headers["X-Servioticy-Behind"]
    assert behind == "1"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"{}", ""),
        (b'{"streams":{}}', "/streams"),
        (b'{"streams":[1]}', "/streams/0"),
        (b'{"streams":[{"serviceObject":"a"}]}', "/streams/0"),
        (b'{"streams":[{"serviceObject":"a","stream":null}]}', "/streams/0"),
        (b"[]", ""),
        (b"\xff", ""),
        (b'{"streams":[NaN]}', ""),
    ],
)
def test_what_names_no_streams_is_refused(body: bytes, pointer: str, alice: Caller) -> None:
    answer = alice.ask("POST", "/lastUpdates", data=body)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


def test_streams_are_counted(alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_updates, "MAX_STREAMS", 2)

    answers = [asked(alice, [named("a")] * count) for count in (2, 3)]

    assert [each.status_code for each in answers] == [200, 400]
    assert answers[1].get_json()["pointer"] == "/streams"
