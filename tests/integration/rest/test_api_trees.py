"""What is told of the trees that a document makes."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Served
from changing_documents import CHANNEL, composite, replace

from servioticy import large_components
from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.rebalancing import HOUR


def test_a_tree_tells_levels_inputs_and_diamonds(alice: Caller) -> None:
    code = {name: f"function({reads}){{}}" for name, reads in (("b", "a,z"), ("c", "a,b"))}
    streams: dict[str, Any] = {"a": {"channels": {"x": CHANNEL}}, "z": {"channels": {}}}
    for name, text in code.items():
        streams[name] = {"channels": {"x": {**CHANNEL, "current-value": text}}}
    so = alice.create({"version": "0.2.0", "streams": streams})

    assert alice.ask("GET", f"/{so}/streams/a/tree").get_json() == {
        "stream": f"{so}/a",
        "depth": 1,
        "computations": 2,
        "mostComputations": 3,
        "levels": [
            [
                {
                    "stream": f"{so}/b",
                    "triggeredBy": f"{so}/a",
                    "as": "a",
                    "arrivals": 1,
                    "onlyRead": ["z"],
                },
                {
                    "stream": f"{so}/c",
                    "triggeredBy": f"{so}/a",
                    "as": "a",
                    "arrivals": 2,
                    "onlyRead": [],
                },
            ]
        ],
        "hidden": 0,
        "diamonds": [f"{so}/c"],
        "cycles": [],
    }


def test_a_tree_counts_what_others_keep_private(alice: Caller, bob: Caller) -> None:
    so = alice.create({**SIMPLE, "public": True})
    bob.create(composite("g", g=([so], "a")))
    shown = bob.create({**composite("g", g=([so], "a")), "public": True})

    tree = alice.ask("GET", f"/{so}/streams/a/tree").get_json()
    assert (tree["computations"], tree["hidden"]) == (2, 1)
    assert [each["stream"] for each in tree["levels"][0]] == [f"{shown}/out"]


def test_a_tree_shows_where_it_crosses_borders(alice: Caller, bob: Caller) -> None:
    so = alice.create({**SIMPLE, "public": True})
    between = bob.create({**composite("g", g=([so], "a")), "public": True})
    reader = alice.create(composite("g,h", g=([so], "a"), h=([between], "out")))

    levels = alice.ask("GET", f"/{so}/streams/a/tree").get_json()["levels"]

    shown = [
        {each["stream"]: (each.get("borders"), each.get("again")) for each in level}
        for level in levels
    ]
    assert shown == [
        {f"{reader}/out": (None, None), f"{between}/out": (1, None)},
        {f"{reader}/out": (2, True)},
    ]


def test_a_new_document_is_answered_with_what_is_odd_about_it(alice: Caller) -> None:
    so = alice.create()
    document = composite("g,h", g=([so], "a"), h=([so], "a"))
    answer = alice.ask("POST", "/", json=document)

    assert list(answer.get_json()) == ["id", "api_token", "createdAt", "warnings"]
    (warning,) = answer.get_json()["warnings"]
    assert "2 paths (diamond)" in warning and f"{so}/a" in warning

    id_ = answer.get_json()["id"]
    changed = replace(alice, id_, composite("g", g=([so], "a"))).get_json()
    assert "warnings" not in changed
    changed = replace(alice, id_, composite("out")).get_json()
    assert "nothing can trigger it" in changed["warnings"][0]


def test_a_cycle_through_another_object_is_told(alice: Caller) -> None:
    first = alice.create(SIMPLE)
    second = alice.create(composite("g", g=([first], "a")))
    body = composite("g", g=([second], "out"))
    body["streams"]["a"] = body["streams"].pop("out")

    answer = replace(alice, first, body).get_json()

    assert any("a cycle" in each and f"{second}/out" in each for each in answer["warnings"])
    assert any("nothing can trigger" in each for each in answer["warnings"])


def test_whoever_owns_what_is_too_large_for_a_partition_is_told(
    served: Served, alice: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all of its component, in the tree and in the status; and nobody else is."""
    monkeypatch.setattr(large_components, "KNOWN_MS", 0)
    so = alice.create({**SIMPLE, "public": True})
    beside = alice.create(composite("g", g=([so], "a")))
    apart = alice.create(SIMPLE)
    tenant = served.platform.stream(so).tenant
    since = int(NOW * 1000) // HOUR * HOUR - HOUR
    passed_us = int(NOW * 1000 - since) * 1000

    def account(part: float) -> None:
        """Let each of two Service Objects have used this part of a core."""
        for each in (so, beside):
            use = Use(tenant, StreamRef(each, "a"), tenant, microseconds=1)
            served.platform.store.account([use])
        sql = "UPDATE usage_hours SET hour = %(hour)s, processor_us = %(us)s"
        served.platform.database.rows(sql, {"hour": since, "us": int(part * passed_us)})

    def told(who: Caller, id_: str, stream: str, what: str) -> Any:
        return who.ask("GET", f"/{id_}/streams/{stream}/{what}").get_json().get("component")

    account(0.2)
    assert [told(alice, beside, "out", what) for what in ("tree", "status")] == [None, None]
    served.platform.database.rows("DELETE FROM usage_hours")
    account(0.3)

    for what in ("tree", "status"):
        found = told(alice, beside, "out", what)
        assert (found["from"], found["busy"]) == (since, pytest.approx(0.6))
        assert "no more than a core" in found["hint"]
        assert told(alice, apart, "a", what) is None
    assert told(bob, so, "a", "tree") is None
