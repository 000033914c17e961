"""What a worker truthfully says of a call: two trees of a small wiring."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sandbox_trees import a_call_of, a_formula, an_event

from sandbox.host.grown import MAX_TICKS, Known, Part, decode_grown
from sandbox.trees import Bounds, Call, Last, Node, Wake, Wiring

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
    return decode_grown(raw, calls, [Known(each.wiring) for each in calls])


MADE, ENDED, TICKS, FAILED = range(4)


PARENT, WAKE, NODE, TIME, DOCUMENT, STATE = range(6)


KIND, TIMES, TREE, WOKEN_BY, MESSAGE, INPUTS = range(1, 7)
