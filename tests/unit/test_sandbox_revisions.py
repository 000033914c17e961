"""What the pool believes of revisions: what the windows say, of their time, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from grown_answers import decoded, document
from sandbox_trees import a_call_of, a_formula
from sandbox_windows import an_event, numbers

from sandbox.host.answers import MalformedAnswer
from sandbox.trees import Call, Last, Node, Wake, Wiring

CODE = a_formula("$0")
REVISION, EARLY = {"revision": 2}, {"revision": 2, "early": True}
RETRACTED = EARLY | {"retracted": True}


def a_call(*said: dict[str, Any]) -> Call:
    """Windows that end at 8, of a composite whose last output is of 10; another one reads it."""
    nodes = (
        Node((Wake(0, 1, 0),), name="windows"),
        Node((Wake(0, 2, 0),), CODE, ((0,),), name="result", windowed=True),
        Node((), CODE, ((1,),)),
    )
    trees = [an_event(numbers(1.0, 2.0), at=8, **each) for each in said]
    return a_call_of(Wiring("revisions", nodes), *trees, lasts=(Last(1, 10, None),))


def an_answer(*outputs: dict[str, Any], at: int = 8) -> list[Any]:
    """Each tree has made one of these."""
    rows = [[[0, 0, 1, at, document(at) | each]] for each in outputs]
    return [rows, [[1, "emitted", len(rows), len(rows) - 1, 0, "", [8]]], [], -1]


@pytest.mark.parametrize("said", [REVISION, EARLY, RETRACTED])
def test_what_windows_say_is_believed_though_it_is_older(said: dict[str, Any]) -> None:
    (part,) = decoded(an_answer(said, said), calls=[a_call(said, said)])

    assert [made.timestamp for (made,) in part.made] == [8, 8]
    assert b'"revision":2' in part.made[0][0].document


@pytest.mark.parametrize(
    ("said", "output", "at"),
    [
        ({}, REVISION, 11),
        (REVISION, {}, 8),
        (REVISION, EARLY, 8),
        (EARLY, REVISION, 8),
        (RETRACTED, EARLY, 8),
        (REVISION, REVISION | {"retracted": True}, 8),
        (REVISION, {"revision": 3}, 8),
        (REVISION, REVISION, 9),
        (REVISION, {"revision": 2, "more": 1}, 8),
        (REVISION, {"more": 1} | REVISION, 8),
        ({}, {}, 8),
    ],
)
def test_nothing_else_is(said: dict[str, Any], output: dict[str, Any], at: int) -> None:
    """A script that has taken its process over could overwrite what is stored."""
    with pytest.raises(MalformedAnswer):
        decoded(an_answer(output, at=at), calls=[a_call(said)])


def test_nobody_is_woken_by_them() -> None:
    answer = an_answer(REVISION)
    answer[0][0].append([1, 0, 2, 8, document(8)])
    with pytest.raises(MalformedAnswer, match="was not woken"):
        decoded(answer, calls=[a_call(REVISION)])
