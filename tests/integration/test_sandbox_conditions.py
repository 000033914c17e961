"""Conditions of windows: an expression in the sandbox that lets them out before their end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sandbox_pools import a_pool
from windowed_composite import BASE, STREAM, Composite, windows

from sandbox import SandboxPool
from sandbox.revisions import revision_of
from sandbox.trees import Call, Grown
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.evaluators.windows.head import HEAD, read_head
from servioticy.domain.model import Reference
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Fold

TUMBLING = {"type": "tumbling", "size": "10s"}


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


class Conditional(Composite):
    """A stream over windows that come out on a condition."""

    def __init__(
        self,
        pool: SandboxPool,
        when: str,
        window: dict[str, Any] = TUMBLING,
        *members: str,
        references: tuple[Reference, ...] = (),
    ) -> None:
        self.when, self.references = when, references
        self.frames: list[int] = []
        javascript = JavaScript(pool)

        def run(calls: Sequence[Call]) -> Sequence[Grown]:
            self.frames.append(len(calls))
            return javascript.evaluate("tenant", calls)

        self.run = run
        super().__init__(window, *members)

    def be(self, window: dict[str, Any], code: str = "") -> None:
        self.lasts = {}
        parsed = parse_window(STREAM, window | {"emit": "updates"}, [code, self.when])
        self.window = replace(parsed, fold=self.fold, when=self.when)
        dialect = "expression" if self.references else "function"
        names = tuple((each,) for each in self.members)
        operator = WindowsOf(self.window, names, dialect, self.references)
        self.code = OperatorCode(operator, self.members, ())


def test_a_window_comes_out_when_it_becomes_true_and_once_for_that(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.count >= 2 && a.last('v') > 0")
    made = [windows(c.put(at, value)) for at, value in enumerate((5, 5, 5, -5, 5))]
    assert made == [[], [(0, 10, 2)], [], [], [(0, 10, 5)]]
    assert c.put(6, 5).kind == "collected"
    answer = c.put(12, 1)
    assert windows(answer) == [(0, 10, 6)], "and at its end"
    assert revision_of(answer.outputs[0].document) is None
    assert windows(c.put(13, 1)) == [(10, 20, 2)], "the next window has its own"


def test_what_comes_out_is_early_and_says_so_to_the_condition(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.early")
    (output,) = c.put(1).outputs
    revision = revision_of(output.document)
    assert revision is not None and revision.early
    assert output.timestamp == BASE + 9


def test_each_window_of_an_update_is_asked_in_one_frame(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.count === 2", {"type": "hopping", "size": "6s", "every": "2s"})
    assert windows(c.put(1)) == []
    assert c.frames == [3]
    assert windows(c.put(3)) == [(-4, 2, 1), (-2, 4, 2), (0, 6, 2)]
    assert windows(c.put(5)) == [(-2, 4, 2), (2, 8, 2)], "the second has ended"
    assert read_head(c.entries[HEAD][0]).held == [BASE + 8], "and of the third there are three"


def test_sessions_that_become_one_have_been_true_where_a_part_was(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.count >= 2", {"type": "session", "gap": "5s", "delay": "60s"})
    assert windows(c.put(0)) == []
    assert windows(c.put(7)) == []
    assert windows(c.put(8)) == [(7, 13, 2)]
    assert windows(c.put(4)) == [], "it is one with what was true"
    assert len(read_head(c.entries[HEAD][0]).held) == 1


def test_all_that_windows_tell_can_be_asked_for(pool: SandboxPool) -> None:
    asked = [
        "a.quantile('v', 1) > 2",
        "a.by('room').attic?.max('v') > 2",
        "a.updates.length === 2",
        "a.sum('v') + b.sum('v') > 7",
        "iot.mean === undefined && a.mean('v') === 3.5",
    ]
    for when in asked:
        c = Conditional(pool, when, TUMBLING, "a", "b")
        assert windows(c.put(1, 1, room="attic", at=1)) == []
        c.put(2, 2, "b", at=2)
        assert windows(c.put(3, 6, room="attic", at=3)) == [(0, 10, 3)], when


def test_the_state_of_a_fold_can_be_asked_for(pool: SandboxPool) -> None:
    class Folded(Conditional):
        fold = Fold("function(state, a) { return (state || 0) + iot.value(a, 'v') }", ("a",))

    c = Folded(pool, "state > 10")
    assert windows(c.put(1, 8)) == []
    answer = c.put(2, 8)
    assert windows(answer) == [(0, 10, 2)]
    assert json.loads(answer.outputs[0].document)["windows"][-1] == {"value": 16}


def test_expressions_refer_to_windows(pool: SandboxPool) -> None:
    references = (
        Reference("a", "max.v", ("max", "v")),
        Reference("a", "count", ("count",)),
    )
    c = Conditional(pool, "$0 > 3 && $1 > 1", references=references)
    made = [windows(c.put(at, value)) for at, value in enumerate((5, 1, 1))]
    assert made == [[], [(0, 10, 2)], []]


def test_an_error_is_told_with_its_place_and_lets_nothing_out(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.count < 2 ||\n  a.nothing.at")
    assert windows(c.put(1)) == [(0, 10, 1)]
    answer = c.put(2)
    assert (answer.kind, list(answer.outputs)) == ("script-error", [])
    assert re.search(r"TypeError: .* \(when, line 2, column \d+\)", answer.message)
    assert windows(c.put(12)) == [(0, 10, 2), (10, 20, 1)], "it ends as any window"


def test_a_condition_that_never_ends_is_told(pool: SandboxPool) -> None:
    c = Conditional(pool, "(function() { while (true) {} })()")
    assert c.put(1).kind == "timeout"
    assert windows(c.put(12)) == [(0, 10, 1)]


def test_a_version_with_another_condition_asks_anew(pool: SandboxPool) -> None:
    c = Conditional(pool, "a.count > 0")
    assert windows(c.put(1)) == [(0, 10, 1)]
    c.when = "a.count > 1"
    c.be(TUMBLING)
    assert windows(c.put(2)) == [(0, 10, 2)]
    assert windows(c.put(3)) == []


@pytest.mark.parametrize("code", ["a.count) || (1", "a.count; 1", "1, 2", "", "return true"])
def test_what_is_no_expression_is_a_syntax_error(pool: SandboxPool, code: str) -> None:
    """Nothing stands beside it, whoever wrote it."""
    c = Conditional(pool, code)
    answer = c.put(1)
    assert (answer.kind, list(answer.outputs)) == ("syntax", [])
    assert answer.message.startswith("when: line 1")
