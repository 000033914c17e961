"""A composite is computed from history as if it had been there, beside what goes on."""

from __future__ import annotations

import os
import signal

import pytest
from api_builders import Caller
from backfill_builders import (
    BASE,
    PLUS_ONE,
    TRIPLE,
    WINDOWED,
    Filled,
    changed_to,
    computing,
    document,
    job_of,
    ordered,
    sent,
)
from waiting import until

from api.app import SERVICES
from api.backfills import filling
from api.backfills.apart import BackfillsApart, filling_process
from api.backfills.jobs import BackfillJobs
from api.backfills.process import NICE
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed


def test_a_new_composite_and_what_is_derived_from_it_are_filled(
    filled: Filled, alice: Caller, late: str
) -> None:
    """Nobody is sent anything of that."""
    before = filled.emitted()
    job = ordered(alice, late, "double", 2, 4)
    assert job_of(alice, job)["state"] == "waiting"

    filled.work()

    assert filled.history(late, "double") == [(2, 40), (3, 60)]
    assert filled.history(late, "more") == [(2, 41), (3, 61)]
    assert filled.emitted() == before
    assert filled.beside() == 0
    told = job_of(alice, job)
    assert (told["kind"], told["state"], told["total"], told["done"]) == ("backfill", "done", 2, 2)
    assert (told["serviceObject"], told["stream"]) == (late, "double")
    assert (told["from"], told["to"], told["rest"], told["failures"]) == (2, 4, 0, [])


def test_it_goes_on_behind_what_was_filled(filled: Filled, alice: Caller, late: str) -> None:
    """The last update of a composite is the last filled one, for readers and composites."""
    ordered(alice, late, "double", 0, 10)
    filled.work()

    answer = alice.ask("GET", f"/{late}/streams/more/lastUpdate")
    sent(alice, late, (4, 1), (5, 50))
    filled.compute()

    assert answer.get_json()["data"][0]["channels"]["x"]["current-value"] == 81
    assert filled.history(late, "double")[-2:] == [(4, 80), (5, 100)]


def test_what_another_definition_made_of_the_span_goes(
    filled: Filled, alice: Caller, late: str
) -> None:
    """And what was sent into the composite stays."""
    ordered(alice, late, "double", 0, 10)
    filled.work()
    body = b'{"channels":{"x":{"current-value":7}},"lastUpdate":9}'
    assert alice.put(late, body, "double").status_code == 202
    odd = computing("iot.value(a) == 20 ? null : iot.value(a) + 1", "a")
    changed_to(alice, late, document(double=odd, more=PLUS_ONE))
    filled.compute()

    ordered(alice, late, "double", 2, 20)
    filled.work()

    assert filled.history(late, "double") == [(1, 20), (3, 31), (4, 41), (9, 7)]
    assert filled.history(late, "more") == [(1, 21), (3, 32), (4, 42), (9, 8)]


def test_it_waits_for_a_change_that_is_under_way(filled: Filled, alice: Caller, late: str) -> None:
    """The API knows of it, and the pipeline does not yet."""
    job = ordered(alice, late, "double", 1, 4)
    changed_to(alice, late, document(double=TRIPLE, more=PLUS_ONE))

    assert not filled.jobs().turn()
    filled.compute()
    assert job_of(alice, job)["state"] == "waiting"
    filled.work()

    assert filled.history(late, "double") == [(1, 30), (2, 60), (3, 90)]


@pytest.mark.parametrize("what", ["definition", "erased", "restored"])
def test_what_changes_meanwhile_has_it_done_again(
    filled: Filled, alice: Caller, late: str, what: str
) -> None:
    """It is computed, and before it takes its place something else has come into the log."""
    job = ordered(alice, late, "double", 1, 4)
    jobs = filled.jobs()
    jobs._begin_others()
    if what == "definition":
        changed_to(alice, late, document(double=TRIPLE, more=PLUS_ONE))
    if what == "erased":
        assert alice.ask("DELETE", f"/{late}/streams/a").status_code in (202, 204)
    jobs.turn()
    if what == "restored":
        filled.served.platform.database.rows("DELETE FROM backfilled")
    filled.compute()

    told = job_of(alice, job)
    assert told["state"] == "waiting"
    assert "meanwhile" in told["failures"][0]["message"]
    assert filled.beside() == 0

    filled.work()

    assert job_of(alice, job)["state"] == "done"
    assert job_of(alice, job)["failures"] == []
    assert (
        filled.history(late, "double")
        == {
            "definition": [(1, 30), (2, 60), (3, 90)],
            "erased": [],
            "restored": [(1, 20), (2, 40), (3, 60)],
        }[what]
    )


