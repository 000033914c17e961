"""What the pool believes of what a worker says that its trees made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from grown_answers import (
    BY_INPUT,
    CALL,
    DOCUMENT,
    ENDED,
    FAILED,
    FIRST,
    INPUTS,
    KIND,
    MADE,
    MESSAGE,
    NODE,
    OTHER,
    PARENT,
    READ,
    STATE,
    THEN,
    TICKS,
    TIME,
    TIMES,
    TREE,
    WAKE,
    WIRING,
    WOKEN_BY,
    an_answer,
    decoded,
    document,
)

from sandbox.host.answers import MAX_MESSAGE, MalformedAnswer
from sandbox.host.grown import MAX_TICKS, Known, decode_grown
from sandbox.trees import Ended, Made


def test_what_fits_is_believed() -> None:
    """Otherwise the tests below could not fail."""
    (part,) = decoded(an_answer())

    assert [len(each) for each in part.made] == [4, 1]
    assert part.made[0][0] == Made(0, 1, FIRST, 7, orjson.dumps(document(7)))
    assert part.made[1][0].state == b'{"read":"6"}'
    assert part.ended[0] == Ended(FIRST, "emitted", 1, 0, 0, "", [5, 7])
    assert part.ended[3] == Ended(FIRST, "stale", 1, 1, 0, "older", None)
    assert part.failed == -1


def test_milliseconds_are_kept_within_reason() -> None:
    """Of composites only; the clock of the machine may be set while a script runs."""
    (part,) = decoded(an_answer())

    assert part.ticks == {FIRST: 2, THEN: MAX_TICKS}


Wrong = Callable[[list[Any]], Any]


def at(*place: int, value: Any) -> Wrong:
    """What puts another value at a place of the answer."""

    def change(answer: list[Any]) -> None:
        inner: Any = answer
        for each in place[:-1]:
            inner = inner[each]
        inner[place[-1]] = value

    return change


def cut(*place: int) -> Wrong:
    """What takes away an element."""

    def change(answer: list[Any]) -> None:
        inner: Any = answer
        for each in place[:-1]:
            inner = inner[each]
        del inner[place[-1]]

    return change


def both(*changes: Wrong) -> Wrong:
    def change(answer: list[Any]) -> None:
        for each in changes:
            each(answer)

    return change


def exchanged(tree: int, first: int, then: int) -> Wrong:
    def change(answer: list[Any]) -> None:
        rows = answer[MADE][tree]
        rows[first], rows[then] = rows[then], rows[first]

    return change


def added(tree: int, row: list[Any], *counts: Wrong) -> Wrong:
    """What says that a tree made one more, and that it was so."""

    def change(answer: list[Any]) -> None:
        answer[MADE][tree].append(row)
        for each in counts:
            each(answer)

    return change


NO_NUMBERS: list[Any] = [-1, None, 1.5, True, "1", [], {}, 2**70]


WRONG: dict[str, Wrong] = {
    **{f"parent {each}": at(MADE, 0, 0, PARENT, value=each) for each in [*NO_NUMBERS, 1, 9]},
    **{f"wake {each}": at(MADE, 0, 0, WAKE, value=each) for each in [*NO_NUMBERS, 0, 2, 3, 5]},
    **{f"node {each}": at(MADE, 0, 0, NODE, value=each) for each in [*NO_NUMBERS, 0, 1, 3, 99]},
    **{f"time {each}": at(MADE, 0, 0, TIME, value=each) for each in [*NO_NUMBERS, 2**63]},
    **{
        f"time {each} with its document": both(
            at(MADE, 0, 0, TIME, value=each), at(MADE, 0, 0, DOCUMENT, value=document(each))
        )
        for each in (-(2**63), 0, 4, 13, 2**63 - 1)
    },
    "a time that does not advance": both(
        at(MADE, 0, 3, TIME, value=5), at(MADE, 0, 3, DOCUMENT, value=document(5))
    ),
    "a time before the trigger's": both(
        at(MADE, 0, 3, TIME, value=6), at(MADE, 0, 3, DOCUMENT, value=document(6))
    ),
    "another order": exchanged(0, 0, 1),
    "a child before its elders": exchanged(0, 2, 3),
    "twice": added(0, [1, 0, THEN, 8, document(8)], at(ENDED, 1, TIMES, value=3), cut(ENDED, 4)),
    "a row that is short": at(MADE, 0, 0, value=[0, 1, FIRST, 7]),
    "a row that is long": at(MADE, 0, 0, value=[0, 1, FIRST, 7, document(7), {}, 1]),
    "a document of another time": at(MADE, 0, 0, DOCUMENT, value=document(6)),
    "no document": at(MADE, 0, 0, DOCUMENT, value=None),
    "a state where there is none": at(MADE, 0, 0, value=[0, 1, FIRST, 7, document(7), {}]),
    "no state where there is one": at(MADE, 1, 0, value=[0, 5, BY_INPUT, 6, document(6)]),
    **{
        f"a state {each}": at(MADE, 1, 0, STATE, value=each)
        for each in (
            *(None, 1, "x", [], [1], {"read": None}, {"read": 1.5}, {"read": True}, {"read": {}}),
            *({"read": ""}, {"read": "x"}, {"read": "5x"}, {"read": " 5"}, {"read": "5\n"}),
            *({"read": 2**63}, {"read": "1" * 20}, {"read": "\u0665"}, {"x": "5" * 1_000_000}),
        )
    },
    "more trees than there were": both(
        lambda answer: answer[MADE].append([]), at(ENDED, 0, TREE, value=0)
    ),
    "trees that are no list": at(MADE, value={}),
    "a tree that is no list": at(MADE, 0, value=1),
    "failed beyond the trees": both(at(MADE, value=[]), at(ENDED, value=[]), at(FAILED, value=2)),
    **{f"failed {each}": at(FAILED, value=each) for each in [*NO_NUMBERS[1:], -2]},
    "failed and made": both(at(FAILED, value=1), at(ENDED, value=[])),
    "failed and ended": both(at(FAILED, value=1), at(MADE, value=[])),
    "failed and both": at(FAILED, value=0),
    "not even one tree": both(at(MADE, value=[]), at(ENDED, value=[])),
    **{
        f"ended node {each}": at(ENDED, 3, 0, value=each)
        for each in [*NO_NUMBERS, READ, OTHER, 99]
    },
    **{
        f"ended as {each}": at(ENDED, 3, KIND, value=each)
        for each in (
            *("", "timeout", "oom", "crash", "suspended", "policy", "STALE", "nonsense"),
            *("computation-limit", "over-share", None, 1, [], "emitted"),
        )
    },
    **{
        f"ended {each} times": at(ENDED, 3, TIMES, value=each)
        for each in [*NO_NUMBERS, 0, 2, 2**53]
    },
    **{f"ended in tree {each}": at(ENDED, 3, TREE, value=each) for each in [*NO_NUMBERS, 2]},
    **{f"ended by {each}": at(ENDED, 3, WOKEN_BY, value=each) for each in [*NO_NUMBERS, 1, 2]},
    "ended by what does not wake it": at(ENDED, 0, WOKEN_BY, value=1),
    **{f"message {each}": at(ENDED, 3, MESSAGE, value=each) for each in (None, 1, [])},
    "stale with inputs": at(ENDED, 3, value=[FIRST, "stale", 1, 1, 0, "", [5, 7]]),
    **{
        f"inputs {each}": at(ENDED, 0, INPUTS, value=each)
        for each in ([], [5], [5, 7, 8], [5, "7"], [5, 1.5], [5, 2**63], 5, {})
    },
    "an ending that is long": at(ENDED, 0, value=[FIRST, "emitted", 1, 0, 0, "", [5, 7], 1]),
    "an ending twice": both(
        cut(ENDED, 2),
        lambda answer: answer[ENDED].extend([[BY_INPUT, "emitted", 1, 1, 0, "", [6]]] * 2),
    ),
    "an ending that is lacking": cut(ENDED, 4),
    "made, and never ended so": both(cut(ENDED, 0), at(ENDED, 2, TIMES, value=2)),
    "ended so, and not made": at(ENDED, 3, value=[FIRST, "emitted", 1, 1, 0, "", [5, 7]]),
    "other updates than counted": both(at(ENDED, 0, TIMES, value=2), at(ENDED, 1, TIMES, value=1)),
    **{
        f"ticks {each}": at(TICKS, value=each)
        for each in (None, 1, {}, [1], [[1]], [[1, 2, 3]], [[-1, 2]], [[1, 1.5]], [["1", 2]])
    },
    "a part that is short": cut(FAILED),
    "a part that is long": lambda answer: answer.append(1),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_garbage(change: Wrong) -> None:
    """Nothing of it is stored, and the worker is ended."""
    answer = an_answer()
    change(answer)

    with pytest.raises(MalformedAnswer):
        decoded(answer)


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"x", b"1", b"{}", b"[]", b"[[]]", b"null", b"\xff", b"[" * 100_000),
        *(b"[[[],[],[],-1],[[],[],[],-1]]", b"[[[],[],[],-1]]x"),
    ],
)
def test_what_is_no_answer_to_the_call_is_garbage(raw: bytes) -> None:
    """As many answers as calls, and nothing after them."""
    with pytest.raises(MalformedAnswer):
        decode_grown(raw, [CALL], [Known(WIRING)])


@pytest.mark.parametrize("text", [b'"\\ud800"', b'"\xff"', b'"a\nb"'])
def test_texts_are_well_formed(text: bytes) -> None:
    """Half a surrogate pair in a message would stop whoever stores it."""
    with pytest.raises(MalformedAnswer):
        decoded(orjson.dumps(an_answer()).replace(b'"older"', text))


@pytest.mark.parametrize("blank", [b"\n", b"\r", b"\t"])
def test_what_is_stored_is_on_one_line(blank: bytes) -> None:
    """Rows of the history are written line by line."""
    for place in (b'"lastUpdate":', b'"read":'):
        with pytest.raises(MalformedAnswer):
            decoded(orjson.dumps(an_answer()).replace(place, place + blank, 1))


def test_a_long_message_is_clipped() -> None:
    """It is stored with the verdict."""
    answer = an_answer()
    answer[ENDED][3][MESSAGE] = "x" * MAX_MESSAGE
    answer[ENDED][4][MESSAGE] = "x" * (MAX_MESSAGE + 1)
    (part,) = decoded(answer)

    assert part.ended[3].message == "x" * MAX_MESSAGE
    assert part.ended[4].message == "x" * MAX_MESSAGE + "..."
