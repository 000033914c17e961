"""What it costs to ask whether an answer may go on: little, however many pieces it has."""

from __future__ import annotations

import pytest

from api.http.while_allowed import ASK_AGAIN_SECONDS, NoLongerAllowed, WhileAllowed
from servioticy.refusals import Denied


class Asked:
    """Allows until it is told otherwise, and counts; its clock stands still."""

    def __init__(self) -> None:
        self.count = 0
        self.now = 0.0
        self.allows = True

    def __call__(self) -> None:
        self.count += 1
        if not self.allows:
            raise Denied("Access was denied!")

    def clock(self) -> float:
        return self.now


def test_it_is_asked_once_in_a_while_however_many_pieces_there_are() -> None:
    asked = Asked()
    pieces = WhileAllowed([b"x"] * 1_000, asked, 0.0, asked.clock)
    for _ in range(500):
        next(pieces)
    asked.now = ASK_AGAIN_SECONDS
    for _ in range(500):
        next(pieces)

    assert asked.count == 1


def test_an_answer_that_took_long_to_begin_is_asked_about_before_its_first_piece() -> None:
    """A search may look for its first page for twenty seconds."""
    asked = Asked()
    asked.allows, asked.now = False, ASK_AGAIN_SECONDS
    pieces = WhileAllowed([b"x"], asked, 0.0, asked.clock)

    with pytest.raises(NoLongerAllowed):
        next(pieces)


def test_no_piece_is_made_after_a_refusal() -> None:
    """Not even one: what was made already is all that still goes out."""
    asked = Asked()
    made: list[int] = []
    pieces = WhileAllowed((made.append(n) or b"x" for n in range(9)), asked, 0.0, asked.clock)
    next(pieces)
    asked.allows, asked.now = False, ASK_AGAIN_SECONDS

    with pytest.raises(NoLongerAllowed, match="Access was denied!"):
        next(pieces)
    assert made == [0]


def test_an_answer_that_nobody_takes_any_more_lets_go_of_its_pieces() -> None:
    closed: list[bool] = []

    class Pieces:
        def __iter__(self) -> Pieces:
            return self

        def __next__(self) -> bytes:
            return b"x"

        def close(self) -> None:
            closed.append(True)

    WhileAllowed(Pieces(), lambda: None, 0.0).close()

    assert closed == [True]
