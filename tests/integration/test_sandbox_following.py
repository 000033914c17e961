"""What follows revisions is in both engines what the contract says, as Python reads it."""

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
from sandbox_trees import BOUNDS, a_call_of, an_update, told
from sandbox_windows import a_program

from sandbox import SandboxPool
from sandbox.trees import FOLLOWERS, FOLLOWS, Call, Event, Last, Node, Wake, Wiring
from servioticy.domain.evaluators.stepwise import Stepwise

EXAMPLES = {"v8": 100, "quickjs": 25}
BROUGHT, RESULT, A, B, READER = range(5)


@pytest.fixture(scope="module", params=list(EXAMPLES))
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param, budget_ms=1000)
    yield pool
    pool.close()


def wiring(*, by_input: bool = False) -> Wiring:
    """A composite of a and b, to which revisions of these are brought; another one reads it."""
    body = (
        "var sum = iot.value($input) + (a === null ? 10 : 3 * iot.value(a)) "
        "+ (b === null ? 20 : 7 * iot.value(b)); return sum % 5 === 4 ? null : sum"
    )
    code = a_program(f"function($input, a, b) {{ {body} }}", "a", "b", type_="number")
    same = a_program("function(c) { return iot.value(c) }", "c", type_="number")
    nodes = (
        Node((Wake(0, RESULT, FOLLOWS),), brings=True, name="brought"),
        Node((Wake(0, READER, 0),), code, ((A,), (B,)), by_input=by_input),
        Node((Wake(0, RESULT, 0),), name="a"),
        Node((Wake(0, RESULT, 1),), name="b"),
        Node((), same, ((RESULT,),)),
    )
    return Wiring(f"{code.id} {by_input}", nodes)


def brought(
    path: tuple[int, ...], at: int, values: list[int | None], argument: int, **mark: Any
) -> Event:
    windows = [None if n is None else {"value": json.loads(an_update(n, at))} for n in values]
    said = {"windows": windows, "argument": argument, "lastUpdate": at, **mark}
    return Event(BROUGHT, at, json.dumps(said, separators=(",", ":")).encode(), path)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    times, values = st.integers(1, 12), st.integers(0, 9)

    def event(number: int) -> Event:
        path = (number,)
        kind = draw(st.sampled_from(["update", "revision", "brought", "brought"]))
        if kind == "brought":
            argument = draw(st.integers(0, 1))
            two = [draw(values), draw(values)]
            other = draw(st.none() | values)
            two_or_one: list[int | None] = list(two)
            two_or_one[1 - argument] = other
            mark = draw(st.sampled_from([{}, {"retracted": True}]))
            return brought(path, draw(times), two_or_one, argument, revision=7, **mark)
        at = draw(times)
        only = FOLLOWERS if kind == "revision" else None
        return Event(draw(st.sampled_from([A, B])), at, an_update(draw(values), at), path, only)

    trees = [
        [event(number) for number in range(1, 1 + draw(st.integers(1, 3)))]
        for _ in range(draw(st.integers(1, 4)))
    ]
    lasts = [Last(RESULT, 4, an_update(3, 4))] if draw(st.booleans()) else []
    return a_call_of(wiring(by_input=draw(st.booleans())), *trees, lasts=lasts, bounds=BOUNDS)


def in_python(call: Call) -> Call:
    """The same with the codes in Python."""

    def channels(value: int) -> Any:
        return {"t": {"current-value": value}}

    def result(given: Computation) -> Any:
        documents = [None if each is None else json.loads(each.document) for each in given.inputs]
        argument = given.argument
        if argument == FOLLOWS:
            whole = json.loads(given.trigger.document)
            argument = whole["argument"]
            documents = [each and each["value"] for each in whole["windows"]]
        a, b = [each and value_in(each) for each in documents]
        total = value_in(documents[argument])
        total += (10 if a is None else 3 * a) + (20 if b is None else 7 * b)
        if total % 5 == 4:
            raise plain_trees.Ends("filtered")
        return channels(total)

    def same(given: Computation) -> Any:
        (read,) = given.inputs
        assert read is not None
        return channels(value_in(json.loads(read.document)))

    source, composite, a, b, reader = call.wiring.nodes
    nodes = (source, replace(composite, code=result), a, b, replace(reader, code=same))
    return replace(call, wiring=replace(call.wiring, nodes=nodes))


def value_in(document: Any) -> int:
    found: int = document["channels"]["t"]["current-value"]
    return found


def test_a_revision_brings_all_inputs_and_wakes_nobody_behind(pool: SandboxPool) -> None:
    late = brought((1,), 5, [1, 3], 1, revision=3)
    update = Event(A, 9, an_update(4, 9), (2,))
    call = a_call_of(wiring(), [late, update], lasts=[Last(RESULT, 8, an_update(1, 8))])
    (grown,) = pool.grow("tenant", [call])

    (first, second, read) = grown.made[0]
    assert (first.node, first.timestamp) == (RESULT, 5), "though the last output is newer"
    assert json.loads(first.document) == {
        "channels": {"t": {"current-value": 3 + 3 + 21}},
        "lastUpdate": 5,
        "revision": 3,
    }
    assert (second.node, second.timestamp, read.node) == (RESULT, 9, READER)


def test_what_is_brought_is_computed_as_the_contract_says(pool: SandboxPool, request: Any) -> None:
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
        steps = Stepwise(call, lambda _tree, _node, step: pool.grow("tenant", [step])[0])
        assert told(steps.grow()) == expected

    holds()
