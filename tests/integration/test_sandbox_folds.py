"""Folds of windows: a document's function in the sandbox, between the operator's entries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sandbox_pools import a_pool
from windowed_composite import BASE, Composite, windows

from sandbox import SandboxPool
from sandbox.trees import Call, Grown
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.evaluators.operators import Answer
from servioticy.domain.evaluators.windows.folding import MAX_STATE_BYTES
from servioticy.domain.evaluators.windows.head import HEAD, read_head
from servioticy.domain.windows.model import Fold

TUMBLING = {"type": "tumbling", "size": "10s"}
ADDS = "function(state, a) { return (state || 0) + iot.value(a, 'v') }"


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


class Folded(Composite):
    """A stream over windows that a function folds; how often that was asked for is counted."""

    def __init__(
        self, pool: SandboxPool, code: str, window: dict[str, Any] = TUMBLING, *members: str
    ) -> None:
        self.fold = Fold(code, members or ("a",))
        self.frames: list[int] = []
        javascript = JavaScript(pool)

        def run(calls: Sequence[Call]) -> Sequence[Grown]:
            self.frames.append(len(calls))
            return javascript.evaluate("tenant", calls)

        self.run = run
        super().__init__(window, *members)


def states(answer: Answer) -> list[Any]:
    return [json.loads(each.document)["windows"][-1]["value"] for each in answer.outputs]


def test_each_update_is_folded_into_the_state_of_its_window(pool: SandboxPool) -> None:
    c = Folded(pool, ADDS)
    c.put(1, 5)
    c.put(9, 7)
    answer = c.put(12, 100)
    assert windows(answer) == [(0, 10, 2)]
    assert states(answer) == [12]
    assert states(c.put(21)) == [100], "the next window has begun with null"
    assert len(read_head(c.entries[HEAD][0]).folded) == 1, "what is over is not kept"
    assert len([key for key in c.entries if b".f" in key]) == 1


def test_a_state_may_be_changed_in_place(pool: SandboxPool) -> None:
    code = """function(state, a) {
      state = state || { seen: [] };
      state.seen.push(iot.value(a, 'v'));
      return state
    }"""
    c = Folded(pool, code)
    c.put(1, "x")
    c.put(3, "y")
    assert states(c.put(12)) == [{"seen": ["x", "y"]}]


def test_other_inputs_are_as_they_stand(pool: SandboxPool) -> None:
    """Whichever of them has sent; what has never sent is null."""
    code = """function(state, a, b) {
      return (state || '') + iot.value(a, 'v') + (b === null ? '-' : iot.value(b, 'v')) + ' '
    }"""
    c = Folded(pool, code, TUMBLING, "a", "b")
    c.put(1, 1)
    c.put(2, 2, "b")
    c.put(3, 3)
    c.put(11, 0)
    assert states(c.put(12, 0, "b")) == ["1- 12 32 "]


def test_an_update_is_folded_into_all_its_windows_in_one_frame(pool: SandboxPool) -> None:
    c = Folded(pool, ADDS, {"type": "hopping", "size": "100s", "every": "2s"})
    c.put(101, 1)
    assert states(c.put(103, 10)) == [1]
    assert set(c.frames) == {50}
    answer = c.put(201, 100)
    assert states(answer) == [11] * 49


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"type": "count", "size": 4, "every": 2}, [[], [], [], [15], [], [60]]),
        ({"type": "count", "size": 2}, [[], [3], [], [12], [], [48]]),
        ({"type": "count", "size": 3, "every": 2}, [[], [], [7], [], [28], []]),
        ({"type": "global"}, [[1], [3], [7], [15], [31], [63]]),
    ],
)
def test_windows_of_so_many_updates_are_folded(
    pool: SandboxPool, window: dict[str, Any], expected: list[list[int]]
) -> None:
    c = Folded(pool, ADDS, window)
    assert [states(c.put(number, 2**number)) for number in range(6)] == expected
    assert len([key for key in c.entries if b".f" in key]) <= 2


def test_what_is_late_is_folded_into_the_state_that_is_kept(pool: SandboxPool) -> None:
    """In the order of the log."""
    code = "function(state, a) { return (state || '') + iot.value(a, 'v') }"
    c = Folded(pool, code, TUMBLING | {"lateness": "20s"})
    c.put(1, "a")
    assert states(c.put(11, "c")) == ["a"]
    answer = c.put(2, "b", at=12)
    assert states(answer) == ["ab"]
    assert json.loads(answer.outputs[0].document)["revision"] == 2


def test_an_early_result_has_the_state_so_far(pool: SandboxPool) -> None:
    c = Folded(pool, ADDS, TUMBLING | {"emit": "updates"})
    assert [states(c.put(1, 5)), states(c.put(2, 6))] == [[5], [11]]


def test_an_error_is_told_with_its_place_and_ends_the_window(pool: SandboxPool) -> None:
    """Others go on, and the function is not asked for this one any more."""
    code = """function(state, a) {
      if (iot.value(a, 'v') === 13) throw new TypeError('unlucky');
      return (state || 0) + 1
    }"""
    c = Folded(pool, code)
    c.put(1, 1)
    answer = c.put(2, 13)
    assert answer.kind == "script-error"
    assert re.fullmatch(r"TypeError: unlucky \(fold, line 2, column \d+\)", answer.message)
    asked = len(c.frames)
    assert c.put(3, 1).kind == "collected"
    assert len(c.frames) == asked

    ended = c.put(12, 1)
    assert not ended.outputs
    assert ended.kind == "error"
    assert f"the fold of a window has failed: {BASE + 2}: TypeError: unlucky" in ended.message
    assert states(c.put(22, 1)) == [1]


LARGE = f"'x'.repeat({MAX_STATE_BYTES - 2})"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("undefined", "fold: undefined is not JSON of 64 levels at most"),
        ("0 / 0", "fold: NaN is not JSON"),
        ("() => 1", "fold: a function is not JSON"),
        ("'\\ud800'", "is not JSON"),
        ("{ '\\ud800': 1 }", "is not JSON"),
        ("JSON.parse('['.repeat(65) + ']'.repeat(65))", "is not JSON of 64 levels"),
        (f"{LARGE} + 'x'", f"fold: the state has more than {MAX_STATE_BYTES} bytes"),
        ("Array(9).fill('x'.repeat(200000))", "the state has more than 65536 characters"),
    ],
)
def test_what_is_no_state_is_told(pool: SandboxPool, made: str, said: str) -> None:
    answer = Folded(pool, f"function(state, a) {{ return ({made}) }}").put(1)
    assert answer.kind in ("error", "script-error")
    assert said in answer.message


@pytest.mark.parametrize(
    "made",
    [
        *("null", "false", "'\\\\ud800'", "'\\\"[[[\\\\'.repeat(99)", LARGE),
        "JSON.parse('['.repeat(64) + ']'.repeat(64))",
        "'é\\u{1f600}'",
        "{ value: 1, own: true }",
    ],
)
def test_any_json_is_a_state(pool: SandboxPool, made: str) -> None:
    code = f"function(state, a) {{ return state === null ? ({made}) : state }}"
    c = Folded(pool, code, {"type": "count", "size": 2})
    c.put(1)
    answer = c.put(2)
    first = Folded(pool, code, {"type": "global"}).put(1)
    assert states(answer) == states(first)


def test_code_that_never_ends_costs_its_window(pool: SandboxPool) -> None:
    c = Folded(pool, "function(state, a) { while (iot.value(a, 'v') === 0) {} return 1 }")
    assert c.put(1, 0).kind == "timeout"
    assert states(c.put(12, 1)) == []
    assert states(c.put(22, 1)) == [1]


def test_a_version_with_another_fold_begins_anew(pool: SandboxPool) -> None:
    c = Folded(pool, ADDS)
    c.put(1, 5)
    c.fold = Fold("function(state, a) { return 'other' }", ("a",))
    c.be(TUMBLING)
    assert c.put(2, 1).kind == "abandoned"
    assert states(c.put(12, 1)) == ["other"]
    assert len([key for key in c.entries if b".f" in key]) == 1
