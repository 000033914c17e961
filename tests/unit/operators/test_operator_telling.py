"""How programs run is told when it is other than before, and now and then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from operators.line import Running
from operators.registry import Registry
from operators.telling import AGAIN, MOST, Telling
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Run, StoredProgram


class Told:
    """Stored programs of which nothing is asked."""

    def __init__(self) -> None:
        self.told: list[Sequence[Run]] = []
        self.spent: list[Mapping[tuple[int, StreamRef], int]] = []
        self.is_away = False

    def found(self, programs: Sequence[Program]) -> dict[Program, StoredProgram]:
        """Return nothing."""
        return {}

    def archive(self, program: Program, digest: str) -> bytes | None:
        """Return nothing."""
        return None

    def tell(self, node: str, runs: Sequence[Run]) -> None:
        """Note it."""
        self.told.append(runs)

    def spend(self, used: Mapping[tuple[int, StreamRef], int]) -> None:
        """Note it, unless the store is away."""
        if self.is_away:
            raise Unavailable
        self.spent.append(used)


def running(number: int, state: str = "idle") -> Running:
    """Return how a program runs."""
    return Running(Program(1, f"p{number}", 1), state, 0, "", b"", None)


def test_what_is_as_before_is_told_now_and_then() -> None:
    """Else every node would write for each program all the time."""
    now: list[Running] = []
    stored = Told()
    telling = Telling(Registry(stored), "here", lambda: now, seconds=3600.0)
    telling.close()
    telling.tell()
    assert stored.told == []
    now = [running(1)]
    for _ in range(2 * AGAIN - 1):
        telling.tell()
    assert len(stored.told) == 3


def test_those_that_run_are_told_before_those_that_have_ended() -> None:
    """And no more than so many."""
    stored = Told()
    now = [running(number, "ended") for number in range(MOST)] + [running(MOST)]
    telling = Telling(Registry(stored), "here", lambda: now, seconds=3600.0)
    telling.close()
    telling.tell()

    assert len(stored.told[0]) == MOST
    assert stored.told[0][0].program.name == f"p{MOST}"


def test_what_no_reply_tells_is_charged_once_the_store_is_there() -> None:
    """Each bit of it once; what is less than a microsecond is nothing."""
    stored, used = Told(), {(1, "so/a"): 0.5}
    taken: list[Mapping[tuple[int, str], float]] = [used, {(1, "so/a"): 0.25, (2, "so/b/c"): 1e-9}]
    telling = Telling(
        Registry(stored), "here", list, seconds=3600.0, spent=lambda: taken.pop(0) if taken else {}
    )
    telling.close()
    stored.is_away = True
    with pytest.raises(Unavailable):
        telling.tell()
    stored.is_away = False
    telling.tell()
    telling.tell()

    assert stored.spent == [{(1, StreamRef("so", "a")): 750_000}]
