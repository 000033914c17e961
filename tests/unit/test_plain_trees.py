"""The random calls that evaluators are held against meet everything there is to meet."""

from __future__ import annotations

from collections import Counter

import plain_trees
from hypothesis import HealthCheck, given, settings
from random_trees import HUGE, calls, in_python

from sandbox.trees import Call


def test_random_trees_meet_everything() -> None:
    """Otherwise the law could hold because nothing happens."""
    met: Counter[str] = Counter()

    @settings(
        max_examples=400, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls())
    def look(call: Call) -> None:
        grown = plain_trees.grow(in_python(call))
        met.update({each.kind for each in grown.ended})
        met["failed"] += grown.failed
        met["several events"] += any(len(tree) > 1 for tree in call.trees)
        met["deep"] += any(made.parent > 0 for tree in grown.made for made in tree)
        met["several trees"] += len([tree for tree in grown.made if tree]) > 1
        met["states"] += any(made.state for tree in grown.made for made in tree)
        met["large timestamps"] += any(m.timestamp > HUGE for tree in grown.made for m in tree)
        met["steps"] += any(event.only is not None for tree in call.trees for event in tree)

    look()

    expected = {
        *("emitted", "stale", "filtered", "script-error", "error", "missing", "superseded"),
        *("hop-limit", "policy", "failed", "several events", "deep", "several trees", "states"),
        *("large timestamps", "steps"),
    }
    assert {each for each in expected if met[each] < 5} == set()
