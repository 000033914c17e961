"""What a tenant has used, as it is told."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served

from api.app import create_app
from api.background.worker import worker
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.usage import Given
from servioticy.settings import Settings, changed
from servioticy.storage.usage import PostgresUsage

HOUR = 3_600_000
NONE = {
    "updates": 0,
    "computations": {},
    "processorSeconds": 0.0,
    "readSeconds": 0.0,
    "storedUpdates": 0,
    "storedBytes": 0,
    "deliveries": 0,
    "cost": 0.0,
    "costPerMillionUpdates": None,
}


@pytest.fixture
def objects(served: Served, alice: Caller, bob: Caller) -> tuple[str, str]:
    """One of alice that bob's composites have read, and one of bob, used in this hour."""
    theirs, own = alice.create(), bob.create()
    owner, reader = (served.platform.stream(each).tenant for each in (theirs, own))
    sent, made = StreamRef(theirs, "a"), StreamRef(own, "a")
    store = served.platform.store
    store.account(
        [
            Use(owner, sent, owner, updates=10, rows=10, bytes=1000),
            Use(reader, made, reader, computations={"stale": 1}, microseconds=500_000),
            Use(
                reader,
                made,
                owner,
                rows=7,
                bytes=700,
                computations={"emitted": 7, "stale": 2},
                microseconds=2_000_000,
            ),
        ]
    )
    store.account([Use(reader, made, owner, computations={"emitted": 1, "timeout": 1})])
    PostgresUsage(served.platform.database).deliver({Given(reader, owner, theirs, "a"): 4})
    return theirs, own


def usage(who: Caller, query: str = "", now: bool = True) -> Any:
    span = "from=0&to=9007199254740991&" if now else ""
    answer = who.ask("GET", f"/usage?{span}{query}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


def test_who_computes_pays_and_who_sends(alice: Caller, bob: Caller, objects: Any) -> None:
    (sent,), (computed,) = usage(alice), usage(bob)

    assert {**NONE, **sent} == {
        **NONE,
        "updates": 10,
        "storedUpdates": 10,
        "storedBytes": 1000,
        "cost": pytest.approx(1e-7),
        "costPerMillionUpdates": pytest.approx(0.01),
    }
    price = 2.5 / 3600 * 0.04 + 700 / 1e9 * 0.1
    assert computed == {
        "updates": 0,
        "computations": {"emitted": 8, "stale": 3, "timeout": 1},
        "processorSeconds": 2.5,
        "readSeconds": 0.0,
        "storedUpdates": 7,
        "storedBytes": 700,
        "deliveries": 4,
        "cost": pytest.approx(price),
        "costPerMillionUpdates": pytest.approx(price / 7 * 1e6),
    }


def test_a_provider_is_told_what_others_made_of_its_streams(
    alice: Caller, bob: Caller, objects: tuple[str, str]
) -> None:
    """In totals: what they derive is not named, and how it ends and what it costs is theirs."""
    theirs, _own = objects

    used = usage(alice, "side=provided&by=stream")

    nothing = {"wokenComputations": 0, "derivedUpdates": 0, "deliveries": 0, "composites": 0}
    made = {"wokenComputations": 11, "derivedUpdates": 8, "composites": 1}
    assert used == [
        {**nothing, **made, "tenants": 1, "serviceObject": "", "stream": ""},
        {**nothing, "deliveries": 4, "tenants": 1, "serviceObject": theirs, "stream": "a"},
    ]
    assert usage(bob, "side=provided") == []
    shares = {each["provider"]: each for each in usage(bob, "by=provider")}
    assert shares["own"] == {**shares["own"], "computations": {"stale": 1}, "storedBytes": 0}
    others = {"deliveries": 4, "processorSeconds": 2.0, "storedUpdates": 7, "storedBytes": 700}
    assert shares["others"] == {**shares["others"], **others}


def test_it_is_summed_up_as_asked_for(bob: Caller, objects: tuple[str, str]) -> None:
    theirs, own = objects
    by = {each: usage(bob, f"by={each}") for each in ("all", "hour", "day", "serviceObject")}

    assert len(by["all"]) == len(by["hour"]) == len(by["day"]) == 1
    assert by["hour"][0]["hour"] % HOUR == by["day"][0]["day"] % (24 * HOUR) == 0
    assert sorted(each["serviceObject"] for each in by["serviceObject"]) == sorted([theirs, own])
    streams = usage(bob, "by=stream")
    assert {(each["serviceObject"], each["stream"]) for each in streams} == {
        (theirs, "a"),
        (own, "a"),
    }


def test_a_span_is_one_of_hours(bob: Caller, objects: Any) -> None:
    hour = usage(bob, "by=hour")[0]["hour"]

    def asked(first: int, last: int) -> int:
        answer = bob.ask("GET", f"/usage?from={first}&to={last}").get_json()
        return len(answer["data"])

    assert asked(hour, hour) == asked(hour + 5, hour + 9) == 1
    assert asked(hour + HOUR, hour + 9 * HOUR) == asked(0, hour - 1) == 0
    for query in ("from=x", "to=-1", "by=tenant", "side=all"):
        assert bob.ask("GET", f"/usage?{query}").status_code == 400


def test_it_comes_in_pages(bob: Caller, objects: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.resources.usage.PAGE_ROWS", 1)
    path, found = "/usage?from=0&to=9007199254740991&by=stream", []
    after: str | None = ""
    while after is not None:
        page = bob.ask("GET", f"{path}&after={after}").get_json()
        found += page["data"]
        after = page.get("next")

    assert len(found) == 2
    assert bob.ask("GET", f"{path}&after=%00").status_code == 400


def test_what_is_gone_is_still_to_be_paid(served: Served, bob: Caller, objects: Any) -> None:
    before = usage(bob)

    bob.ask("DELETE", f"/{objects[1]}")

    assert usage(bob) == before


def test_it_is_forgotten_after_a_while(served: Served, bob: Caller, objects: Any) -> None:
    """By the hour, and no sooner."""
    hour = usage(bob, "by=hour")[0]["hour"]
    settings = changed(Settings(), usage_days=2)

    def forget(at: float) -> None:
        app = create_app(served.platform.ports, settings, lambda: at, argument_names)
        worker(app.extensions["servioticy"]).turn()

    forget((hour + 48 * HOUR) / 1000)
    assert len(usage(bob)) == 1
    forget((hour + 49 * HOUR) / 1000)
    assert usage(bob) == []