def test_others_send_into_the_span_meanwhile(filled: Filled, alice: Caller, late: str) -> None:
    """What came since history was read the definition has computed: that stays."""
    sent(alice, late, (5, 50))
    filled.compute()
    job = ordered(alice, late, "double", 1, 10)
    jobs = filled.jobs()
    jobs._begin_others()
    sent(alice, late, (2, 21), (7, 70))
    filled.compute()
    jobs.turn()
    sent(alice, late, (8, 80))
    filled.compute()

    assert job_of(alice, job)["state"] == "done"
    every = [(1, 20), (2, 42), (3, 60), (4, 80), (5, 100), (7, 140), (8, 160)]
    assert filled.history(late, "double") == every
    assert filled.history(late, "more") == [(at, value + 1) for at, value in every]
    assert filled.beside() == 0


def amounts(filled: Filled) -> tuple[int, int]:
    """The bytes that are stored by the accounts, and those that are there."""
    rows = filled.served.platform.database.rows
    (counted,) = rows("SELECT coalesce(sum(bytes), 0)::bigint FROM stored_amounts")
    (stored,) = rows("SELECT sum(octet_length(document::text))::bigint FROM updates")
    return counted[0], stored[0]


@pytest.mark.parametrize("at_once", [1, 200])
def test_what_was_sent_wins_over_what_is_computed_of_the_same_time(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Wherever the one and the other are looked at; only what is stored more is counted."""
    monkeypatch.setattr(filling, "TREES", at_once)
    body = b'{"channels":{"x":{"current-value":7}},"lastUpdate":3}'
    assert alice.put(late, body, "double").status_code == 202
    filled.compute()
    before = amounts(filled)
    ordered(alice, late, "double", 0, 10)
    filled.work()
    after = amounts(filled)

    assert filled.history(late, "double") == [(1, 20), (2, 40), (3, 7), (4, 80)]
    assert filled.history(late, "more") == [(1, 21), (2, 41), (3, 61), (4, 81)]
    assert after[0] - before[0] == after[1] - before[1] > 0


def test_who_dies_leaves_nothing_and_the_next_one_begins_anew(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows stand there once, and those of an earlier attempt are not stored any more."""
    monkeypatch.setattr(filling, "TREES", 1)
    job = ordered(alice, late, "double", 0, 10)
    first = filled.jobs()
    first._begin_others()
    first._step(job, first._under_way[job])
    until(lambda: filled.beside() == 2)
    assert job_of(alice, job)["rate"] is not None
    old = first._under_way[job]

    filled.jobs().turn()
    with pytest.raises(filling.Ended):
        for _ in old.steps:
            """The next one may have been computed before it is known."""
    filled.compute()

    assert filled.history(late, "double") == [(1, 20), (2, 40), (3, 60), (4, 80)]
    assert filled.beside() == 0


def test_a_process_of_its_own_that_is_killed_is_begun_anew(
    filled: Filled, alice: Caller, late: str, session_dsn: str
) -> None:
    """With rows beside, of which none is left in the end."""
    job = ordered(alice, late, "double", 0, 10)
    process = filling_process(changed(Settings(), dsn=session_dsn))
    services = filled.served.app.extensions[SERVICES]
    jobs = BackfillJobs(services, BackfillsApart(process))
    try:
        jobs._begin_others()
        jobs._step(job, jobs._under_way[job])
        assert process._process is not None
        until(lambda: filled.beside() == 8)
        pid = process._process._process.pid
        assert os.getpriority(os.PRIO_PROCESS, pid) >= NICE
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Unavailable):
            jobs.turn()
        assert job_of(alice, job)["state"] == "running"
        assert filled.beside() == 8
        jobs.turn()
        filled.compute()
    finally:
        process.stop()

    assert filled.history(late, "double") == [(1, 20), (2, 40), (3, 60), (4, 80)]
    assert filled.beside() == 0


