"""How long frames and calls may take: what is slow comes later, what takes too long is ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hostile_programs import HANG, a_program, is_right
from sandbox_pools import a_pool
from sandbox_trees import (
    a_call,
    a_call_of,
    a_function,
    an_event,
    events,
    grow_all,
    joined,
    kinds,
    rest_of,
    value_of,
    values,
)

from sandbox import Program, SandboxPool, TookTooLong
from sandbox.host.frames import MAX_BYTES, MAX_TREES
from sandbox.trees import Bounds, Call, Event, Grown, Last, Node, Wake, Wiring

# The allow-list would refuse most of what is tried here.
POOL_OPTIONS = {"allow_list": False, "budget_ms": 100}


def busy_for(turns: int, name: str = "") -> Program:
    return a_function(f"var t=0;for(var i=0;i<{turns};i++)t+=i;return 1{name}")


def test_many_slow_calls_together_take_too_long(pool: SandboxPool) -> None:
    """Each within its budget, a thousand of them a minute: the caller's allowance ends it."""
    slow = [a_call(busy_for(200_000, f"//{n}\n"), an_event()) for n in range(3000)]
    assert is_right(pool)
    started = time.monotonic()

    with pytest.raises(TookTooLong) as caught:
        while True:
            pool.grow("tenant", slow, within=0.3 - (time.monotonic() - started))

    assert caught.value.seconds <= time.monotonic() - started
    assert 0 < len(pool.program_cpu_seconds()) < len(slow)  # not all have been tried
    assert pool.suspended() == {}
    assert is_right(pool)


def test_a_frame_cut_short_by_the_allowance_blames_nobody(pool: SandboxPool) -> None:
    """It had less than its budget: the culprit may be any of its programs, or none."""
    hangs, prepared = a_call(a_program(HANG), *events(50)), []
    for _ in range(4):
        assert is_right(pool)
        with pytest.raises(TookTooLong) as caught:
            pool.grow("tenant", [hangs], within=0.12)
        prepared.append(caught.value.prepared)

    assert not all(prepared), "its program has to be made ready anew: nothing was gained"
    assert pool.suspended() == {}
    assert pool.cpu_seconds()["tenant"] > 0
    assert pool.program_cpu_seconds()[a_program(HANG).id] > 0


def test_isolating_after_a_failure_counts(pool: SandboxPool) -> None:
    """A first frame that failed within the allowance is not followed by two hundred others."""
    hanging = [a_call(a_program(HANG), *events(3)) for _ in range(200)]
    with pytest.raises(TookTooLong):
        pool.grow("tenant", hanging, within=0.6)


def test_an_allowance_that_suffices_changes_nothing(pool: SandboxPool) -> None:
    """The culprit is found and blamed as ever."""
    grown = grow_all(pool, a_call(a_program(HANG), *events(3)), within=60)

    assert values(grown) == [[7], [], [7]]
    assert kinds(grown) == {"emitted": 2, "timeout": 1}


