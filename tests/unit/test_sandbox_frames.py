"""Which calls go into a frame together, and what a step has where no worker has a say in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sandbox_trees import a_call, a_call_of, a_formula, an_event

from sandbox.host.frames import (
    EVENT_BYTES,
    MAX_BYTES,
    MAX_TREES,
    MAX_WINDOW_BYTES,
    ended_step,
    frames,
    is_step,
    is_too_large,
)
from sandbox.trees import Call, Ended, Event, Last, Node, Wake, Wiring

PROGRAM = a_formula("$0")


def of_trees(count: int) -> Call:
    return a_call(PROGRAM, *[an_event()] * count)


def of_bytes(size: int, *, last: int = 0) -> Call:
    """A call of one tree that takes so many bytes, `last` of them in a last update."""
    lasts = [Last(0, 1, b" " * (last - EVENT_BYTES))] if last else []
    return a_call(PROGRAM, Event(0, 2, b" " * (size - last - EVENT_BYTES)), lasts=lasts)


def shape(calls: list[Call]) -> list[list[int]]:
    """How many trees of each call are in which frame."""
    return [[len(call.trees) for call in frame] for frame in frames(calls)]


def test_nothing_is_no_frame() -> None:
    assert shape([]) == []


@pytest.mark.parametrize(
    ("counts", "cut"),
    [
        ([MAX_TREES], [[MAX_TREES]]),
        ([MAX_TREES - 1, 1], [[MAX_TREES - 1, 1]]),
        ([MAX_TREES - 1, 2], [[MAX_TREES - 1], [2]]),
        ([MAX_TREES, 1], [[MAX_TREES], [1]]),
        ([MAX_TREES + 1], [[MAX_TREES]]),
        ([1, MAX_TREES + 1, 1], [[1], [MAX_TREES], [1]]),
        ([0, 1], [[0, 1]]),
    ],
)
def test_a_frame_has_so_many_trees_and_not_one_more(
    counts: list[int], cut: list[list[int]]
) -> None:
    """What is left of a call is gone on with by whoever asked."""
    assert shape([of_trees(each) for each in counts]) == cut


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ([MAX_BYTES], [[1]]),
        ([MAX_BYTES - 200, 200], [[1, 1]]),
        ([MAX_BYTES - 200, 201], [[1], [1]]),
        ([200, MAX_BYTES + 1, 200], [[1], [1], [1]]),
    ],
)
def test_a_frame_has_so_many_bytes_and_not_one_more(
    sizes: list[int], cut: list[list[int]]
) -> None:
    """A tree that is too large is alone."""
    assert shape([of_bytes(each) for each in sizes]) == cut
    assert shape([of_bytes(each, last=90) for each in sizes]) == cut


def test_of_a_call_too_large_the_first_trees_are_taken() -> None:
    """As many as fit; one, where what they read is too large alone."""
    half = Event(0, 2, b" " * (MAX_BYTES // 2 - EVENT_BYTES))
    large = Last(0, 1, b" " * MAX_BYTES)

    assert shape([a_call(PROGRAM, half, half, half)]) == [[2]]
    assert shape([a_call(PROGRAM, half, half._replace(document=half.document + b" "))]) == [[1]]
    assert shape([a_call(PROGRAM, half, half, lasts=[large])]) == [[1]]


@pytest.mark.parametrize(("last", "event"), [(0, MAX_BYTES), (5, MAX_BYTES - 5), (MAX_BYTES, 0)])
def test_a_tree_may_be_so_large_and_not_a_byte_larger(last: int, event: int) -> None:
    """With all that it reads."""
    call = a_call(PROGRAM, Event(0, 2, b" " * event), lasts=[Last(0, 1, b" " * last)])
    ((one,),) = call.trees

    assert not is_too_large(call)
    assert is_too_large(replace(call, trees=[[one._replace(document=one.document + b" ")]]))
    assert not is_too_large(replace(call, trees=[]))


def test_states_count_as_documents_do() -> None:
    """Else a frame could be larger than a worker reads, and the worker would die of it."""
    state = Last(0, 1, None, b" " * MAX_BYTES)

    assert not is_too_large(a_call(PROGRAM, Event(0, 2, b""), lasts=[state]))
    assert is_too_large(a_call(PROGRAM, Event(0, 2, b" "), lasts=[state]))
    calls = [a_call(PROGRAM, an_event(), lasts=[state]), a_call(PROGRAM, an_event())]
    assert shape(calls) == [[1], [1]]


def test_a_step_is_one_update_that_wakes_one_composite() -> None:
    step = an_event()._replace(only=0)

    assert is_step(a_call(PROGRAM, step))
    assert not is_step(a_call(PROGRAM, step, step))
    assert not is_step(a_call(PROGRAM, [step, step]))
    assert not is_step(a_call(PROGRAM, an_event()))
    assert not is_step(a_call(PROGRAM, step._replace(only=-1))), "it wakes nobody"
    assert not is_step(a_call(PROGRAM))


WIRING = Wiring(
    "w",
    (
        Node((Wake(2, 3, 1),)),
        Node(),
        Node(),
        Node((), PROGRAM, ((1, 2), (0, 1), (0,), (3,), (4,)), own=3),
        Node(),
    ),
)


@pytest.mark.parametrize(
    ("at", "inputs"),
    [(5, [9, 5, 8, 6, None]), (8, [9, 8, 8, 6, None]), (10, [9, 10, 10, 6, None])],
)
def test_a_step_that_is_ended_tells_what_it_read(at: int, inputs: list[int | None]) -> None:
    """As a worker would: of a group the newest; the update is its stream's last, if not older."""
    lasts = [Last(0, 8, b"0"), Last(1, 7, b"0"), Last(2, 9, None), Last(3, 6, b"0")]
    call = a_call_of(WIRING, Event(0, at, b"0", only=2), lasts=lasts)

    grown = ended_step(call, "timeout", "too long")

    assert (grown.made, grown.failed) == ([[]], False)
    assert grown.ended == [Ended(3, "timeout", 1, 0, 0, "too long", inputs)]


@pytest.mark.parametrize(
    ("windowed", "size", "too_large"),
    [
        (False, MAX_BYTES, False),
        (False, MAX_BYTES + 1, True),
        (True, MAX_BYTES + 1, False),
        (True, MAX_WINDOW_BYTES, False),
        (True, MAX_WINDOW_BYTES + 1, True),
    ],
)
def test_windows_may_be_larger_than_other_updates(
    windowed: bool, size: int, too_large: bool
) -> None:
    """One that tells of ten thousand devices comes in a frame of its own."""
    call = a_call(PROGRAM, Event(0, 2, b" " * size), windowed=windowed)

    assert is_too_large(call) == too_large


def test_a_step_over_windows_had_the_inputs_that_woke_it() -> None:
    """Whatever has come of their stream since; its own last output is another matter."""
    nodes = (Node((Wake(0, 1, 0),)), Node((), PROGRAM, ((0,), (0,), (1,)), own=2, windowed=True))
    lasts = [Last(0, 9, b"{}"), Last(1, 3, b"{}")]
    call = a_call_of(Wiring("windows", nodes), an_event(at=5)._replace(only=0), lasts=lasts)

    (ended,) = ended_step(call, "timeout", "").ended

    assert ended.inputs == [5, 5, 3]
