"""What is odd about a batch is told as with a single PUT, once of each kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_builders import NOW, Caller
from update_batches import CSV, NDJSON, SENML, post

ROOM = {"streams": {"a": {"channels": {"x": {"type": "number", "unit": "C"}}}}}


def odd(at: int, unit: str = "F") -> dict[str, Any]:
    return {"channels": {"x": {"current-value": 1, "unit": unit}}, "lastUpdate": at}


def senml(unit: str) -> bytes:
    return json.dumps([{"n": "x", "v": 1, "u": unit, "t": 1.4e9}]).encode()


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (json.dumps([odd(1)]).encode(), ""),
        (json.dumps(odd(1)).encode(), NDJSON),
        (b'lastUpdate,x,/more\n1,1,"{""channels"":{""x"":{""unit"":""F""}}}"\n', CSV),
        (senml("F"), SENML),
    ],
    ids=["array", "lines", "csv", "senml"],
)
def test_another_unit_is_told_whatever_form_a_batch_has(
    alice: Caller, body: bytes, form: str
) -> None:
    so = alice.create(ROOM)

    answer = post(alice, f"/{so}/streams/a/updates", body, form)

    assert (answer.status_code, answer.data) == (202, b'{"accepted":1,"refused":0}')
    assert "update 0: channel x is in C, and this value came in F" in answer.headers["Warning"]


@pytest.mark.parametrize("unit", ["Cel", "C", "degC", "\N{DEGREE SIGN}C"])
def test_another_word_for_the_same_unit_is_none(alice: Caller, unit: str) -> None:
    """SenML has one name for each; who declares C and sends Cel has done nothing wrong."""
    so = alice.create(ROOM)

    answer = post(alice, f"/{so}/streams/a/updates", [odd(1, unit)])

    assert "Warning" not in answer.headers


def test_a_hundred_alike_are_one_warning(alice: Caller) -> None:
    so = alice.create(ROOM)
    now = int(NOW)

    many = [odd(now * 1000), *[odd(now + n) for n in range(1, 100)]]
    answer = post(alice, f"/{so}/streams/a/updates", many)

    assert answer.status_code == 202, answer.data[:300]
    of_units, of_times = answer.headers["Warning"].split(", 299 ")
    assert of_units.startswith('299 - "update 0: channel x is in C')
    assert of_units.endswith('(100 updates)"')
    assert f"update 1: lastUpdate {now + 1} is in seconds" in of_times
    assert "(99 updates)" in of_times


def test_what_is_refused_is_told_there_and_not_warned_of(alice: Caller) -> None:
    """Also of many streams: the place says which."""
    so = alice.create(ROOM)
    named = [{"serviceObject": so, "stream": "a", "update": each} for each in (odd(-1), odd(2))]

    answer = post(alice, "/updates", named)

    assert answer.status_code == 207
    assert [each["index"] for each in answer.get_json()["items"]] == [0]
    assert answer.headers["Warning"].startswith('299 - "update 1: channel x')


def test_an_answer_given_again_has_its_warning(alice: Caller) -> None:
    so = alice.create(ROOM)
    path, body = f"/{so}/streams/a/updates", json.dumps([odd(1)]).encode()

    first, second = (
        alice.ask("POST", path, data=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
    )

    assert second.headers["Warning"] == first.headers["Warning"]
