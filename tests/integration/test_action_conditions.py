"""Conditions of actions, on the engines that run them."""

from __future__ import annotations

import pytest

from delivery.actuations.condition_checker import ConditionChecker
from delivery.admission.spending import Spending
from sandbox import SandboxPool, argument_names
from servioticy.domain.documents.actions import actions_of
from servioticy.domain.model import LastUpdate, StreamRef

REF = StreamRef("tank", "full")
DOCUMENT = b'{"channels":{"x":{"current-value":5},"s":{"current-value":"a"}},"lastUpdate":7}'


def look(
    pool: SandboxPool,
    condition: str,
    version: str | None,
    times: int = 1,
    spending: Spending | None = None,
) -> list[str]:
    channels = {"x": {"type": "number", "current-value": "1"}}
    stream = {"channels": channels, "actions": [{"action": "open", "if": condition}]}
    document = {"version": version, "streams": {"full": stream}}
    (asked,) = actions_of(document, REF, argument_names)
    assert asked.condition is not None
    conditions = ConditionChecker(lambda: pool, spending or Spending())
    output = LastUpdate(7, DOCUMENT)
    return [str(conditions.look(1, REF, 1, asked.condition, output)) for _ in range(times)]


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("{$output.channels.x.current-value} > 4", "emitted"),
        ("{$output.channels.x.current-value} > 5", "filtered"),
        ("{$output.lastUpdate} == 7 && {$output.channels.s.current-value} == 'a'", "emitted"),
        ("{$output.channels.none.current-value}", "filtered"),
        ("true", "emitted"),
        ("", "filtered"),
        ("{$output.channels.none.y}.z > 1", "script-error"),
    ],
)
def test_expressions(pool: SandboxPool, condition: str, verdict: str) -> None:
    """The same output is looked at as often as it comes."""
    assert look(pool, condition, None, 2) == [verdict] * 2


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("$output.channels.x['current-value'] > 4", "emitted"),
        ("$output.channels.x['current-value'] > 5", "filtered"),
        ("$output.channels.none['current-value'] > 5", "script-error"),
    ],
)
def test_functions(pool: SandboxPool, condition: str, verdict: str) -> None:
    assert look(pool, condition, "0.2.0", 2) == [verdict] * 2


@pytest.mark.parametrize("condition", ["while(true){}", "(function f(){f();f()})()"])
def test_code_that_does_harm_holds_nothing_up(pool: SandboxPool, condition: str) -> None:
    (verdict,) = look(pool, f"(()=>{{{condition}}})()", None)

    assert verdict in ("timeout", "policy", "script-error", "syntax", "crash")


def test_what_a_condition_takes_is_charged_to_its_stream(pool: SandboxPool) -> None:
    """Also where it is ended for it: it takes all that it is given."""
    begun, modest, greedy = Spending(), Spending(), Spending()
    look(pool, "true", "0.2.0", spending=begun)
    look(pool, "true", "0.2.0", spending=modest)
    (verdict,) = look(pool, "(function () { while (true) {} })()", "0.2.0", spending=greedy)

    ((small,), (large,)) = (each.take().items() for each in (modest, greedy))
    assert small[0] == large[0] == (1, "tank", "full")
    assert verdict == "timeout"
    assert large[1] > 10 * small[1] > 0
