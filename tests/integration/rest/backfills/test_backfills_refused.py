"""Whose history is read, and what is too much, wrong or not allowed."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller
from backfill_builders import (
    BASE,
    DOUBLE,
    WINDOWED,
    Filled,
    changed_to,
    computing,
    document,
    job_of,
    ordered,
    sent,
)

from api.backfills import plan
from api.resources import backfills


def test_only_who_may_change_it_fills_it(
    filled: Filled, alice: Caller, bob: Caller, late: str
) -> None:
    """Of others it cannot be told whether a job is there."""
    path = f"/{late}/streams/double/backfill"
    job = ordered(alice, late, "double", 0, 10)

    assert bob.ask("POST", path, json={"from": 0, "to": 1}).status_code in (401, 404)
    assert bob.ask("GET", f"/jobs/{job}").status_code == 404
    assert bob.ask("DELETE", f"/jobs/{job}").status_code == 404
    filled.work()
    assert job_of(alice, job)["state"] == "done"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"from": 1}, ""),
        ({"from": 1, "to": 1}, "/to"),
        ({"from": -1, "to": 1}, "/from"),
        ({"from": 1, "to": "soon"}, "/to"),
        ({"from": 1, "to": True}, "/to"),
        ({"from": 1, "to": 2, "at": 3}, "/at"),
    ],
)
def test_a_wrong_span_is_told_with_its_place(
    filled: Filled, alice: Caller, late: str, body: Any, pointer: str
) -> None:
    answer = alice.ask("POST", f"/{late}/streams/double/backfill", json=body)

    assert answer.status_code == 400
    assert answer.get_json().get("pointer", "") == pointer


def test_what_is_not_computed_is_refused_with_the_reason(filled: Filled, alice: Caller) -> None:
    so = alice.create(document(double=DOUBLE))

    answer = alice.ask("POST", f"/{so}/streams/a/backfill", json={"from": 0, "to": 1})

    assert answer.status_code == 400
    assert "not computed from other streams" in answer.get_json()["message"]


def test_windows_that_keep_too_much_fail_with_the_reason(
    filled: Filled, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.backfills.behind.KEPT_BYTES", 100)
    so = alice.create(document())
    sent(alice, so, (BASE, 1), (BASE + 1, 2))
    filled.compute()
    changed_to(alice, so, document(minute=WINDOWED["minute"]))
    filled.compute()
    job = ordered(alice, so, "minute", BASE, BASE + 60)
    filled.work()

    told = job_of(alice, job)
    assert told["state"] == "failed"
    assert "windows keep more" in told["failures"][0]["message"]
    assert filled.beside() == 0


TRIPLED = computing("iot.value(g) * 3", "g")


@pytest.fixture
def outside(filled: Filled, alice: Caller, bob: Caller) -> tuple[str, str]:
    """A public Service Object with history, and another tenant's that reads it from now on."""
    theirs = bob.create(document(double=DOUBLE) | {"public": True})
    sent(bob, theirs, (1, 10), (2, 20), (3, 30))
    filled.compute()
    read = {"g": "a", "h": "double"}
    group = {"groups": {name: {"soIds": [theirs], "stream": s} for name, s in read.items()}}
    sums = computing("iot.value(g) + iot.value(h) + iot.value(triple)", "g", "h", "triple")
    so = alice.create(document(triple=TRIPLED, sums=sums) | group)
    for _ in range(3):
        filled.compute()
    return theirs, so


def test_what_others_let_one_read_is_filled(
    filled: Filled, alice: Caller, bob: Caller, outside: tuple[str, str]
) -> None:
    """From their history; and it goes on behind that. Nobody is sent it, whoever dies."""
    theirs, so = outside
    emitted = filled.emitted()
    job = ordered(alice, so, "triple", 0, 10)
    filled.work()
    assert job_of(alice, job)["state"] == "done"
    assert job_of(alice, job)["total"] == 6

    assert filled.history(so, "triple") == [(1, 30), (2, 60), (3, 90)]
    assert filled.history(so, "sums") == [(1, 60), (2, 120), (3, 180)]
    places = filled.served.platform.database.rows(
        "SELECT DISTINCT sign(log_offset), log_partition = route_partition FROM updates"
        "  JOIN streams ON stored_as = stream_id"
        "  JOIN service_objects ON service_objects.id = service_object"
        " WHERE service_object = %(so)s AND name <> 'a'",
        {"so": so},
    )
    assert places == [(-1, True)]
    filled.compute()
    assert filled.emitted() == emitted

    ordered(alice, so, "triple", 0, 10)  # once more: the former rows go
    filled.work()
    sent(bob, theirs, (4, 40))
    for _ in range(3):
        filled.compute()
    assert filled.history(so, "triple") == [(1, 30), (2, 60), (3, 90), (4, 120)]
    assert filled.history(so, "sums")[-1] == (4, 240)  # what is filled is what comes live


