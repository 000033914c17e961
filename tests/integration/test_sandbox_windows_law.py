"""Random trees of windows are in both engines what the contract says, as Python reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import plain_trees
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_trees import Computation
from sandbox_pools import a_pool
from sandbox_trees import BOUNDS, a_call_of, an_update, step_by_step, told
from sandbox_windows import a_program, an_event, numbers

from sandbox import SandboxPool
from sandbox.trees import Call, Event, Last, Node, Wake, Wiring
from servioticy.domain.evaluators.stepwise import Stepwise

EXAMPLES = {"v8": 150, "quickjs": 30}


@pytest.fixture(scope="module", params=list(EXAMPLES))
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param, budget_ms=1000)
    yield pool
    pool.close()


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Windows (0) wake a composite (1), which another stream reads (2); several in one tree."""
    inputs = draw(st.integers(1, 4))
    own = draw(st.none() | st.integers(1, inputs - 1)) if inputs > 1 else None
    names = [f"a{number}" for number in range(inputs)]
    terms = [
        f"{n + 1} * ({a} === null ? 7 : {f'iot.value({a})' if n == own else f'{a}.count'})"
        for n, a in enumerate(names)
    ]
    body = f"var sum = ({' + '.join(terms)}) % 1009; return sum % 5 === 4 ? null : sum"
    code = a_program(f"function({', '.join(names)}) {{ {body} }}", *names, type_="number")
    same = a_program("function(b) { return iot.value(b) }", "b", type_="number")
    windowed = Node(
        (Wake(0, 2, 0),),
        code,
        tuple((1,) if number == own else (0,) for number in range(inputs)),
        own,
        by_input=draw(st.booleans()),
        skips=draw(st.booleans()),
        name="results",
        windowed=True,
    )
    wiring = Wiring(
        f"{code.id} {windowed.by_input} {windowed.skips}",
        (Node((Wake(0, 1, 0),), name="windows"), windowed, Node((), same, ((1,),))),
    )
    times = st.integers(1, 12)
    revisions = st.sampled_from(
        [
            {},
            {},
            {"revision": 3},
            {"revision": 12, "early": True},
            {"revision": 2, "retracted": True},
        ]
    )
    counts = st.lists(st.integers(0, 9), min_size=inputs, max_size=inputs)

    def event(path: tuple[int, ...]) -> Event:
        windows = [numbers(*[1.0] * each) for each in draw(counts)]
        return an_event(*windows, at=draw(times), path=path, **draw(revisions))

    trees = [
        [event((number,)) for number in range(1, 1 + draw(st.integers(1, 3)))]
        for _ in range(draw(st.integers(1, 4)))
    ]
    lasts = [Last(1, 4, an_update(3, 4))] if draw(st.booleans()) else []
    return a_call_of(wiring, *trees, lasts=lasts, bounds=BOUNDS)


def in_python(call: Call) -> Call:
    """The same with the codes in Python."""

    def channels(value: int) -> Any:
        return {"t": {"current-value": value}}

    def result(given: Computation) -> Any:
        own = call.wiring.nodes[1].own
        total = 0
        for number, each in enumerate(given.inputs):
            value = 7
            if each is not None:
                document = json.loads(each.document)
                value = (
                    value_in(document) if number == own else document["windows"][number]["count"]
                )
            total += (number + 1) * value
        total %= 1009
        if total % 5 == 4:
            raise plain_trees.Ends("filtered")
        return channels(total)

    def same(given: Computation) -> Any:
        (read,) = given.inputs
        assert read is not None
        return channels(value_in(json.loads(read.document)))

    source, windowed, reader = call.wiring.nodes
    nodes = (source, replace(windowed, code=result), replace(reader, code=same))
    return replace(call, wiring=replace(call.wiring, nodes=nodes))


def value_in(document: Any) -> int:
    found: int = document["channels"]["t"]["current-value"]
    return found


def test_windows_are_those_of_what_wakes(pool: SandboxPool, request: Any) -> None:
    """In trees and step by step; with states, own last outputs, windows that are stale, and
    such as have not ended, or are told again."""

    @settings(
        max_examples=examples(EXAMPLES[request.node.callspec.params["pool"]]),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def holds(call: Call) -> None:
        expected = told(plain_trees.grow(in_python(call)))
        (found,) = pool.grow("tenant", [call])
        assert told(found) == expected
        assert told(step_by_step(pool, call)) == expected
        steps = Stepwise(call, lambda _tree, _node, step: pool.grow("tenant", [step])[0])
        assert told(steps.grow()) == expected

    holds()
