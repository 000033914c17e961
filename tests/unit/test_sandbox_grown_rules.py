"""What the pool believes of other calls: bounds, steps, refusals, several events in a tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from grown_answers import (
    BY_INPUT,
    CALL,
    ENDED,
    FIRST,
    KIND,
    LASTS,
    MADE,
    THEN,
    TIMES,
    WIRING,
    an_answer,
    decoded,
    document,
)
from sandbox_trees import a_call_of, an_event

from sandbox.host.answers import MalformedAnswer
from sandbox.trees import Bounds, Last


def test_a_refused_composite_makes_nothing() -> None:
    """Its program did not run, whoever says so; it ends as was asked, or did not come so far."""
    call = replace(CALL, refused={FIRST: ("suspended", "")})
    with pytest.raises(MalformedAnswer):
        decoded(an_answer(), calls=[call])

    answer = an_answer()
    answer[MADE] = [[], []]
    answer[ENDED] = [
        [FIRST, "suspended", 2, 1, 0, "", [6, 7]],
        [THEN, "filtered", 2, 1, 0, "", [4, 6]],
        [BY_INPUT, "filtered", 2, 1, 0, "", [6]],
    ]
    assert decoded(answer, calls=[call])[0].ended[0].kind == "suspended"
    for kind in ("filtered", "emitted", "syntax", "policy"):
        answer[ENDED][0][KIND] = kind
        with pytest.raises(MalformedAnswer):
            decoded(answer, calls=[call])
    answer[ENDED][0][KIND] = "missing"
    assert decoded(answer, calls=[call])


def test_a_tree_keeps_within_its_bounds() -> None:
    """A worker that makes more than it may would make others pay for storing it."""
    for bounds in (Bounds(2, 4), Bounds(5, 4)):
        assert decoded(an_answer(), calls=[replace(CALL, bounds=bounds)])
    for bounds in (Bounds(1, 9), Bounds(5, 3)):
        with pytest.raises(MalformedAnswer):
            decoded(an_answer(), calls=[replace(CALL, bounds=bounds)])


def test_an_update_from_outside_is_a_last_update() -> None:
    """What a composite makes afterwards has to be newer; an older one changes nothing."""
    put = an_event(at=6, node=FIRST)._replace(path=(0,))
    source = an_event(at=5)._replace(path=())
    call = a_call_of(WIRING, [source, put], lasts=LASTS, bounds=Bounds(5, 9))
    answer = [
        [[[0, 1, FIRST, 7, document(7)]]],
        [
            [FIRST, "emitted", 1, 0, 0, "", [5, 7]],
            [THEN, "filtered", 3, 0, 2, "", [7, 5]],
            [BY_INPUT, "filtered", 1, 0, 0, "", [5]],
        ],
        [],
        -1,
    ]
    assert decoded(answer, calls=[call])
    older = replace(call, trees=[[source, put._replace(timestamp=3)]])
    assert decoded(answer, calls=[older])
    late = replace(call, trees=[[source, put._replace(timestamp=8)]])
    with pytest.raises(MalformedAnswer):
        decoded(answer, calls=[late])
    afterwards = replace(call, trees=[[source, put._replace(timestamp=8, path=(2,))]])
    assert decoded(answer, calls=[afterwards])


def test_updates_of_several_events_are_in_order_of_their_places() -> None:
    """By depth, then by path: whoever gets them next relies on it."""
    first, then = (an_event(at=5)._replace(path=(each,)) for each in (2, 4))
    call = a_call_of(WIRING, [first, then], lasts=LASTS, bounds=Bounds(5, 9))

    def answer(*rows: list[Any]) -> list[Any]:
        stale = [FIRST, "stale", 2 - len(rows) // 2, 0, 0, ""]
        return [
            [list(rows)],
            [
                [BY_INPUT, "emitted", 1, 0, 0, "", [5]],
                [THEN, "emitted", 1, 0, 1, "", [4, 5]],
                [BY_INPUT, "stale", 1, 0, 1, ""],
                [THEN, "stale", 1, 0, 0, ""],
                stale,
            ],
            [],
            -1,
        ]

    of_first = [0, 5, BY_INPUT, 5, document(5), {"read": 5}]
    of_then = [1, 3, THEN, 5, document(5)]
    right = answer(of_first, of_then)
    right[ENDED][4][TIMES] = 2

    assert decoded(right, calls=[call])
    wrong = answer(of_then, of_first)
    wrong[ENDED][4][TIMES] = 2
    with pytest.raises(MalformedAnswer):
        decoded(wrong, calls=[call])


STEP = replace(CALL, trees=[[an_event(at=5)._replace(only=1)]])


def test_of_a_step_nothing_follows() -> None:
    """It is asked for one computation, and may answer no other."""
    row = [0, 1, FIRST, 7, document(7)]
    ended = [FIRST, "emitted", 1, 0, 0, "", [5, 7]]
    assert decoded([[[row]], [ended], [], -1], calls=[STEP])

    for rows, endings in (
        ([row, [1, 0, THEN, 7, document(7)]], [ended, [THEN, "emitted", 1, 0, 1, "", [7, 5]]]),
        ([[0, 3, THEN, 5, document(5)]], [[THEN, "emitted", 1, 0, 0, "", [4, 5]]]),
        ([row], [ended, [THEN, "filtered", 1, 0, 0, "", [4, 5]]]),
        ([row], [ended, [THEN, "filtered", 1, 0, 1, "", [4, 5]]]),
        ([], [[THEN, "filtered", 1, 0, 0, "", [4, 5]]]),
        ([], []),
    ):
        with pytest.raises(MalformedAnswer):
            decoded([[rows], endings, [], -1], calls=[STEP])


def test_calls_after_one_that_was_left_may_have_no_trees() -> None:
    """There was no time for more. The first call has one tree at least, or has failed."""
    whole, nothing = an_answer(), [[], [], [], -1]

    assert [len(each.made) for each in decoded(whole, nothing, calls=[CALL, CALL])] == [2, 0]
    assert decoded([[], [], [], 0], nothing, calls=[CALL, CALL])[0].failed == 0
    assert decoded(nothing, calls=[replace(CALL, trees=[])])[0].made == []
    with pytest.raises(MalformedAnswer):
        decoded(nothing, whole, calls=[CALL, CALL])


def test_a_time_may_be_a_tick_newer_where_somebody_goes_by_inputs() -> None:
    """For each update made so far, and not more."""
    lasts = (*LASTS, Last(BY_INPUT, 40, b"0"))
    call = replace(CALL, lasts=lasts, trees=CALL.trees[1:])

    def answer(at: int) -> list[Any]:
        return [
            [[[0, 5, BY_INPUT, at, document(at), {"read": 6}]]],
            [
                [BY_INPUT, "emitted", 1, 0, 0, "", [6]],
                [FIRST, "filtered", 1, 0, 0, "", [6, 7]],
                [THEN, "filtered", 1, 0, 0, "", [4, 6]],
            ],
            [],
            -1,
        ]

    assert decoded(answer(41), calls=[call])
    for wrong in (40, 42):
        with pytest.raises(MalformedAnswer):
            decoded(answer(wrong), calls=[call])