@pytest.mark.parametrize("when", ["before", "waiting", "computed"])
def test_what_may_not_be_read_any_more_is_refused_with_reason_and_place(
    filled: Filled, alice: Caller, bob: Caller, outside: tuple[str, str], when: str
) -> None:
    """Whenever that ends; nothing is left of what was computed."""
    theirs, so = outside
    path = f"/{so}/streams/triple/backfill"
    jobs = filled.jobs()
    job = "" if when == "before" else ordered(alice, so, "triple", 0, 10)
    if when == "computed":
        jobs._begin_others()
        next(jobs._under_way[job].steps)
    changed_to(bob, theirs, document(double=DOUBLE) | {"public": False})
    for _ in range(3):
        filled.compute()

    if when == "before":
        answer = alice.ask("POST", path, json={"from": 0, "to": 10})
        assert answer.status_code == 400
        message = answer.get_json()["message"]
    else:
        jobs.turn()
        told = job_of(alice, job)
        assert told["state"] == "failed"
        message = told["failures"][0]["message"]
    assert message.startswith(
        f"{so}/sums reads {theirs}/a, which is gone, or of which you may not"
    )
    assert filled.beside() == 0
    assert filled.history(so, "triple") == []


def test_readers_over_a_border_get_nothing(
    filled: Filled, alice: Caller, bob: Caller, late: str
) -> None:
    changed_to(alice, late, document(double=DOUBLE) | {"public": True})
    group = {"groups": {"g": {"soIds": [late], "stream": "double"}}}
    theirs = bob.create(document(own=computing("iot.value(g)", "g")) | group)
    for _ in range(3):
        filled.compute()

    ordered(alice, late, "double", 0, 10)
    filled.work()
    filled.compute()

    assert filled.history(late, "double") == [(1, 20), (2, 40), (3, 60), (4, 80)]
    assert filled.history(theirs, "own") == []


def test_so_many_are_not_finished(filled: Filled, alice: Caller, late: str) -> None:
    for at in range(backfills.MOST):
        ordered(alice, late, "double", at, at + 1)

    answer = alice.ask("POST", f"/{late}/streams/double/backfill", json={"from": 0, "to": 1})
    assert answer.status_code == 429

    filled.work()  # one after the other
    for _ in range(backfills.MOST):
        filled.work()
    assert filled.history(late, "double") == [(1, 20), (2, 40)]


@pytest.mark.parametrize(
    ("module", "name", "most"),
    [
        ("planning", "MOST_MADE_BYTES", 50),
        ("planning", "MOST_READ", 3),
        ("jobs", "MOST_SECONDS", 0.0),
    ],
)
def test_what_is_too_much_fails_with_the_reason_and_leaves_nothing(
    filled: Filled,
    alice: Caller,
    late: str,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    most: float,
) -> None:
    where = (
        module
        if not isinstance(module, str)
        else __import__(f"api.backfills.{module}", fromlist=[name])
    )
    monkeypatch.setattr(where, name, most)
    job = ordered(alice, late, "double", 0, 10)

    filled.work()

    told = job_of(alice, job)
    assert told["state"] == "failed"
    assert len(told["failures"][0]["message"]) > 20
    assert filled.beside() == 0
    assert filled.history(late, "double") == []


def test_what_a_tenant_stores_is_counted(filled: Filled, alice: Caller, late: str) -> None:
    """What is filled, less what it has taken the place of; and what it took."""
    rows = filled.served.platform.database.rows
    amount = "SELECT sum(bytes)::bigint FROM stored_amounts"
    before = rows(amount)[0][0] or 0
    ordered(alice, late, "double", 0, 10)
    filled.work()
    after = rows(amount)[0][0]
    ordered(alice, late, "double", 0, 10)
    filled.work()

    assert after > before
    assert rows(amount)[0][0] == after
    used = rows("SELECT sum(processor_us) FROM usage_hours WHERE stream = 'double'")[0][0]
    assert used > 0


def test_a_component_that_is_too_large_is_refused(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.backfills.planning.MOST_OBJECTS", 0)
    answer = alice.ask("POST", f"/{late}/streams/double/backfill", json={"from": 0, "to": 1})
    monkeypatch.setattr("api.backfills.planning.MOST_OBJECTS", plan.MOST_OBJECTS)
    monkeypatch.setattr("api.backfills.region.MOST_STREAMS", 2)
    streams = alice.ask("POST", f"/{late}/streams/double/backfill", json={"from": 0, "to": 1})

    assert (answer.status_code, streams.status_code) == (400, 400)
    assert "Service Objects" in answer.get_json()["message"]
    assert "streams" in streams.get_json()["message"]
