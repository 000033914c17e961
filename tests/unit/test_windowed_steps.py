"""A computation over windows as a call of its own: what wakes it is all of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_trees import an_event

from sandbox import ProcessorSeconds
from sandbox.trees import Bounds, Call, Grown, Last, Made, Node, Wake, Wiring
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.evaluators.steps import inputs_read, step

WAKE = Wake(0, 1, 0)
WINDOWED = Node((), None, ((0,), (0,), (1,)), own=2, windowed=True)
WIRING = Wiring("windows", (Node((WAKE,)), WINDOWED))
LASTS = {0: Last(0, 9, b"newer windows"), 1: Last(1, 3, b"own")}
BOUNDS = Bounds(9, 9)


def test_each_input_is_what_wakes_but_for_its_own_output() -> None:
    assert inputs_read(WINDOWED, an_event(at=5), WAKE, LASTS) == [0, 0, 1]


def test_a_step_over_windows_takes_no_others_with_it() -> None:
    """They would be as large again, and nobody reads them."""
    whole = Call(WIRING, ["", "code"], list(LASTS.values()), [], BOUNDS)

    asked = step(whole, 1, an_event(at=5), WAKE, LASTS)

    assert asked.lasts == [Last(0, 3, b"own")]
    assert asked.wiring.nodes[0].windowed
    assert asked.wiring.nodes[0].inputs == ((1,), (1,), (0,))


class OneByOne:
    """A sandbox that grows the first tree of what it is asked only."""

    def __init__(self) -> None:
        self.lasts: list[Sequence[Last]] = []

    def grow(self, tenant: str, calls: Sequence[Call], within: float | None = None) -> list[Grown]:
        (call,) = calls
        self.lasts.append(call.lasts)
        return [Grown([[Made(0, 0, 1, call.trees[0][0].timestamp, b"result")]], [])]

    def is_ready(self, tenant: str) -> bool:
        return True

    def growing_seconds_of(self, tenant: str) -> ProcessorSeconds:
        raise NotImplementedError


def test_windows_that_were_computed_are_not_sent_again() -> None:
    """A call may come back with its first trees only: the rest is asked for from there."""
    sandbox = OneByOne()
    trees = [[an_event(at=at)] for at in (5, 6, 7)]

    JavaScript(sandbox).evaluate("tenant", [Call(WIRING, ["", "code"], [], trees, BOUNDS)])

    assert sandbox.lasts == [[], [Last(1, 5, b"result")], [Last(1, 6, b"result")]]
