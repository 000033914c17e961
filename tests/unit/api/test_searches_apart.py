"""Searches in another process: what is begun there is bounded, and ends when nobody wants it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from api.search.apart import MOST_BEGUN, MOST_OF_ONE, SearchesApart
from api.search.searching import Search
from api.stepping import answering
from api.stepping.answering import Answering
from api.stepping.step import Step
from servioticy.apart.asking import TookTooLong
from servioticy.domain.model import StreamKey
from servioticy.domain.search.criteria import Criteria
from servioticy.errors import Unavailable
from servioticy.refusals import Refused, TooMany

STEPS = [b"1", b"", b"2,3"]
ALL = Criteria((), ())


def search(caller: int = 1) -> Search:
    return Search(StreamKey(9, 7), ALL, caller)


class Searching:
    """Finds the same each time; notes whose searches have ended."""

    def __init__(self) -> None:
        self.ended = 0
        self.error: BaseException | None = None

    def steps(self, _search: Search) -> Iterator[Step]:
        try:
            for each in STEPS:
                if self.error is not None:
                    raise self.error
                yield Step(each)
        finally:
            self.ended += 1


class Process:
    """Answers in this one; may be replaced by one that knows nothing."""

    def __init__(self, searching: Searching) -> None:
        self._searching = searching
        self.replace()

    def replace(self) -> None:
        self.answering: Answering[Search] = Answering(self._searching, "search again")

    def ask(self, request: bytes) -> bytes:
        return self.answering.answer(request)

    def stop(self) -> None:
        self.replace()


@pytest.fixture(autouse=True)
def _a_step_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "STEP_SECONDS", -1.0)


@pytest.fixture
def searching() -> Searching:
    return Searching()


@pytest.fixture
def other(searching: Searching) -> Process:
    return Process(searching)


@pytest.fixture
def searches(other: Any) -> SearchesApart:
    return SearchesApart(other)


def test_steps_come_as_they_are_found(searches: SearchesApart, other: Process) -> None:
    assert [each.documents for each in searches.steps(search())] == STEPS
    assert other.answering._begun == {}


def test_steps_that_take_little_are_one(
    searches: SearchesApart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a message here and back."""
    monkeypatch.setattr(answering, "STEP_SECONDS", 60.0)

    assert [each.documents for each in searches.steps(search())] == [b"1,2,3"]


def test_one_that_nobody_wants_any_more_is_ended_with_the_next_step(
    searches: SearchesApart, other: Process, searching: Searching
) -> None:
    first, second = searches.steps(search()), searches.steps(search())
    next(first), next(second)
    first.close()  # type: ignore[attr-defined]
    assert (searching.ended, len(other.answering._begun)) == (0, 2)

    next(second)

    assert (searching.ended, len(other.answering._begun)) == (1, 1)
    assert searches._begun == {1: 1}


def test_a_tenant_has_so_many_under_way_and_all_so_many(searches: SearchesApart) -> None:
    """Each keeps something of the other process's memory, as long as nobody reads its answer."""
    begun = [searches.steps(search(n // MOST_OF_ONE)) for n in range(MOST_BEGUN)]
    for each in begun:
        next(each)
    with pytest.raises(TooMany, match="are under way already: read their answers"):
        next(searches.steps(search(0)))
    with pytest.raises(Unavailable, match="too many searches"):
        next(searches.steps(search(999)))

    begun.pop(0).close()  # type: ignore[attr-defined]
    assert next(searches.steps(search(0)))


def test_what_was_begun_breaks_off_where_the_process_was_replaced(
    searches: SearchesApart, other: Process
) -> None:
    """Begun anew it would find again what was found."""
    found = searches.steps(search())
    next(found)
    other.replace()
    with pytest.raises(Unavailable, match="search again"):
        next(found)

    assert [each.documents for each in searches.steps(search())] == STEPS
    assert searches._begun == {}


@pytest.mark.parametrize(
    ("error", "told"), [(Unavailable("away"), Unavailable), (KeyError("x"), RuntimeError)]
)
def test_what_goes_wrong_there_is_told_here(
    error: Exception, told: type[Exception], searches: SearchesApart, searching: Searching
) -> None:
    searching.error = error
    with pytest.raises(told):
        list(searches.steps(search()))

    searching.error = None
    assert len(list(searches.steps(search()))) == len(STEPS)


def test_what_it_took_until_it_was_refused_is_told_before(
    searches: SearchesApart, other: Process, searching: Searching
) -> None:
    """Or whoever is refused each time would pay for nothing."""

    def refused(_search: Search) -> Iterator[Step]:
        sum(range(300_000))
        raise Refused("too much")
        yield

    searching.steps = refused  # type: ignore[method-assign]
    steps = searches.steps(search())

    assert next(steps).seconds > 0
    with pytest.raises(Refused, match="too much"):
        next(steps)
    assert other.answering._begun == other.answering._failed == {}


def test_a_step_that_took_too_long_is_paid_for(
    searches: SearchesApart, other: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was its own all that time, and is ended for it: nobody else could ask."""
    steps = searches.steps(search())
    next(steps)

    def ask(_request: bytes) -> bytes:
        raise TookTooLong("the process", 30.0)

    monkeypatch.setattr(other, "ask", ask)

    assert next(steps) == Step(b"", 30.0)
    with pytest.raises(TookTooLong, match="did not answer within 30 s"):
        next(steps)
    assert searches._begun == {}


def test_why_it_ended_is_forgotten_where_nobody_asks(
    searches: SearchesApart, other: Process, searching: Searching
) -> None:
    searching.error = Unavailable("away")
    steps = searches.steps(search())
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    searching.error = None

    next(searches.steps(search()))

    assert other.answering._failed == {}


def test_a_process_without_memory_ends(other: Process, searching: Searching) -> None:
    """Another one has enough."""
    searching.error = MemoryError()
    with pytest.raises(MemoryError):
        other.ask(pickle.dumps(([], 1, search())))
