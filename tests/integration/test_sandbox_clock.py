"""A clock that runs: by looks and never by real time, so that a replay agrees."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from realm_programs import UPDATE
from realm_programs import a_program as says
from sandbox_pools import a_pool
from sandbox_trees import a_call, a_call_of, a_function, an_event, joined, once, rest_of, result
from sandbox_trees import told as compared

from sandbox import SandboxPool
from sandbox.trees import Call, Event, Grown, Node, Wake, Wiring
from servioticy.bootstrap import sandbox_pool
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.evaluators.stepwise import Stepwise
from servioticy.settings import load

AT = 1_500_000_000_000
ENGINES = ("v8", "quickjs")


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, SandboxPool]]:
    """Behind the allow-list, as a tenant would write it."""
    found = {engine: a_pool(engine=engine, clock="running", budget_ms=1000) for engine in ENGINES}
    yield found
    for pool in found.values():
        pool.close()


@pytest.fixture(params=ENGINES)
def pool(request: pytest.FixtureRequest, pools: dict[str, SandboxPool]) -> SandboxPool:
    return pools[request.param]


def said(pool: SandboxPool, body: str, at: int = AT) -> Any:
    return result(once(pool, a_call(says(f"return String({body})"), Event(0, at, UPDATE))))


def test_a_loop_that_waits_comes_to_an_end(pool: SandboxPool) -> None:
    """As functions of the original's generator of topologies do."""
    waits = a_function(
        "var began = new Date(); while (new Date() - began < 500) {} return Date.now()"
    )

    assert pool.check(waits) == []
    assert result(once(pool, a_call(waits, an_event(at=AT)))) == AT + 501


def test_every_way_to_look_moves_it_on(pool: SandboxPool) -> None:
    """From the trigger's time, a millisecond a look; other dates are what they are."""
    looks = "[Date.now(), +new Date(), Date(), new Date(5).getTime(), Date.now()].join()"

    first, second, text, other, last = said(pool, looks).split(",")

    assert [int(first), int(second), int(other), int(last)] == [AT, AT + 1, 5, AT + 3]
    assert "2017" in text


def test_a_helper_goes_by_the_trigger(pool: SandboxPool) -> None:
    """How old an input is does not depend on how often a script has looked."""
    look = "[iot.age(A), Date.now(), Date.now(), iot.age(A)].join()"

    first, *_, last = said(pool, look, at=31).split(",")

    assert first == last == "30"


def test_time_goes_on_where_one_more_is_no_other_number(pool: SandboxPool) -> None:
    """Timestamps in nanoseconds are rounded, and a loop that waits ends all the same."""
    waits = a_function("var began = Date.now(); while (Date.now() - began < 1000) {} return 1")

    assert result(once(pool, a_call(waits, an_event(at=1_500_000_000 * 10**9)))) == 1


@pytest.mark.parametrize("name", ["performance", "Temporal", "setTimeout", "Intl", "console"])
def test_there_is_no_other_clock(pool: SandboxPool, name: str) -> None:
    assert said(pool, f"typeof {name}") in {"undefined", "policy"}


def test_what_the_setting_says() -> None:
    """Frozen, if it says nothing."""
    assert load().sandbox.clock == "frozen"
    pool = sandbox_pool(load(overrides={"script_clock": "running"}))
    assert pool.options.clock == "running"
    pool.close()


# ---- The law of replay. ---------------------------------------------------------------------

LOOKS = "var n = A.lastUpdate % 7; for (var i = 0; i < n; i++) new Date();"
CHAIN = (
    LOOKS + "return Date.now()",
    "var began = Date.now(); while (Date.now() - began < iot.value(A) % 50) {} return Date.now()",
    "return iot.value(A) % 2 ? new Date() - Date.now() : +new Date()",
)


def a_chain() -> Wiring:
    """Each reads the one before, and the last one the update, too."""
    nodes = [Node((Wake(0, 1, 0), Wake(1, 3, 0)))]
    for number, body in enumerate(CHAIN, start=1):
        wakes = (Wake(0, number + 1, 0),) if number < len(CHAIN) else ()
        inputs = ((0, 2),) if number == len(CHAIN) else ((number - 1,),)
        nodes.append(Node(wakes, a_function(body), inputs))
    return Wiring("clocks", tuple(nodes))


def in_batches(pool: SandboxPool, call: Call, cuts: Sequence[int], kills: Sequence[int]) -> Grown:
    """The log in batches; before some of them the process is killed."""
    whole, rest = Grown([], []), call
    for number, size in enumerate([*cuts, len(call.trees)]):
        if not rest.trees:
            break
        worker = pool._workers.get("tenant")
        if number in kills and worker is not None:
            os.kill(worker.pid, signal.SIGKILL)
        batch = replace(rest, trees=rest.trees[:size])
        (grown,) = JavaScript(pool).evaluate("tenant", [batch])
        whole, rest = joined(whole, grown), rest_of(rest, grown)
    return whole


@st.composite
def logs(draw: st.DrawFn) -> tuple[Call, list[int], list[int]]:
    """A log, the sizes of its batches, and before which of them the process is killed."""
    times = draw(st.lists(st.integers(AT, AT + 10**6), min_size=1, max_size=12, unique=True))
    trees = [an_event(number, at) for number, at in enumerate(sorted(times))]
    cuts = draw(st.lists(st.integers(1, 5), max_size=6))
    return a_call_of(a_chain(), *trees), cuts, draw(st.lists(st.integers(0, 6), max_size=2))


def test_a_replay_gives_the_same(pools: dict[str, SandboxPool]) -> None:
    """The same log in other batches, killed and computed again, later, in either engine, and by
    the interpreter that takes one step at a time: what scripts find as the time is the same."""

    @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
    @given(logs())
    def holds(log: tuple[Call, list[int], list[int]]) -> None:
        call, cuts, kills = log
        expected = compared(in_batches(pools["v8"], call, [], []))
        assert any(made for made in expected[0])
        for pool in pools.values():
            assert compared(in_batches(pool, call, cuts, kills)) == expected

            def ask(_tree: int, _node: int, step: Call, pool: SandboxPool = pool) -> Grown:
                return pool.grow("tenant", [step])[0]

            assert compared(Stepwise(call, ask).grow()) == expected

    holds()
