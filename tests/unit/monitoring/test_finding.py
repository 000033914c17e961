"""What stands at a place within arguments, and what is found of it without looking at it again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from monitoring import sequences
from monitoring.sequences import MOST_LINKS, MOST_LOOKED_AT, Correlated, Finder

STEP = "00f067aa0ba902b7"


def context(number: int) -> str:
    return f"00-{number:032x}-{STEP}-01"


def link(number: int) -> str:
    return f"{number:032x}-{STEP}"


def of(*traces: Any) -> SimpleNamespace:
    return SimpleNamespace(updates=[SimpleNamespace(trace=each) for each in traces])


def found(path: str, argument: Any) -> Correlated:
    return Finder(path.split(".")).found(argument)


@pytest.fixture(autouse=True)
def scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences.SCOPE, "name", "here")


def test_an_id_is_one_within_this_process() -> None:
    assert found("updates.0.trace", of(7, 8)) == Correlated("here:7")
    assert found("updates.0.trace", of(0)) == Correlated("here:0")
    assert found("updates.1.trace", of(7)) == Correlated()
    assert found("a.b", {"a": {"b": "x" * 100}}) == Correlated(f"here:{'x' * 64}")


def test_a_context_is_its_trace_and_several_are_links() -> None:
    assert found("updates.*.trace", of(context(1))) == Correlated(f"{1:032x}", STEP)
    several = of(context(1), "", context(2), None, context(1), 7)
    assert found("updates.*.trace", several) == Correlated(links=(link(1), link(2)))
    texts = of(context(1), "", context(2))
    assert found("updates.*.trace", texts) == Correlated(links=(link(1), link(2)))


def test_what_only_looks_like_a_context_is_none() -> None:
    """Nor where it is met once more."""
    wrong = "00-" + "0" * 32 + f"-{STEP}-01"
    for _ in range(2):
        assert found("updates.*.trace", of(wrong, context(1))) == Correlated(links=(link(1),))
        assert found("updates.*.trace", of(wrong, "x" * 1_000)) == Correlated()


def test_what_has_nothing_there_is_left_out() -> None:
    """Mappings and objects may stand beside each other, whatever a mapping's keys are called."""
    mixed = [{"trace": context(1)}, SimpleNamespace(trace=context(2)), {}, 7, None]
    assert found("*.trace", mixed).links == (link(1), link(2))
    assert found("*.items", [{"items": context(1)}, {}]).sequence == f"{1:032x}"
    assert found("*.items", [SimpleNamespace(items=context(1)), {}]).sequence == f"{1:032x}"
    assert found("*.0", [(context(1),), [], (context(2),)]).links == (link(1), link(2))


def test_several_of_several_are_all_of_them() -> None:
    nested = {"a": of(context(1), context(2)), "b": of(), "c": of(context(3))}
    assert found("*.updates.*.trace", nested).links == (link(1), link(2), link(3))
    assert found("*", "no list") == Correlated()


def test_no_more_is_looked_at_than_is_said() -> None:
    assert len(found("*", map(context, range(1, 1_000))).links) == MOST_LINKS
    late = [""] * MOST_LOOKED_AT + [context(1)]
    assert found("*", late) == Correlated()
    assert found("*", late[1:]).links == (link(1),)
