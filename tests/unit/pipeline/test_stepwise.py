"""Trees one computation at a time: equal to trees grown whole, whatever comes into a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from engine_builders import a_graph, document
from hypothesis import given, settings
from hypothesis import strategies as st
from python_evaluator import PythonEvaluator

from sandbox.trees import Bounds, Call, Event, Grown, Last, Node, Wake, Wiring
from servioticy.domain.cache import Cache
from servioticy.domain.evaluators import steps
from servioticy.domain.evaluators.stepwise import Stepwise
from servioticy.domain.wirings import wiring

CODE = next(node.code for node in a_graph({"c": ("d",)}).regions()[0].wiring.nodes if node.code)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Any region: composites that read each other and streams from outside, by any options."""
    composites, streams = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    everything = range(composites + streams)
    settles = [draw(st.booleans()) for _ in range(composites)]
    nodes: list[Node] = []
    for number in range(composites):
        # All that arrives where something settles comes from outside.
        readable = everything[composites:] if settles[number] else everything
        group = st.lists(st.sampled_from(readable), min_size=1, max_size=2, unique=True)
        inputs = [tuple(each) for each in draw(st.lists(group, min_size=1, max_size=3))]
        own = draw(st.booleans())
        inputs += [(number,)] * own
        nodes.append(
            Node(
                (),
                CODE,
                tuple(inputs),
                len(inputs) - 1 if own else None,
                settles[number],
                draw(st.booleans()),
                draw(st.booleans()),
                f"n{number}",
            )
        )
    nodes += [Node(name=f"n{number}") for number in everything[composites:]]
    wakes: list[list[Wake]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for argument, members in enumerate(node.inputs):
            for member in members if argument != node.own else ():
                if member != number:
                    wakes[member].append(Wake(len(wakes[member]), number, argument))
    wired = wiring(
        tuple(
            replace(each, wakes=tuple(theirs)) for each, theirs in zip(nodes, wakes, strict=True)
        )
    )
    return Call(
        wired,
        tuple(f"n{number}" for number in range(composites)) + ("",) * streams,
        draw(_lasts(composites + streams)),
        draw(st.lists(_trees(wired, composites), min_size=1, max_size=4)),
        Bounds(draw(st.integers(1, 5)), 10**6),
    )


@st.composite
def _lasts(draw: st.DrawFn, count: int) -> list[Last]:
    known = [number for number in range(count) if draw(st.booleans())]
    return [Last(number, at := draw(st.integers(0, 9)), document(at)) for number in known]


@st.composite
def _trees(draw: st.DrawFn, wired: Wiring, composites: int) -> list[Event]:
    """A root of any stream, or updates from regions before, at places of their own."""
    timestamp = st.integers(0, 12)
    if draw(st.booleans()):
        return [
            Event(draw(st.integers(0, len(wired.nodes) - 1)), at := draw(timestamp), document(at))
        ]
    # Beyond all wakes of the region, so that no path is of one of its own updates.
    paths = st.lists(st.integers(50, 53), min_size=1, max_size=3).map(tuple)
    found = draw(st.lists(paths, min_size=1, max_size=3, unique=True))
    return [
        Event(
            draw(st.integers(composites, len(wired.nodes) - 1)),
            at := draw(timestamp),
            document(at),
            path,
            draw(st.sampled_from([None, None, -1])),
        )
        for path in sorted(found, key=lambda each: (len(each), each))
    ]


def a_sum(trigger: object, values: Sequence[bytes | None]) -> int:
    return (sum(sum(each or b"") for each in values) + sum(str(trigger).encode())) % 1000


@settings(settings.get_profile("law"))
@given(calls())
def test_step_by_step_a_tree_is_what_it_is_whole(call: Call) -> None:
    by = PythonEvaluator(a_sum)
    (expected,) = by.evaluate("1", [call])

    def ask(_tree: int, _node: int, step: Call) -> Grown:
        return by.evaluate("1", [step])[0]

    found = Stepwise(call, ask).grow()

    assert found.made == expected.made
    assert sorted(found.ended) == sorted(expected.ended)


def test_what_is_stale_is_not_asked_for() -> None:
    """It ends as an evaluator would end it."""
    node = Node((), CODE, ((1,),))
    wired = wiring((node, Node((Wake(0, 0, 0),))))
    call = Call(wired, ("c", ""), [Last(0, 5, None)], [[Event(1, 5, b"{}")]], Bounds(9, 9))

    def never(_tree: int, _node: int, _step: Call) -> Grown:
        raise AssertionError

    found = Stepwise(call, never).grow()

    (expected,) = PythonEvaluator(a_sum).evaluate("1", [call])
    assert (found.made, found.ended) == (expected.made, expected.ended)


def test_a_tree_with_too_many_computations_is_failed() -> None:
    (region,) = a_graph({"c": ("d",), "e": ("c",)}).regions()
    event = Event(len(region.streams) - 1, 1, document(1))
    newer = Last(0, 9, None)
    call = Call(region.wiring, region.names, [newer], [[event], [event]], Bounds(9, 1))
    by = PythonEvaluator(a_sum)

    def ask(_tree: int, _node: int, step: Call) -> Grown:
        return by.evaluate("1", [step])[0]

    assert not Stepwise(call, ask).grow().failed
    too_much = replace(call, lasts=[])
    found = Stepwise(too_much, ask).grow()
    assert (list(found.made), found.failed) == ([], True)


def test_a_step_has_its_inputs_and_not_all_members_of_its_groups() -> None:
    """A group may have ten thousand of them; equal ones share a wiring, whoever is the newest."""
    members = tuple(range(4))
    wakes = (Wake(0, 4, 0), Wake(1, 4, 1))
    composite = Node((), CODE, (members, members[:2], (4,)), own=2)
    whole = wiring((*[Node(wakes)] * 2, *[Node(wakes[:1])] * 2, composite))
    call = Call(whole, ("",) * 4 + ("c",), [], [], Bounds(9, 9), {})
    known = {each: Last(each, 10 - each, document(1)) for each in members}

    one = steps.step(call, 4, Event(0, 11, document(1)), wakes[0], known)
    known[1] = Last(1, 20, document(1))
    other = steps.step(call, 4, Event(3, 11, document(1)), wakes[0], known)
    same = steps.step(call, 4, Event(0, 11, document(1)), wakes[1], known)

    assert other.wiring.nodes[0].inputs == ((1,), (2,), (0,))
    assert [each.node for each in other.lasts] == [1, 2]
    assert one.wiring.nodes[0].inputs == ((1,), (1,), (0,))
    assert same.wiring is other.wiring


def test_what_is_kept_of_single_composites_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what they read: composites of many inputs would fill the memory by their number."""
    kept: Cache[tuple[object, ...], Wiring] = Cache(10)
    monkeypatch.setattr(steps, "_singles", kept)
    whole = Wiring("w", tuple(Node((), CODE, ((1,), (2,), (3,))) for _ in range(4)))

    for node in range(4):
        steps.single(whole, node, (1, 2, 3), ())

    found = [kept.get((whole.id, node, (1, 2, 3), (), None, None, ())) for node in range(4)]
    assert [each is not None for each in found] == [False, False, True, True]