def test_who_cancels_leaves_nothing(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "TREES", 1)
    job = ordered(alice, late, "double", 0, 10)
    jobs = filled.jobs()
    jobs._begin_others()
    jobs._step(job, jobs._under_way[job])

    assert alice.ask("DELETE", f"/jobs/{job}").status_code == 204
    jobs.turn()
    filled.compute()

    assert alice.ask("GET", f"/jobs/{job}").status_code == 404
    assert alice.ask("DELETE", f"/jobs/{job}").status_code == 404
    assert filled.beside() == 0
    assert filled.history(late, "double") == []


def test_what_is_cancelled_when_it_is_computed_does_not_come(
    filled: Filled, alice: Caller, late: str
) -> None:
    job = ordered(alice, late, "double", 0, 10)
    filled.jobs().turn()
    assert job_of(alice, job)["state"] == "swapping"

    assert alice.ask("DELETE", f"/jobs/{job}").status_code == 204
    filled.compute()

    assert filled.history(late, "double") == []
    assert filled.beside() == 0


@pytest.mark.parametrize("when", ["waiting", "running", "swapping"])
def test_of_a_deleted_service_object_nothing_is_filled(
    filled: Filled, alice: Caller, late: str, when: str
) -> None:
    job = ordered(alice, late, "double", 0, 10)
    jobs = filled.jobs()
    if when == "running":
        jobs._begin_others()
    if when == "swapping":
        jobs.turn()
    assert alice.ask("DELETE", f"/{late}").status_code == 204
    for _ in range(3):
        jobs.turn()
        filled.compute()

    # Where it was in the log already it took its place, and went with the Service Object.
    assert job_of(alice, job)["state"] == ("done" if when == "swapping" else "failed")
    assert filled.beside() == 0


def test_what_is_done_cannot_be_cancelled(filled: Filled, alice: Caller, late: str) -> None:
    job = ordered(alice, late, "double", 0, 10)
    filled.work()

    assert alice.ask("DELETE", f"/jobs/{job}").status_code == 409


@pytest.mark.parametrize("at_once", [1, 200])
def test_windows_folds_and_silence_are_filled(
    filled: Filled, alice: Caller, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """With the times at which the log would have had them, and what is derived from them."""
    monkeypatch.setattr(filling, "TREES", at_once)
    so = alice.create(document())
    sent(alice, so, *[(BASE + 20 * at, at) for at in range(12)], (BASE + 1200, 7))
    filled.compute()
    changed_to(alice, so, document(**WINDOWED))
    filled.compute()
    for stream in ("minute", "folded", "quiet", "double", "newest"):
        job = ordered(alice, so, stream, BASE, BASE + 3600)
        filled.work()
        assert job_of(alice, job)["state"] == "done"

    minutes = [(BASE + 59, 1), (BASE + 119, 4), (BASE + 179, 7), (BASE + 239, 10)]
    assert filled.history(so, "minute") == [*minutes, (BASE + 1259, 7)]
    folded = [(BASE + 59, 3), (BASE + 179, 33), (BASE + 299, 30), (BASE + 1259, 7)]
    assert filled.history(so, "folded") == folded
    quiet = [(BASE + 220 + 300, 1), (BASE + 1200, 0), (BASE + 1500, 1)]
    assert filled.history(so, "quiet") == quiet
    assert filled.history(so, "newest")[-1] == (BASE + 1200, 7)
    assert filled.beside() == 0


def test_a_span_in_the_middle_has_whole_windows(filled: Filled, alice: Caller) -> None:
    """One that reaches back before the span has all of its updates, though it is filled apart."""
    so = alice.create(document())
    sent(alice, so, *[(BASE + 20 * at, at) for at in range(12)])
    filled.compute()
    changed_to(alice, so, document(minute=WINDOWED["minute"]))
    filled.compute()

    ordered(alice, so, "minute", BASE + 50, BASE + 130)
    filled.work()

    assert filled.history(so, "minute") == [(BASE + 59, 1), (BASE + 119, 4)]
