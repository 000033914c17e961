"""Aggregates say of each bucket what its updates say."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import Caller, Served
from histories import store_documents

from api.resources import aggregates

MIXED = {
    "streams": {
        "a": {
            "channels": {
                "x": {"type": "number"},
                "on": {"type": "boolean"},
                "t": {"type": "string"},
            }
        }
    }
}


def document(at: int, **values: Any) -> bytes:
    channels = {name: {"current-value": value} for name, value in values.items()}
    return orjson.dumps({"channels": channels, "lastUpdate": at})


def store_values(served: Served, so: str, values: list[Any], first: int = 0) -> None:
    documents = [document(first + n, x=value) for n, value in enumerate(values)]
    store_documents(served, so, documents, first)


def asked(caller: Caller, so: str, query: str) -> Any:
    answer = caller.ask("GET", f"/{so}/streams/a/aggregates?{query}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


def test_each_function_of_each_bucket(served: Served, alice: Caller) -> None:
    """Large whole numbers come back exactly where they are not computed with."""
    so = alice.create(MIXED)
    store_values(served, so, [5, 1, 3, -2.5, 9007199254740993], first=7)

    data = asked(alice, so, "channel=x&bucket=5")

    assert data == [
        {"start": 5, "count": 3, "min": 1, "max": 5, "mean": 3, "first": 5, "last": 3},
        {
            "start": 10,
            "count": 2,
            "min": -2.5,
            "max": pytest.approx(9007199254740993),
            "mean": pytest.approx(4503599627370495.25),
            "first": -2.5,
            "last": 9007199254740993,
        },
    ]


def test_what_does_not_fit_the_channel_is_left_out(served: Served, alice: Caller) -> None:
    """An update without the channel, and one of a version in which it was text."""
    so = alice.create(MIXED)
    documents = [document(0, x=1), document(1, t="a"), document(2, x="2"), document(3, x=None)]
    store_documents(served, so, documents)

    data = asked(alice, so, "channel=x&bucket=10&functions=count,mean,last")

    assert data == [{"start": 0, "count": 1, "mean": 1, "last": 1}]
    assert asked(alice, so, "channel=x&bucket=1&from=1&to=3") == []


def test_other_types_have_their_functions(served: Served, alice: Caller) -> None:
    so = alice.create(MIXED)
    store_documents(served, so, [document(n, on=n > 0, t="a") for n in range(3)])

    assert asked(alice, so, "channel=on&bucket=9") == [
        {"start": 0, "count": 3, "first": False, "last": True}
    ]
    assert asked(alice, so, "channel=t&bucket=2") == [
        {"start": 0, "count": 2},
        {"start": 2, "count": 1},
    ]


def test_empty_buckets_are_filled_as_far_as_the_request_says(
    served: Served, alice: Caller
) -> None:
    so = alice.create(MIXED)
    store_documents(served, so, [document(20, x=2)], 20)
    store_documents(served, so, [document(40, x=4)], 40)
    question = "channel=x&bucket=10&functions=mean"

    def means(query: str) -> list[tuple[int, Any]]:
        return [(each["start"], each["mean"]) for each in asked(alice, so, question + query)]

    assert means("") == [(20, 2), (40, 4)]
    assert means("&from=0&to=60") == [(20, 2), (40, 4)]
    assert means("&fill=linear") == [(20, 2), (30, 3), (40, 4)]
    assert means("&fill=null&from=10&to=55") == [
        (10, None),
        (20, 2),
        (30, None),
        (40, 4),
        (50, None),
    ]
    assert means("&fill=previous&to=55")[-1] == (50, 4)
    assert asked(alice, so, question + "&fill=null&from=100&to=120") == []


def test_a_width_with_a_suffix_needs_the_unit(served: Served, alice: Caller) -> None:
    so = alice.create(MIXED)
    store_documents(served, so, [document(3_599, x=1)], 3_599)
    store_documents(served, so, [document(3_600, x=2)], 3_600)

    seconds = asked(alice, so, "channel=x&bucket=1h&timestamps=s&functions=count")
    milliseconds = asked(alice, so, "channel=x&bucket=1h&timestamps=ms&functions=count")

    assert seconds == [{"start": 0, "count": 1}, {"start": 3_600, "count": 1}]
    assert milliseconds == [{"start": 0, "count": 2}]


@pytest.mark.parametrize(
    "query",
    [
        "bucket=1",
        "channel=none&bucket=1",
        "channel=%00&bucket=1",
        "channel=x'%20OR%201=1&bucket=1",
        "channel=__proto__&bucket=1",
        "channel=x",
        "channel=x&bucket=0",
        "channel=x&bucket=1h",
        "channel=x&bucket=1&timestamps=years",
        "channel=x&bucket=1&functions=",
        "channel=x&bucket=1&functions=median",
        "channel=on&bucket=1&functions=mean",
        "channel=t&bucket=1&functions=last",
        "channel=on&bucket=1&fill=linear",
        "channel=x&bucket=1&fill=zero",
        "channel=x&bucket=1&from=2&to=1",
        "channel=x&bucket=1&from=-1",
    ],
)
def test_nonsense_is_refused(query: str, alice: Caller) -> None:
    so = alice.create(MIXED)

    assert alice.ask("GET", f"/{so}/streams/a/aggregates?{query}").status_code == 400


def test_buckets_and_what_is_read_for_them_are_bounded(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first update stored to the last; the span asked for may be a hundred years."""
    so = alice.create(MIXED)
    store_values(served, so, [1, 2, 3, 4])
    monkeypatch.setattr(aggregates, "MAX_BUCKETS", 3)

    def status(query: str) -> int:
        path = f"/{so}/streams/a/aggregates?channel=x&{query}"
        return alice.ask("GET", path).status_code

    assert (status("bucket=1"), status("bucket=2")) == (400, 200)
    assert status("bucket=2&from=0&to=3153600000000") == 200
    assert status("bucket=2&from=0&to=3153600000000&fill=null") == 400
    monkeypatch.setattr(aggregates, "MAX_UPDATES", 3)
    assert (status("bucket=2"), status("bucket=2&to=2")) == (400, 200)


def test_only_what_is_public_is_shown_to_others(alice: Caller, bob: Caller) -> None:
    private, public = alice.create(MIXED), alice.create(MIXED | {"public": True})

    def status(so: str) -> int:
        return bob.ask("GET", f"/{so}/streams/a/aggregates?channel=x&bucket=1").status_code

    assert (status(private), status(public), status("none")) == (401, 200, 404)


def test_a_nul_that_is_stored_hides_no_number(served: Served, alice: Caller) -> None:
    """Outputs may have one, and what earlier releases took; the store refuses to look into it."""
    so = alice.create(MIXED)
    texts = ["a\0", "\\u0000", "b"]
    documents = [document(n, x=n, t=text, on=True) for n, text in enumerate(texts)]
    store_documents(served, so, documents, 0)

    assert asked(alice, so, "channel=x&bucket=10") == [
        {"start": 0, "count": 3, "min": 0, "max": 2, "mean": 1, "first": 0, "last": 2}
    ]
    assert asked(alice, so, "channel=t&bucket=10&functions=count") == [{"start": 0, "count": 3}]


def test_a_nul_behind_the_question_mark_is_refused(alice: Caller) -> None:
    so = alice.create(MIXED)

    answer = alice.ask("GET", f"/{so}/streams/a/aggregates?channel=x%00&bucket=10")

    assert answer.status_code == 400
    assert "NUL" in answer.text and "channel" in answer.text