@pytest.fixture(params=["v8", "quickjs"])
def patient(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """One that kills nothing because the machine is busy."""
    pool = a_pool(allow_list=False, engine=request.param, budget_ms=1000)
    yield pool
    pool.close()


def in_pieces(pool: SandboxPool, call: Call) -> list[Grown]:
    """What the pool gives for a call, and for what is left of it, until there is nothing."""
    pieces = []
    while call.trees:
        (grown,) = pool.grow("tenant", [call])
        assert grown.made
        pieces.append(grown)
        call = rest_of(call, grown)
    return pieces


def whole(pieces: list[Grown]) -> Grown:
    grown = Grown([], [])
    for each in pieces:
        grown = joined(grown, each)
    return grown


SLOW = "var t=0;for(var i=0;i<200000;i++)t+=i;"


def test_what_is_slow_comes_in_several_frames_and_nobody_is_killed(patient: SandboxPool) -> None:
    """Forty trees of some milliseconds each: no frame begins one after its 40 ms."""
    counts = "return B === null ? 1 : B.channels.t['current-value'] + 1"
    code = f"function(A, B){{{SLOW}{counts}}}"
    slow = replace(a_function(""), id=code, arguments=("A", "B"))
    slow = replace(slow, channels=(replace(slow.channels[0], code=code),))

    pieces = in_pieces(patient, a_call(slow, *events(40), own=1))

    assert len(pieces) > 1
    assert values(whole(pieces)) == [[number] for number in range(1, 41)]
    assert kinds(whole(pieces)) == {"emitted": 40}
    assert patient.kills == {}
    assert patient.suspended() == {}


def test_calls_that_there_was_no_time_for_have_nothing_yet(patient: SandboxPool) -> None:
    """They were not failed: who asked goes on with them."""
    slow = [a_call(a_function(f"{SLOW}return {n}"), *events(5)) for n in range(12)]

    first = patient.grow("tenant", slow)

    assert first[0].made
    assert not first[-1].made
    assert not any(each.failed for each in first)
    for number, (call, grown) in enumerate(zip(slow, first, strict=True)):
        rest = grow_all(patient, rest_of(call, grown))
        assert values(joined(grown, rest)) == [[number]] * 5
    assert patient.kills == {}


def test_more_trees_than_a_frame_takes_are_one_after_the_other(patient: SandboxPool) -> None:
    """The last output goes from frame to frame."""
    code = "function(A, B){return B === null ? 1 : B.channels.t['current-value'] + 1}"
    count = replace(a_function(""), id=code, arguments=("A", "B"))
    count = replace(count, channels=(replace(count.channels[0], code=code),))

    pieces = in_pieces(patient, a_call(count, *events(2 * MAX_TREES + 500), own=1))

    assert len(pieces) >= 3
    assert max(len(each.made) for each in pieces) <= MAX_TREES
    assert value_of(whole(pieces).made[-1][0]) == 2500


def test_more_bytes_than_a_frame_takes_come_in_several(patient: SandboxPool) -> None:
    """Each tree alone is small enough."""
    large = b'{"channels":{"t":{"current-value":%d}},"lastUpdate":1%b}'
    trees = [Event(0, n, large % (n, b" " * (MAX_BYTES // 4))) for n in range(1, 11)]

    pieces = in_pieces(patient, a_call(a_function("return A.channels.t['current-value']"), *trees))

    assert max(len(each.made) for each in pieces) <= 3
    assert values(whole(pieces)) == [[n] for n in range(1, 11)]


FANS_OUT = 300


def much(text: int) -> Wiring:
    """One update wakes many composites, each of which makes so many characters."""
    program = a_function(f"return 'x'.repeat(A.lastUpdate === 2 ? {text} : 1)", "string")
    wakes = tuple(Wake(number, number + 1, 0) for number in range(FANS_OUT))
    return Wiring(f"much {text}", (Node(wakes), *[Node((), program, ((0,),))] * FANS_OUT))


def test_a_tree_that_makes_too_much_fails_and_those_before_it_are_kept(
    patient: SandboxPool,
) -> None:
    """What it makes would not fit into an answer; step by step it does."""
    call = a_call_of(much(5000), *events(4))

    pieces = []
    while not (grown := patient.grow("tenant", [call])[0]).failed:
        pieces.append(grown)
        call = rest_of(call, grown)

    assert [len(each) for each in whole(pieces).made] == [FANS_OUT]
    assert [tree[0].timestamp for tree in call.trees] == [2, 3, 4]
    rest = grow_all(patient, call)
    assert [len(each) for each in rest.made] == [FANS_OUT] * 3
    assert [len(text) for text in values(rest)[0]] == [5000] * FANS_OUT
    assert patient.kills == {}


def test_trees_that_make_much_together_come_in_several_frames(patient: SandboxPool) -> None:
    """Each fits, all do not."""
    call = a_call_of(much(1), *[Event(0, at, b'{"lastUpdate":2}') for at in range(1, 101)])

    pieces = in_pieces(patient, call)

    made = [each for tree in whole(pieces).made for each in tree]
    assert sum(len(each.document) for each in made) > 1_000_000  # more than is begun with
    assert len(pieces) > 1
    assert [len(each) for each in whole(pieces).made] == [FANS_OUT] * 100


@pytest.mark.parametrize("most", [FANS_OUT - 1, FANS_OUT])
def test_a_tree_has_so_many_computations_and_not_one_more(patient: SandboxPool, most: int) -> None:
    """Trees before it are kept. A step is one of them."""
    small = Node((Wake(0, FANS_OUT + 2, 0),))
    wiring = much(1)
    composite = replace(wiring.nodes[1], inputs=((FANS_OUT + 1,),))
    wiring = Wiring("bounded", (*wiring.nodes, small, composite))
    few, many = Event(FANS_OUT + 1, 1, b"{}"), Event(0, 2, b"{}")
    call = a_call_of(wiring, few, many, few._replace(timestamp=3), bounds=Bounds(1, most))

    if most == FANS_OUT:
        # On a busy machine what is left of the frame's time is not enough for all three.
        made = whole(in_pieces(patient, call)).made
        assert [len(each) for each in made] == [1, FANS_OUT, 1]
    else:
        (first,) = patient.grow("tenant", [call])
        grown = [first, *patient.grow("tenant", [rest_of(call, first)])]
        assert [[len(each) for each in one.made] for one in grown] == [[1], []]
        assert [one.failed for one in grown] == [False, True]
        step = replace(call, trees=[[many._replace(only=5)]])
        assert [len(each) for each in patient.grow("tenant", [step])[0].made] == [1]


@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1])
def test_a_last_update_may_be_so_large_and_not_a_byte_larger(
    patient: SandboxPool, size: int
) -> None:
    """With the update that is to be computed."""
    program = replace(a_function("return A === null ? 0 : 1"), arguments=("A", "B"))
    event = an_event()
    last = Last(1, 1, b"1".rjust(size - len(event.document)))

    (grown,) = patient.grow("tenant", [a_call(program, event, lasts=[last])])

    assert grown.failed == (size > MAX_BYTES)
