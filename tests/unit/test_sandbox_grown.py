"""What the pool believes of what a worker says that its trees made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from sandbox_trees import a_call_of, a_formula, an_event

from sandbox.host.answers import MAX_MESSAGE, MalformedAnswer
from sandbox.host.grown import MAX_TICKS, Known, Part, decode_grown
from sandbox.trees import Bounds, Call, Ended, Last, Made, Node, Wake, Wiring

CODE = a_formula("$0")
READ, OTHER, FIRST, THEN, BY_INPUT = range(5)
WIRING = Wiring(
    "w",
    (
        Node((Wake(1, FIRST, 0), Wake(3, THEN, 1), Wake(5, BY_INPUT, 0)), name="read"),
        Node((Wake(0, FIRST, 1),), name="other"),
        Node((Wake(0, THEN, 0),), CODE, ((READ,), (OTHER,))),
        Node((), CODE, ((FIRST,), (READ,))),
        Node((), CODE, ((READ,),), by_input=True),
    ),
)
LASTS = (Last(OTHER, 7, b"0"), Last(FIRST, 4, b"0"))
CALL = a_call_of(WIRING, an_event(at=5), an_event(at=6), lasts=LASTS, bounds=Bounds(5, 9))


def document(at: int) -> dict[str, Any]:
    return {"channels": {"t": {"current-value": 1}}, "lastUpdate": at}


def an_answer() -> list[Any]:
    """All that is true: each of the two trees made three updates, and one was stale."""
    return [
        [
            [
                [0, 1, FIRST, 7, document(7)],
                [0, 3, THEN, 5, document(5)],
                [0, 5, BY_INPUT, 5, document(5), {"read": 5}],
                [1, 0, THEN, 7, document(7)],
            ],
            [[0, 5, BY_INPUT, 6, document(6), {"read": "6"}]],
        ],
        [
            [FIRST, "emitted", 1, 0, 0, "", [5, 7]],
            [THEN, "emitted", 2, 0, 1, "", [7, 5]],
            [BY_INPUT, "emitted", 2, 1, 0, "", [6]],
            [FIRST, "stale", 1, 1, 0, "older"],
            [THEN, "stale", 1, 1, 0, "older"],
        ],
        [[FIRST, 2], [THEN, 0], [READ, 5], [BY_INPUT, -1], [THEN, MAX_TICKS + 1], [99, 1]],
        -1,
    ]


def decoded(*answers: Any, calls: Sequence[Call] = (CALL,)) -> list[Part]:
    texts = [
        each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode()
        for each in answers
    ]
    raw = b"[%b]" % b",".join(texts)
    return decode_grown(raw, calls, [Known(each.wiring, {}) for each in calls])


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


MADE, ENDED, TICKS, FAILED = range(4)
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


PARENT, WAKE, NODE, TIME, DOCUMENT, STATE = range(6)
KIND, TIMES, TREE, WOKEN_BY, MESSAGE, INPUTS = range(1, 7)
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
        decode_grown(raw, [CALL], [Known(WIRING, {})])


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
