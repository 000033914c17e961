"""A composite is computed from history as if it had been there, beside what goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import islice
from typing import Any

import psycopg2
import pytest
from api_builders import NOW, Caller, Platform, Served
from backfill_builders import Filled, computing, document, job_of, ordered, sent
from quota_builders import given
from sandbox_pools import a_pool

from api.app import SERVICES, create_app
from api.backfills import filling, plan
from api.backfills.apart import BackfillsApart, filling_process
from api.backfills.jobs import BackfillJobs
from api.backfills.process import NICE
from api.resources import backfills
from sandbox import SandboxPool
from sandbox.text import argument_names
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.pauses import Paused, finished
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.settings import Settings, changed
from servioticy.storage import swapping
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.queries import queries

__all__ = ["given"]


class Death(BaseException):
    """The worker dies here."""


DOUBLE = computing("iot.value(a) * 2", "a")
TRIPLE = computing("iot.value(a) * 3", "a")
PLUS_ONE = computing("iot.value(double) + 1", "double")


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    found = a_pool()
    yield found
    found.close()


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = Settings()
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def filled(served: Served, pool: SandboxPool) -> Filled:
    return Filled(served, JavaScript(pool))


@pytest.fixture
def late(filled: Filled, alice: Caller) -> str:
    """Two composites, one upon the other, of which nothing was there when updates came."""
    so = alice.create(document())
    sent(alice, so, (1, 10), (2, 20), (3, 30), (4, 40))
    filled.compute()
    changed_to(alice, so, document(double=DOUBLE, more=PLUS_ONE))
    filled.compute()
    return so


def changed_to(caller: Caller, so: str, body: Any) -> None:
    answer = caller.ask("PUT", f"/{so}", json=body)
    assert answer.status_code == 200, answer.text


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
    assert filled.beside() == 2
    assert job_of(alice, job)["rate"] is not None
    old = first._under_way[job]

    filled.jobs().turn()
    with pytest.raises(filling.Ended):
        next(old.steps)
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


EVERY = [(1, 20), (2, 40), (3, 60), (4, 80)]
"""What `double` is filled with."""


@pytest.mark.parametrize("when", ["drop_slice", "fill_slice", "end_swap", "clear_slice"])
def test_a_death_where_it_takes_its_place_leaves_the_old_rows_or_the_new(
    filled: Filled, alice: Caller, late: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever slice it was at; and it goes on, or is done, with the next task."""
    monkeypatch.setattr(swapping, "SLICE_ROWS", 1)
    ordered(alice, late, "double", 0, 10)
    filled.jobs().turn()
    rows, deadly = Database.rows, queries("swapping")[when]
    calls: list[int] = []

    def dying(self: Database, sql: Any, values: Any = None) -> Any:
        found = rows(self, sql, values)
        calls.extend([1] if sql == deadly else [])
        if sql == deadly and len(calls) == (1 if when == "end_swap" else 2):
            raise Death
        return found

    monkeypatch.setattr(Database, "rows", dying)
    with pytest.raises(Death):
        filled.compute()
    monkeypatch.setattr(Database, "rows", rows)
    at_once = filled.history(late, "double")
    emitted = filled.emitted()
    filled.compute()

    assert at_once == (EVERY if when == "clear_slice" else [])
    assert filled.history(late, "double") == EVERY
    assert filled.emitted() == emitted
    assert filled.beside() == 0


