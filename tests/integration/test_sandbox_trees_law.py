"""What the realm makes of random trees is what the contract says, as Python reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import plain_trees
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_trees import PlainTrees
from random_trees import calls, in_python, wirings
from sandbox_pools import a_pool
from sandbox_trees import joined, rest_of, step_by_step, told

from sandbox import SandboxPool
from sandbox.trees import Call, Grown

EXAMPLES = {"v8": 300, "quickjs": 40}
ENGINES = pytest.mark.parametrize("engine", list(EXAMPLES))


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, SandboxPool]]:
    """Random code makes new programs again and again; a frame of them is small."""
    found = {engine: a_pool(engine=engine, budget_ms=1000) for engine in EXAMPLES}
    yield found
    for pool in found.values():
        pool.close()


def to_the_end(trees: SandboxPool | PlainTrees, call: Call) -> Grown:
    """All that can be grown whole, in as many pieces as there are."""
    whole = Grown([], [])
    while call.trees:
        (grown,) = trees.grow("tenant", [call])
        if grown.failed:
            return replace(whole, failed=True)
        assert grown.made
        whole, call = joined(whole, grown), rest_of(call, grown)
    return whole


def tried(most: int) -> settings:
    return settings(
        max_examples=examples(most), deadline=None, suppress_health_check=list(HealthCheck)
    )


@ENGINES
def test_trees_are_what_the_contract_says(pools: dict[str, SandboxPool], engine: str) -> None:
    """Cycles, diamonds, options, groups, direct updates, refusals, bounds, huge timestamps."""

    @tried(EXAMPLES[engine])
    @given(calls())
    def holds(call: Call) -> None:
        assert told(to_the_end(pools[engine], call)) == told(
            to_the_end(PlainTrees(), in_python(call))
        )

    holds()


@ENGINES
def test_calls_of_one_frame_know_nothing_of_each_other(
    pools: dict[str, SandboxPool], engine: str
) -> None:
    """Two devices of one wiring, and another region: each gets what it would get alone."""

    @st.composite
    def some(draw: st.DrawFn) -> Sequence[Call]:
        wiring = draw(wirings())
        return [draw(calls(wiring)), draw(calls(wiring)), draw(calls())]

    @tried(EXAMPLES[engine] // 4)
    @given(some())
    def holds(frame: Sequence[Call]) -> None:
        together = pools[engine].grow("tenant", frame)
        alone = [plain_trees.grow(in_python(each)) for each in frame]
        assert [told(each) for each in together] == [told(each) for each in alone]

    holds()


@ENGINES
def test_a_tree_is_its_steps(pools: dict[str, SandboxPool], engine: str) -> None:
    """Whoever takes a failing tree step by step must get the same."""

    @tried(EXAMPLES[engine] // 10)
    @given(calls())
    def holds(call: Call) -> None:
        whole = plain_trees.grow(in_python(call))
        assert told(step_by_step(pools[engine], call)) == told(whole)

    holds()
