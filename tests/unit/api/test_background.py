"""What goes on after requests were answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from api.background.worker import Worker
from servioticy.errors import Unavailable


class Locks:
    """Of one process, that may be another's."""

    def __init__(self) -> None:
        self.free = True
        self.held = False

        self.stays = False

    @contextmanager
    def session(self) -> Iterator[None]:
        self.stays = True
        yield
        assert not self.held
        self.stays = False

    def row(self, name: str, **_: Any) -> tuple[bool]:
        assert self.stays, "it would be the lock of a connection that others have next"
        assert (name, self.held) == ("lock", False)
        self.held = self.free
        return (self.free,)

    def rows(self, name: str, **_: Any) -> list[Any]:
        assert (name, self.held) == ("unlock", True)
        self.held = False
        return []


class Some:
    """Has so much to do."""

    def __init__(self, turns: int, failure: Exception | None = None) -> None:
        self.left = turns
        self.failure = failure

    def turn(self) -> bool:
        if self.failure is not None:
            raise self.failure
        self.left -= 1
        return self.left >= 0


def a_worker(locks: Locks, *works: Some) -> Worker:
    named = {str(number): each for number, each in enumerate(works)}
    return Worker(locks, 1, named)  # type: ignore[arg-type]


def test_each_has_its_turn_until_nobody_has_anything_to_do() -> None:
    locks, one, other = Locks(), Some(3), Some(1)
    worker = a_worker(locks, one, other)

    assert [worker.turn() for _ in range(4)] == [True, True, True, False]
    assert (one.left, other.left) == (-1, -3)
    locks.free = False
    assert not worker.turn()
    assert other.left == -3


def test_a_bug_in_one_keeps_none_of_the_others_waiting(caplog: pytest.LogCaptureFixture) -> None:
    locks, other = Locks(), Some(2)
    worker = a_worker(locks, Some(1, ValueError("a bug")), other)

    assert [worker.turn() for _ in range(3)] == [True, True, False]
    assert [each.message for each in caplog.records] == ["background_failed"] * 3
    assert {each.__dict__["work"] for each in caplog.records} == {"0"}


def test_what_has_to_wait_keeps_none_of_the_others_waiting() -> None:
    """A statement that takes too long for one of them, say; it is told, for a longer pause."""
    locks, other = Locks(), Some(2)
    worker = a_worker(locks, Some(1, Unavailable("too long")), other)

    for left in (1, 0):
        with pytest.raises(Unavailable):
            worker.turn()
        assert other.left == left
        assert not locks.held


def test_where_the_store_is_away_the_lock_is_given_back() -> None:
    locks = Locks()
    with pytest.raises(Unavailable):
        a_worker(locks, Some(1, Unavailable("away"))).turn()
    assert not locks.held