def test_a_death_before_the_record_is_noted_changes_nothing(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has taken its place, and its record comes once more."""
    job = ordered(alice, late, "double", 0, 10)
    filled.jobs().turn()
    store = PostgresPartitionStore.store

    def dying(self: PostgresPartitionStore, batch: Batch) -> Any:
        if batch.taken_up:
            raise Death
        return store(self, batch)

    monkeypatch.setattr(PostgresPartitionStore, "store", dying)
    with pytest.raises(Death):
        filled.compute()
    monkeypatch.setattr(PostgresPartitionStore, "store", store)
    assert job_of(alice, job)["state"] == "done"
    emitted = filled.emitted()
    sent(alice, late, (5, 50))
    filled.compute()

    assert filled.history(late, "double") == [*EVERY, (5, 100)]
    assert filled.emitted() == emitted + 3  # of the last update, and of the two composites


@pytest.fixture
def swap(
    filled: Filled, alice: Caller, late: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Paused[None]]]:
    """A job that takes its place row by row, where the old ones are all -1."""
    monkeypatch.setattr(swapping, "SLICE_ROWS", 1)
    for stream in ("double", "more"):
        changed_to(alice, late, document(double=MINUS_ONE, more=MINUS_ONE))
        filled.compute()
        ordered(alice, late, stream, 0, 10)
        filled.work()
    changed_to(alice, late, document(double=DOUBLE, more=PLUS_ONE))
    filled.compute()
    job = ordered(alice, late, "double", 0, 10)
    filled.jobs().turn()
    work = filled.partition_store().swapped(job, at_once=False)
    yield job, work
    work.close()


MINUS_ONE = computing("-1", "a")
OLD = [(at, -1) for at in (1, 2, 3, 4)]


def test_readers_see_the_old_rows_or_the_new_and_never_both(
    filled: Filled, late: str, swap: tuple[str, Paused[None]]
) -> None:
    """Between any two slices."""
    seen = [(filled.history(late, "double"), filled.history(late, "more")) for _ in swap[1]]

    old, new = (OLD, OLD), (EVERY, [(at, value + 1) for at, value in EVERY])
    changed_at = seen.index(new)
    assert len(seen) > changed_at > 16  # of each of 16 rows there was a look
    assert seen == [old] * changed_at + [new] * (len(seen) - changed_at)


def beside(filled: Filled, caller: Caller, so: str) -> str:
    """A Service Object that doubles, in the same partition as another one."""
    partition = "SELECT route_partition FROM service_objects WHERE id = %(id)s"
    rows = filled.served.platform.database.rows
    while True:
        made = caller.create(document(double=DOUBLE))
        if rows(partition, {"id": made}) == rows(partition, {"id": so}):
            return made


def test_others_go_on_while_it_takes_its_place(
    filled: Filled, alice: Caller, bob: Caller, late: str, swap: tuple[str, Paused[None]]
) -> None:
    """And what its own tenant sends comes behind it."""
    job, work = swap
    theirs = beside(filled, bob, late)
    next(islice(work, 12, None))
    sent(bob, theirs, (1, 5))
    sent(alice, late, (5, 50))
    filled.compute(until=lambda: filled.history(theirs, "double") != [])
    meanwhile = filled.history(theirs, "double"), filled.history(late, "double")
    finished(work)
    filled.compute()

    assert meanwhile == ([(1, 10)], OLD)
    assert filled.history(late, "double") == [*EVERY, (5, 100)]
    assert job_of(alice, job)["state"] == "done"


def test_who_cancels_while_it_takes_its_place_leaves_nothing_of_it(
    filled: Filled, alice: Caller, late: str, swap: tuple[str, Paused[None]]
) -> None:
    """Nor does who cancels wait for it."""
    job, work = swap
    next(islice(work, 12, None))
    assert alice.ask("DELETE", f"/jobs/{job}").status_code == 204
    finished(work)
    filled.compute()

    assert filled.history(late, "double") == OLD
    assert filled.beside() == 0


def test_a_second_one_waits_for_the_first_and_has_nothing_left_to_do(
    filled: Filled, late: str, swap: tuple[str, Paused[None]]
) -> None:
    """As it is where a worker that has lost its partition does not know yet."""
    _job, work = swap
    next(islice(work, 12, None))
    other = filled.partition_store().swapped(swap[0], at_once=False)
    assert len(list(islice(other, 5))) == 5
    assert filled.history(late, "double") == OLD
    finished(work)
    finished(other)

    assert filled.history(late, "double") == EVERY


def test_a_row_that_somebody_has_locked_has_it_begin_anew(
    filled: Filled, late: str, session_dsn: str, swap: tuple[str, Paused[None]]
) -> None:
    """Nobody waits for it longer than a moment."""
    _job, work = swap
    other = psycopg2.connect(session_dsn)
    try:
        with other.cursor() as cursor:
            cursor.execute('SELECT FROM updates WHERE "timestamp" = 3 FOR UPDATE')
            assert len(list(islice(work, 12))) == 12
            assert filled.history(late, "double") == OLD
            other.rollback()
    finally:
        other.close()
    finished(work)

    assert filled.history(late, "double") == EVERY


def test_rows_that_stay_locked_have_it_put_back(
    filled: Filled,
    alice: Caller,
    late: str,
    session_dsn: str,
    swap: tuple[str, Paused[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not begin anew for ever; and its tenant reads why."""
    monkeypatch.setattr(swapping, "LOCKED", 2)
    monkeypatch.setattr(swapping, "LOCK_WAIT", "10ms")
    job, work = swap
    other = psycopg2.connect(session_dsn)
    try:
        with other.cursor() as cursor:
            cursor.execute('SELECT FROM updates WHERE "timestamp" = 3 FOR UPDATE')
            finished(work)
            told = job_of(alice, job)
            other.rollback()
    finally:
        other.close()

    assert (told["state"], filled.beside()) == ("waiting", 0)
    assert told["failures"][0]["message"] == swapping.HELD
    assert filled.history(late, "double") == OLD


@pytest.mark.parametrize("when", ["why_not", "fill_slice", "end_swap"])
def test_a_bug_where_it_takes_its_place_ends_it(
    filled: Filled, alice: Caller, late: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record is a dead letter then, and nobody else would end the job."""
    job = ordered(alice, late, "double", 0, 10)
    filled.jobs().turn()
    rows, wrong = Database.rows, queries("swapping")[when]

    def failing(self: Database, sql: Any, values: Any = None) -> Any:
        if sql == wrong:
            raise KeyError("of ours")
        return rows(self, sql, values)

    monkeypatch.setattr(Database, "rows", failing)
    with pytest.raises(KeyError):
        finished(filled.partition_store().swapped(job, at_once=False))
    monkeypatch.setattr(Database, "rows", rows)
    told = job_of(alice, job)
    assert (told["state"], filled.beside()) == ("failed", 0)
    assert told["failures"][0]["message"] == f"{swapping.WRONG} (KeyError)"
    filled.compute()

    assert filled.history(late, "double") == []


def test_where_a_move_waits_for_it_a_large_one_is_put_back(
    filled: Filled,
    alice: Caller,
    late: str,
    swap: tuple[str, Paused[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others of the partition would wait, too. It is computed anew."""
    monkeypatch.setattr(swapping, "SLICES_AT_ONCE", 3)
    job, _work = swap
    finished(filled.partition_store().swapped(job, at_once=True))
    told = job_of(alice, job)
    assert (told["state"], filled.beside()) == ("waiting", 0)
    assert "moved" in told["failures"][0]["message"]
    filled.compute()
    filled.work()

    assert filled.history(late, "double") == EVERY
    assert job_of(alice, job)["state"] == "done"


def test_a_record_that_comes_twice_changes_nothing(
    filled: Filled, alice: Caller, late: str
) -> None:
    """So it may after a death between the log and what stands in Postgres."""
    ordered(alice, late, "double", 0, 10)
    filled.work()
    log = filled.served.platform.state.log
    partition = next(p for p, records in enumerate(log) if any(b"backfill" in r for r in records))
    log[partition].append(next(r for r in log[partition] if b'"backfill"' in r))
    sent(alice, late, (4, 5))
    filled.compute()

    assert filled.history(late, "double") == [(1, 20), (2, 40), (3, 60), (4, 80)]


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


BASE = 1_000_000_020
"""A time in seconds at which a minute begins; NOW is later."""
WINDOWED: dict[str, Any] = {
    "minute": computing("a.mean('x')", "a") | {"window": {"type": "tumbling", "size": "1m"}},
    "folded": computing("state", "a")
    | {
        "window": {"type": "tumbling", "size": "2m"},
        "fold": "function(state, a) { return (state === null ? 0 : state) + iot.value(a) }",
    },
    "quiet": computing("a.silent ? 1 : 0", "a") | {"silent": "5m"},
    "above": computing("iot.value(minute) * 10 + iot.value(double)", "minute", "double"),
    "double": DOUBLE,
    "newest": computing("iot.value(a)", "a") | {"staleness": "input"},
}


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
