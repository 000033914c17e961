"""Paths against the JSONPath Compliance Test Suite of RFC 9535, which set-up downloads.

A case is found as the suite says, or it belongs to one of the rules below, which
`docs/differences.md` states with the same numbers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from sandbox_pools import JAVASCRIPT, a_pool
from sandbox_trees import a_call, once, value_of

from sandbox import Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Call, Event, Made
from servioticy.domain import references
from servioticy.domain.model import Reference
from servioticy.embedded.javascript import COMPLIANCE

CASES: list[dict[str, Any]] = json.loads((JAVASCRIPT / COMPLIANCE).read_bytes())["tests"]
REFUSED = {
    "functions": (re.compile(r"[a-z]\s*\("), 83),
    "a number with an exponent": (re.compile(r"[0-9][eE]"), 12),
    "`!` before parentheses": (re.compile(r"!\s*\("), 5),
    "several selectors in one bracket, but for names only or indexes only": (re.compile(","), 16),
}
"""What RFC 9535 allows and a 400 refuses: what such a path has, and how many cases have it."""

ACCEPTED = {
    "a comparison with several places, true if one of them passes": (
        re.compile(r"\[\?.*(?:\[[^'\]]*[:*,][^'\]]*\]|\.\*|\.\.|\['a', 'a'\])"),
        28,
    ),
    "blanks around a path": (re.compile(r"^\s|\s$"), 2),
    "a name after a dot that begins with a digit": (re.compile(r"\.[0-9]"), 1),
}
"""What RFC 9535 refuses and we take."""


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def read(selector: str) -> Reference | None:
    """The selector as it stands after `{$g`; None if it is refused."""
    try:
        return references.parse("g", selector.strip().removeprefix("$"))
    except references.BadReference:
        return None


def test_what_is_read_otherwise_belongs_to_a_stated_rule() -> None:
    refused: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for case in CASES:
        reference = read(case["selector"])
        if case.get("invalid_selector"):
            if reference is not None:
                accepted[rule_of(case, ACCEPTED)] += 1
        elif reference is None:
            refused[rule_of(case, REFUSED)] += 1

    assert len(CASES) == 687
    assert refused == {rule: count for rule, (_, count) in REFUSED.items()}
    assert accepted == {rule: count for rule, (_, count) in ACCEPTED.items()}


def rule_of(case: dict[str, Any], rules: dict[str, tuple[re.Pattern[str], int]]) -> str:
    for rule, (has, _) in rules.items():
        if has.search(case["selector"]):
            return rule
    pytest.fail(f"{case['name']}: {case['selector']!r} belongs to no rule")


def test_every_path_that_is_read_finds_what_the_suite_says(pool: SandboxPool) -> None:
    read_rightly = [
        (case, reference)
        for case in CASES
        if not case.get("invalid_selector")
        if (reference := read(case["selector"]))
    ]
    for case, reference in read_rightly:
        outcome = once(pool, call(reference, case["document"]))
        assert isinstance(outcome, Made), (case, outcome)
        found = json.loads(value_of(outcome, "found"))
        assert found in expected(case, reference), case
    assert len(read_rightly) == 326


def expected(case: dict[str, Any], reference: Reference) -> list[Any]:
    """A path to one place finds its value, others the list of all; null where there is none."""
    results = case.get("results") or [case["result"]]
    if reference.plain:
        return [(each or [None])[0] for each in results]
    return [each or None for each in results]


def call(reference: Reference, document: Any) -> Call:
    program = Program(
        repr(reference.path),
        "expression",
        ("g",),
        (ChannelCode("found", "JSON.stringify($0)", "string"),),
        bindings=(Binding("$0", 0, reference.path),),
    )
    return a_call(program, Event(0, 1, json.dumps(document).encode()))
