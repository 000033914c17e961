"""The source that is files: what a look tells, and what of a file is cut by whom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from workflow_builders import a_queue, a_workflow, an_atom

from functions.files import records, source
from functions.files.columns import Columns
from functions.files.source import (
    AWAY_MS,
    LONGEST_REFUSED_MS,
    NO_STORE,
    REFUSED_MS,
    Source,
    Ticket,
)
from functions.files.spool import Spool
from functions.files.store import (
    FileGone,
    FileRefused,
    Page,
    StillCopied,
    StoreAway,
    StoreRefuses,
    TakesTooMuch,
)
from functions.steps import BEGUN_MS, Failure, Result, Task
from servioticy.domain.workflows.looking import Place
from servioticy.domain.workflows.model import CUT, LOOK
from servioticy.domain.workflows.stores import stores
from servioticy.errors import ServioticyError
from servioticy.ports.atoms import Look, Seen

STORES = stores({"in": "file:///srv/{tenant}", "theirs": "file:///srv/all?tenants=t2"})
LINES = b"".join(b'{"n":%d}\n' % n for n in range(5))


class Store:
    """One file, and an error that each question ends with, if any."""

    def __init__(self, content: bytes = LINES, error: Exception | None = None) -> None:
        self.content = content
        self.error = error
        self.file = Seen("a", "1", len(content))
        self.pages = [Page([self.file], None)]
        self.asked: list[Any] = []

    def page(self, prefix: str, after: str) -> Page:
        self.asked.append((prefix, after))
        if self.error:
            raise self.error
        return self.pages.pop(0)

    def read(self, file: Seen, start: int, length: int) -> bytes:
        self.asked.append((file, start))
        if self.error:
            raise self.error
        return self.content[start : start + length]


def source_of(own: Store) -> Source:
    unused = Columns(Spool(Path("unused")))
    return Source(STORES, lambda tenant: f"t{tenant}", unused, opening=lambda _at: own)


def worked(own: Store, step: int, body: bytes, **files: Any) -> Result:
    document = {"store": "in", "format": "ndjson", **files}
    task = Task(a_queue(step=step), a_workflow(source={"files": document}), "1.0")
    return source_of(own).work(task, [an_atom(7, body=body)])


def ticket(store: Store, **more: Any) -> bytes:
    return Ticket(store.file)._replace(**more).body()


def whole(cut: Callable[[bytes], Result], body: bytes) -> tuple[list[Any], list[Failure]]:
    """All atoms of a file, and all dead letters, whoever cuts it."""
    atoms: list[Any] = []
    dead: list[Failure] = []
    waiting = [body]
    for _ in range(1_000):
        if not waiting:
            return atoms, dead
        result = cut(waiting.pop())
        dead += [each for each in result.failed.values() if each.is_hopeless]
        atoms += [orjson.loads(each) for each in result.done.get(7, ())]
        waiting += result.again.get(7, ())
    raise AssertionError("it does not end")


def test_a_look_tells_a_stretch_of_the_list() -> None:
    store = Store()
    store.pages = [Page([store.file], "a")]

    result = worked(store, LOOK, b'{"after":"A"}', prefix="x/")

    assert result.looks == {7: Look([store.file], Place("A"), "a", "x/", is_sure=False)}
    assert store.asked == [("x/", "A")]


@pytest.mark.parametrize("error", [StoreAway("away"), StoreRefuses("no")])
def test_a_look_that_fails_is_told_and_not_dead(error: ServioticyError) -> None:
    result = worked(Store(error=error), LOOK, b"{}")

    assert result.looks[7].trouble == str(error)
    assert result.failed == {}


def test_a_store_that_is_anothers_is_none() -> None:
    assert worked(Store(), LOOK, b"{}", store="theirs").looks[7].trouble == NO_STORE
    assert worked(Store(), LOOK, b"{}", store="gone").looks[7].trouble == NO_STORE
    cut = worked(Store(), CUT, ticket(Store()), store="theirs")
    assert (cut.later, cut.failed) == ({7: REFUSED_MS}, {})


def test_a_file_is_cut_a_portion_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each portion comes with the ticket of the rest, so whoever is killed has lost none."""
    monkeypatch.setattr(records, "MOST", 2)
    monkeypatch.setattr(records.json_lines, "__defaults__", (2,))
    store = Store()

    first = worked(store, CUT, ticket(store))

    assert [orjson.loads(each) for each in first.done[7]] == [{"n": 0}, {"n": 1}]
    ((rest,),) = first.again.values()
    assert Ticket.read(rest) == Ticket(store.file, at=16)
    atoms, dead = whole(lambda body: worked(store, CUT, body), ticket(store))
    assert sorted(each["n"] for each in atoms) == list(range(5))
    assert dead == []


