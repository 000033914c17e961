"""How far a roll-out has come where some of its Service Objects could not be changed."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import pytest

from api.fleets.jobs import TURN_SECONDS, Jobs, before_changed
from api.fleets.making import Follower
from servioticy.changes import Changed, StillRead
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable


def test_what_is_refused_for_good_is_passed_over() -> None:
    assert before_changed(["a", "b", "c"], {"b": StillRead([])}) == ["a", "b", "c"]


def test_from_the_first_that_has_changed_meanwhile_it_is_done_again() -> None:
    """Whoever changed it may have made it fit, or not; nothing behind it is told twice."""
    refused = {"d": Changed(), "a": StillRead([]), "c": Changed()}

    assert before_changed(["a", "b", "c", "d"], refused) == ["a", "b"]
    assert before_changed(["c", "d"], refused) == []


PARAMETERS = "{}"
CREATION = ("job", 7, "creation", "template", 1, "")
ROLL_OUT = ("job", 7, "roll-out", "template", 1, "")


class Statements:
    """The statements of jobs, with a job whose turn it is."""

    def __init__(self, job: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> None:
        self._job, self._rows = job, rows
        self.ended: dict[str, Any] = {}

    def row(self, name: str, **_: Any) -> tuple[Any, ...] | None:
        return self._job if name == "next" else None

    def rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        if name in ("made", "rolled_out"):
            self.ended = values
        return self._rows


class Making:
    """Makes so many, then has to wait."""

    def __init__(self, count: int) -> None:
        self._left = count

    def created(self, key: ServiceObjectKey, *_: Any) -> str:
        self._left -= 1
        if self._left < 0:
            raise Unavailable("the code of the document has to wait")
        return key.id

    def changed(self, _tenant: int, follower: Follower, *_: Any) -> str:
        return self.created(ServiceObjectKey(7, follower.id))


def a_job(job: tuple[Any, ...], makes: int, ticks: float = 0.0) -> tuple[Jobs, Statements, Any]:
    """A job of three whose code can be looked at of some, and a clock that goes on by itself."""
    ids = ("a", "b", "c")
    if job is CREATION:
        rows: list[tuple[Any, ...]] = [(n, id_, PARAMETERS, False) for n, id_ in enumerate(ids, 1)]
    else:
        rows = [(id_, 1, PARAMETERS, 1, 5, "{}", None, 0) for id_ in ids]
    sql, services = Statements(job, rows), mock.MagicMock()
    services.ports.statements.return_value = sql
    services.ports.changes.replace_all.return_value = {}
    clock = itertools.count(step=ticks) if ticks else itertools.repeat(0.0)
    jobs = Jobs(services, lambda: float(next(clock)))
    jobs._maker = Making(makes)  # type: ignore[assignment]
    jobs._versions["template", 1] = mock.Mock()
    return jobs, sql, services.ports.changes


def test_what_is_ready_is_stored_where_the_next_ones_code_has_to_wait() -> None:
    """Else the job would begin with the same one again and again."""
    jobs, sql, changes = a_job(CREATION, makes=2)

    assert jobs.turn()
    changes.create_all.assert_called_once_with(["a", "b"])
    assert (sql.ended["numbers"], sql.ended["last"], sql.ended["failed"]) == ([1, 2], False, 0)


def test_a_roll_out_goes_on_there_too() -> None:
    jobs, sql, changes = a_job(ROLL_OUT, makes=2)

    assert jobs.turn()
    changes.replace_all.assert_called_once_with([("a", 5), ("b", 5)])
    assert (sql.ended["reached"], sql.ended["last"], sql.ended["failed"]) == ("b", False, 0)


@pytest.mark.parametrize("job", [CREATION, ROLL_OUT])
def test_where_nothing_is_ready_the_next_turn_is_a_little_later(job: tuple[Any, ...]) -> None:
    jobs, sql, _ = a_job(job, makes=0)

    with pytest.raises(Unavailable):
        jobs.turn()
    assert sql.ended == {}


@pytest.mark.parametrize("job", [CREATION, ROLL_OUT])
def test_a_job_whose_code_takes_long_gives_its_turn_away(job: tuple[Any, ...]) -> None:
    """All others' wait for it."""
    jobs, sql, _ = a_job(job, makes=3, ticks=TURN_SECONDS)

    assert jobs.turn()
    assert not sql.ended["last"]
    assert sql.ended.get("numbers", [1]) == [1]
    assert sql.ended.get("reached", "a") == "a"


@pytest.mark.parametrize("job", [CREATION, ROLL_OUT])
def test_what_can_be_made_is_made_at_once(job: tuple[Any, ...]) -> None:
    jobs, sql, _ = a_job(job, makes=3)

    assert jobs.turn()
    assert sql.ended["last"]
