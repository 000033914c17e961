"""What became of one update, told of what the pipeline has stored of its tree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import CHANNEL, composite

from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict


class Stored:
    """What a pipeline would have stored."""

    def __init__(self, served: Served) -> None:
        self._served = served
        served.store()

    def update(self, so: str, stream: str, at: int, size: int = 0) -> None:
        text = {"channels": {"v": {"current-value": "x" * size or at}}, "lastUpdate": at}
        row = StoredUpdate(
            *self._served.platform.stream(so, stream), at, json.dumps(text).encode(), 1, 0, 0
        )
        self._store(updates=[row])

    def verdict(self, so: str, stream: str, verdict: str, **last: Any) -> None:
        key = self._served.platform.stream(so, stream)
        row = StoredVerdict(*key, verdict, 1, json.dumps({"version": 1, **last}).encode())
        self._store(verdicts=[row])

    def _store(self, **rows: Any) -> None:
        store = self._served.platform.store
        offset = store.begin(0).next_offset
        store.store(Batch(0, offset, offset + 1, offset, **rows))
        store.end(0)


def chain(caller: Caller) -> str:
    """`a` leads to `b`, `b` and `a` to `c`, which reads `z`, too."""
    streams: dict[str, Any] = {"a": {"channels": {"x": CHANNEL}}, "z": {"channels": {}}}
    for name, reads in (("b", "a"), ("c", "a,b,z")):
        code = {**CHANNEL, "current-value": f"function({reads}){{}}"}
        streams[name] = {"channels": {"v": code}}
    return caller.create({"version": "0.2.0", "streams": streams})


def traced(caller: Caller, so: str, stream: str = "a", at: Any = 9) -> Any:
    answer = caller.ask("GET", f"/{so}/streams/{stream}/trace?timestamp={at}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def shown(trace: Any) -> list[tuple[Any, ...]]:
    return [
        (each["stream"].partition("/")[2], each["as"], each["verdict"], each["known"])
        for each in trace["steps"]
    ]


def test_what_was_computed_last_is_told_with_what_it_read(served: Served, alice: Caller) -> None:
    so = chain(alice)
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.update(so, "b", 9)
    stored.verdict(so, "b", "emitted", trigger=f"{so}/a", timestamp=9, inputs={"a": 9})
    stored.verdict(
        so,
        "c",
        "filtered",
        trigger=f"{so}/b",
        timestamp=9,
        message="the value of v is null",
        inputs={"a": 9, "b": 9, "z": 4},
    )

    trace = traced(alice, so)

    assert (trace["stream"], trace["lastUpdate"], trace["version"]) == (f"{so}/a", 9, 1)
    assert trace["channels"] == {"v": {"current-value": 9}}
    assert shown(trace) == [
        ("b", "a", "emitted", "noted"),
        ("c", "a", None, "open"),
        ("c", "b", "filtered", "noted"),
    ]
    first, _, last = trace["steps"]
    assert first["lastUpdate"] == 9
    assert last["message"] == "the value of v is null"
    assert [(each["as"], each["age"]) for each in last["inputs"]] == [("a", 0), ("b", 0), ("z", 5)]


def test_of_what_is_older_the_history_tells_outputs_and_what_they_read(
    served: Served, alice: Caller
) -> None:
    so = chain(alice)
    stored = Stored(served)
    for stream, at in (("z", 3), ("z", 11), ("a", 9), ("a", 20), ("b", 9), ("c", 9)):
        stored.update(so, stream, at)
    stored.verdict(so, "b", "emitted", trigger=f"{so}/a", timestamp=20, inputs={"a": 20})

    trace = traced(alice, so)

    assert shown(trace) == [
        ("b", "a", "emitted", "stored"),
        ("c", "a", "emitted", "stored"),
        ("c", "b", "stale", "rule"),
    ]
    (inputs,) = (
        each["inputs"]
        for each in trace["steps"]
        if each["as"] == "a" and each["depth"] == 1 and each["stream"].endswith("/c")
    )
    assert {each["as"]: each["lastUpdate"] for each in inputs} == {"a": 9, "b": 9, "z": 3}
    assert {each["as"]: each["age"] for each in inputs}["z"] == 6


def test_what_another_path_is_known_to_have_made_is_not_told_of_the_first(
    served: Served, alice: Caller
) -> None:
    """Both paths are as long, and what the first came to is not stored any more."""
    streams: dict[str, Any] = {"a": {"channels": {"x": CHANNEL}}}
    for name, reads in (("b", "a"), ("c", "a"), ("d", "b,c")):
        code = {**CHANNEL, "current-value": f"function({reads}){{}}"}
        streams[name] = {"channels": {"v": code}}
    so = alice.create({"version": "0.2.0", "streams": streams})
    stored = Stored(served)
    for stream in "abcd":
        stored.update(so, stream, 9)
    stored.verdict(so, "d", "emitted", trigger=f"{so}/c", timestamp=9, inputs={"b": 9, "c": 9})
    stored.verdict(so, "d", "filtered", trigger=f"{so}/b", timestamp=20)

    last = [each for each in shown(traced(alice, so)) if each[0] == "d"]
    assert last == [("d", "b", None, "open"), ("d", "c", "emitted", "noted")]


def test_what_nothing_tells_of_is_not_guessed(served: Served, alice: Caller) -> None:
    so = chain(alice)
    stored = Stored(served)
    stored.update(so, "a", 9)
    for verdict in ("filtered", "script-error", "emitted"):
        stored.verdict(so, "b", verdict, trigger=f"{so}/a", timestamp=20)

    (step, *_) = traced(alice, so)["steps"]
    assert (step["verdict"], step["known"]) == (None, "open")
    assert step["mayBe"] == ["filtered", "script-error"]
    assert "lastUpdate" not in step


def test_an_output_is_found_where_an_input_ahead_has_put_it(served: Served, alice: Caller) -> None:
    so = chain(alice)
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.update(so, "c", 30)
    inputs = {"a": 9, "b": None, "z": 30}
    stored.verdict(so, "c", "emitted", trigger=f"{so}/a", timestamp=9, inputs=inputs)

    step = traced(alice, so)["steps"][1]
    assert (step["verdict"], step["lastUpdate"]) == ("emitted", 30)
    assert step["channels"] == {"v": {"current-value": 30}}
    assert [each.get("age") for each in step["inputs"]] == [0, None, -21]


def test_without_a_timestamp_it_is_the_newest(served: Served, alice: Caller) -> None:
    so = chain(alice)
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.update(so, "a", 12)
    assert alice.ask("GET", f"/{so}/streams/a/trace").get_json()["lastUpdate"] == 12


@pytest.mark.parametrize(("at", "status"), [("8", 404), ("x", 400), ("-1", 400)])
def test_an_update_that_is_not_there_is_said(
    served: Served, alice: Caller, at: str, status: int
) -> None:
    so = chain(alice)
    Stored(served).update(so, "a", 9)
    assert alice.ask("GET", f"/{so}/streams/a/trace?timestamp={at}").status_code == status


def test_a_long_update_is_told_by_its_size(served: Served, alice: Caller) -> None:
    so = chain(alice)
    Stored(served).update(so, "a", 9, size=5_000)
    trace = traced(alice, so)
    assert trace["bytes"] > 5_000
    assert "channels" not in trace


def test_others_are_shown_as_far_as_they_let_be_read_and_never_why(
    served: Served, alice: Caller, bob: Caller
) -> None:
    so = alice.create({**SIMPLE, "public": True})
    closed = bob.create(composite("g", g=([so], "a")))
    shown_ = bob.create({**composite("g", g=([so], "a")), "public": True})
    behind = alice.create(composite("g", g=([shown_], "out")))
    stored = Stored(served)
    for each, stream in ((so, "a"), (closed, "out"), (shown_, "out")):
        stored.update(each, stream, 9)
    for each in (closed, shown_):
        stored.verdict(each, "out", "emitted", trigger=f"{so}/a", timestamp=9, inputs={"g": 9})
    stored.verdict(behind, "out", "filtered", trigger=f"{shown_}/out", timestamp=9)

    trace = traced(alice, so)

    assert closed not in json.dumps(trace)
    assert trace["hidden"] == 1
    theirs, ours = trace["steps"]
    assert (theirs["stream"], theirs["known"], theirs["borders"]) == (f"{shown_}/out", "stored", 1)
    assert "inputs" not in theirs
    assert (ours["verdict"], ours["borders"]) == ("filtered", 2)
    assert bob.ask("GET", f"/{so}/streams/a/trace?timestamp=9").status_code in (401, 403)


def test_a_token_of_some_rights_for_one_object_sees_no_other(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    reader = alice.create(composite("g", g=([so], "a")))
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.update(reader, "out", 9)
    body = {"name": "one", "serviceObject": so, "rights": ["read", "inspect"]}
    made = alice.ask("POST", "/tokens", json=body)
    assert made.status_code == 201, made.text

    found = traced(Caller(alice.client, made.get_json()["token"]), so)
    assert (found["steps"], found["hidden"]) == ([], 1)


def test_a_wide_tree_is_cut(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.documents.tracing.MOST_STEPS", 2)
    so = chain(alice)
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.update(so, "b", 9)
    trace = traced(alice, so)
    assert (len(trace["steps"]), trace["complete"]) == (2, False)


def test_a_stream_over_windows_is_a_step(served: Served, alice: Caller) -> None:
    """Of what is computed apart, its windows and its result, nobody else knows."""
    code = {"type": "number", "current-value": "function(a) { return a.mean('x') }"}
    streams = {
        "a": {"channels": {"x": {"type": "number"}}},
        "mean": {"window": {"type": "tumbling", "size": "10s"}, "channels": {"m": code}},
    }
    so = alice.create({"version": "0.2.0", "streams": streams})
    stored = Stored(served)
    stored.update(so, "a", 9)
    stored.verdict(so, "mean", "collected", trigger=f"{so}/a", timestamp=9, inputs={})

    trace = traced(alice, so)

    assert shown(trace) == [("mean", "a", "collected", "noted")]
    assert trace["hidden"] == 0