def test_a_large_file_is_read_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK", 20)
    store = Store()

    atoms, _ = whole(lambda body: worked(store, CUT, body), ticket(store))

    assert sorted(each["n"] for each in atoms) == list(range(5))
    assert [at for _, at in store.asked] == [0, 16, 32]


def test_columns_keep_their_names_over_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK", 8)
    store = Store(b"n;m\n1;2\n3;4\n5;6\n")

    cut = lambda body: worked(store, CUT, body, format="csv", separator=";")  # noqa: E731
    atoms, _ = whole(cut, ticket(store))

    assert [each["n"] for each in atoms] == ["1", "3", "5"]


def test_a_record_that_is_no_atom_is_a_dead_letter_that_can_be_tried_again() -> None:
    store = Store(b'{"n":1}\nx\n{"n":2}\n')
    result = worked(store, CUT, ticket(store))
    (only,) = result.again[7]

    failure = worked(store, CUT, only).failed[7]
    store.content = b'{"n":1}\n{}{"n":2}\n'  # as if it had been mended in its place
    again = worked(store, CUT, only)

    assert failure.is_hopeless
    assert failure.reason.startswith("a: at 8: the line is not JSON")
    assert len(result.done[7]) == 2
    assert (again.done.get(7, ()), again.again.get(7)) in (((), None), ([], []))


def test_only_so_many_records_are_no_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one more the rest of the file is left: it is no file of this kind."""
    monkeypatch.setattr(source, "MAX_BAD", 3)
    good = Store(b"x\n" * 3 + b'{"n":1}\n')
    bad = Store(b"x\n" * 4 + b'{"n":1}\n')

    atoms, dead = whole(lambda body: worked(good, CUT, body), ticket(good))
    assert (atoms, len(dead)) == ([{"n": 1}], 3)

    _, dead = whole(lambda body: worked(bad, CUT, body), ticket(bad))
    assert len(dead) == 4
    assert any("more than 3 records are no atoms; at 6" in each.reason for each in dead)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreAway("away"), Result(later={7: AWAY_MS})),
        (StoreRefuses("no"), Result(later={7: REFUSED_MS})),
        (TakesTooMuch("no"), Result(failed={7: Failure("a: no")})),
        (FileGone("gone"), Result(failed={7: Failure("a: gone", True)})),
        (FileRefused("no"), Result(failed={7: Failure("a: no")})),
        (StillCopied("more"), Result(later={7: BEGUN_MS})),
    ],
)
def test_what_is_away_is_waited_for_and_what_is_gone_is_dead(
    error: ServioticyError, expected: Result
) -> None:
    """An operator's mistake kills nothing, however long it takes to be mended."""
    store = Store(error=error)

    assert worked(store, CUT, ticket(store))._replace(processor_us=0) == expected


def test_of_a_file_that_takes_too_much_only_the_time_of_reading_it_is_charged() -> None:
    """Others' turns, and copying it, take no processor."""
    store = Store(error=TakesTooMuch("no", 3.0))

    result = worked(store, CUT, ticket(store))

    assert 3_000_000 <= result.processor_us < 4_000_000
    store.error = TakesTooMuch("no")
    assert worked(store, CUT, ticket(store)).processor_us < 1_000_000


def test_tickets_are_read_as_they_were_written() -> None:
    for each in (
        Ticket(Seen("ü", "1", 9)),
        Ticket(Seen("a", "1", 9), 5, ["x"], 3, True),
        Ticket(Seen("a", "1", 9), 5, refused="no"),
    ):
        assert Ticket.read(each.body()) == each


def test_a_store_that_refuses_is_asked_by_one_that_waits_and_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many files of it wait to be cut: the others rest with it."""
    store, now = Store(error=StoreRefuses("no")), [0.0]
    monkeypatch.setattr(source.time, "monotonic", lambda: now[0])
    document = {"store": "in", "format": "ndjson"}
    task = Task(a_queue(step=CUT), a_workflow(source={"files": document}), "")
    own = source_of(store)
    waiting = [an_atom(n, body=ticket(store)) for n in range(4)]

    def work() -> Result:
        return own.work(task, waiting)

    pauses = []
    for _ in range(8):
        before = len(store.asked)
        found = work().later
        assert len(found) == 4
        assert len(set(found.values())) == 1
        assert len(store.asked) == before + 1
        assert work().later == found
        assert len(store.asked) == before + 1
        pauses.append(found[0])
        now[0] += found[0] / 1_000 + 0.1

    assert pauses[:3] == [REFUSED_MS, 2 * REFUSED_MS, 4 * REFUSED_MS]
    assert pauses[-1] == LONGEST_REFUSED_MS
    store.error = None
    assert len(work().done) == 4
    store.error = StoreRefuses("no")
    assert work().later == dict.fromkeys(range(4), REFUSED_MS)
