"""What a backfill has computed takes its place as a whole, whoever dies, and others go on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import psycopg2
import pytest
from api_builders import Caller
from backfill_builders import (
    DOUBLE,
    PLUS_ONE,
    Death,
    Filled,
    changed_to,
    computing,
    document,
    job_of,
    ordered,
    sent,
)

from servioticy.domain.pauses import Paused, finished
from servioticy.ports.batches import Batch
from servioticy.storage import swapping
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.queries import queries

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


@pytest.mark.parametrize(("at", "then"), [(5, (4, "80")), (10, (10, "-1"))])
def test_what_was_taken_back_in_its_span_is_not_computed_from_any_more(
    filled: Filled, alice: Caller, late: str, at: int, then: tuple[int, str]
) -> None:
    """What is newer than the span stays."""
    ordered(alice, late, "double", 0, 10)
    rows = filled.served.platform.database.rows
    (stream,) = rows(
        "INSERT INTO states (tenant_id, stream_id, taken_back_at, taken_back)"
        " SELECT tenant_id, stored_as, %(at)s, '-1' FROM streams"
        "  WHERE service_object = %(id)s AND name = 'double' RETURNING stream_id",
        {"id": late, "at": at},
    )[0]
    rows("DELETE FROM updates WHERE stream_id = %(stream)s", {"stream": stream})
    rows(
        "INSERT INTO stored_amounts SELECT id, 1000 FROM tenants WHERE name = 'alice'"
        " ON CONFLICT (tenant_id) DO UPDATE SET bytes = 1000"
    )
    stored = "SELECT sum(octet_length(document::text))::bigint FROM updates"
    before = rows(stored)[0][0]
    filled.work()
    last = filled.partition_store().last_updates([stream])[stream]

    assert (last.timestamp, then[1] in last.document.decode()) == (then[0], True)
    more = rows(stored)[0][0] - before
    assert rows("SELECT bytes FROM stored_amounts") == [(1000 + more - len("-1") * (at == 5),)]


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
