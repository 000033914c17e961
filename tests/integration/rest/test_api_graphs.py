"""What is told of all streams of a Service Object: which are computed from which."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import CHANNEL, composite

from api.resources import graphs


def graph(caller: Caller, so: str) -> Any:
    answer = caller.ask("GET", f"/{so}/graph")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_it_has_its_sources_and_all_that_is_computed_from_it(alice: Caller) -> None:
    so = alice.create()
    between = alice.create(composite("g", g=([so], "a")))
    last = alice.create(composite("g,h", g=([between], "out"), h=([so], "a")))

    assert graph(alice, so) == {
        "computedFrom": {
            f"{between}/out": [f"{so}/a"],
            f"{last}/out": [f"{so}/a", f"{between}/out"],
        }
    }
    assert graph(alice, between) == {
        "computedFrom": {f"{between}/out": [f"{so}/a"], f"{last}/out": [f"{between}/out"]}
    }
    assert graph(alice, last) == {"computedFrom": {f"{last}/out": [f"{between}/out", f"{so}/a"]}}


def test_streams_of_one_document_are_computed_from_each_other(alice: Caller) -> None:
    streams: dict[str, Any] = {"a": {"channels": {"x": CHANNEL}}}
    for name, reads in (("b", "a"), ("c", "a,b,c")):
        code = f"function({reads}){{}}"
        streams[name] = {"channels": {"x": {**CHANNEL, "current-value": code}}}
    so = alice.create({"version": "0.2.0", "streams": streams})

    assert graph(alice, so) == {
        "computedFrom": {f"{so}/b": [f"{so}/a"], f"{so}/c": [f"{so}/a", f"{so}/b"]}
    }


def test_what_others_keep_private_is_not_named(alice: Caller, bob: Caller) -> None:
    so = alice.create({**SIMPLE, "public": True})
    bob.create(composite("g", g=([so], "a")))
    shown = bob.create({**composite("g", g=([so], "a")), "public": True})

    told = {"computedFrom": {f"{shown}/out": [f"{so}/a"]}}
    assert graph(alice, so) == told
    assert graph(bob, shown) == told
    assert graph(alice, shown) == {"computedFrom": {}}


def test_of_a_private_one_nothing_is_told(alice: Caller, bob: Caller) -> None:
    so = alice.create()
    assert bob.ask("GET", f"/{so}/graph").status_code in (401, 404)
    assert bob.ask("GET", "/nothing/graph").status_code == 404


def test_more_than_is_told_is_said(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "MAX_SOURCES", 2)
    so = alice.create()
    for _ in range(3):
        alice.create(composite("g", g=([so], "a")))

    told = graph(alice, so)
    assert (len(told["computedFrom"]), told["complete"]) == (2, False)
