"""What stands at a place within arguments, and what is found of it without looking at it again."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from monitoring import sequences
from monitoring.sequences import (
    LOTS,
    MOST_LINKS,
    MOST_LOOKED_AT,
    UNTRACED,
    Correlated,
    Finder,
    fresh,
    fresh_step,
    lot_of,
)

STEP = "00f067aa0ba902b7"


def context(number: int) -> str:
    return f"00-{number:032x}-{STEP}-01"


def link(number: int) -> str:
    return f"{number:032x}-{STEP}"


def of(*traces: Any) -> SimpleNamespace:
    return SimpleNamespace(updates=[SimpleNamespace(trace=each) for each in traces])


def lot(number: int) -> int:
    return lot_of(f"{number:032x}")


def found(path: str, argument: Any, sampled: float = LOTS) -> Correlated:
    return Finder(path.split("."), sampled).found(argument)


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
    both = Correlated(links=(link(1), link(2)), lot=min(lot(1), lot(2)))
    several = of(context(1), "", context(2), None, context(1), 7)
    assert found("updates.*.trace", several) == both
    texts = of(context(1), "", context(2))
    assert found("updates.*.trace", texts) == both


def test_what_only_looks_like_a_context_is_none() -> None:
    """Nor where it is met once more."""
    wrong = "00-" + "0" * 32 + f"-{STEP}-01"
    for _ in range(2):
        assert found("updates.*.trace", of(wrong, context(1))).links == (link(1),)
        assert found("updates.*.trace", of(wrong, "x" * 1_000)) == UNTRACED
        assert found("updates.*.trace", of("\ud800" * 55, "x" * 55)) == UNTRACED


def test_a_context_of_a_later_version_or_between_blanks_is_one_of_its_trace() -> None:
    later = context(1).replace("00-", "01-", 1) + "-more"
    some = found("updates.*.trace", of(later, f" {context(2)}\t"))

    assert some == Correlated(links=(link(1), link(2)), lot=min(lot(1), lot(2)))


def test_only_what_is_sampled_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others nothing but the least lot is known, for what is called with another rate."""
    read: list[str] = []
    real = sequences._links
    monkeypatch.setattr(sequences, "_links", lambda some: read.extend(some) or real(some))
    least, second, *_ = order = sorted(range(1, 100), key=lot)
    several = of(*map(context, range(1, 100)))

    assert found("updates.*.trace", several, lot(second)).links == (link(least),)
    assert read == [context(least)]
    assert found("updates.*.trace", several, lot(least)) == Correlated(lot=lot(least))
    assert read == [context(least)]
    assert {*found("updates.*.trace", several).links} == {*map(link, order[:MOST_LINKS])}


def test_what_has_nothing_there_is_left_out() -> None:
    """Mappings and objects may stand beside each other, whatever a mapping's keys are called."""
    mixed = [{"trace": context(1)}, SimpleNamespace(trace=context(2)), {}, 7, None]
    assert found("*.trace", mixed).links == (link(1), link(2))
    assert found("*.items", [{"items": context(1)}, {}]).sequence == f"{1:032x}"
    assert found("*.items", [SimpleNamespace(items=context(1)), {}]).sequence == f"{1:032x}"
    assert found("*.0", [(context(1),), [], (context(2),)]).links == (link(1), link(2))


def test_updates_without_contexts_are_updates_all_the_same() -> None:
    """What is about them is about no other; where there are none, nothing is said."""
    assert found("updates.*.trace", of("", "")) == found("updates.*.trace", of("")) == UNTRACED
    assert found("updates.*.trace", of()) == found("updates.0.trace", of("")) == Correlated()
    assert UNTRACED.lot == LOTS - 1, "sampled where everything is, and nowhere else"


def test_several_of_several_are_all_of_them() -> None:
    nested = {"a": of(context(1), context(2)), "b": of(), "c": of(context(3))}
    assert found("*.updates.*.trace", nested).links == (link(1), link(2), link(3))
    assert found("*", "no list") == Correlated()


def test_ids_are_nobody_elses_nor_those_of_a_fork() -> None:
    """They are made many at once."""
    some = [each() for _ in range(200) for each in (fresh, fresh_step)]
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, f"{fresh()} {fresh_step()}".encode())
        finally:
            os._exit(0)
    os.wait()
    with open(reader, "rb", closefd=True) as told:
        os.close(writer)
        there = told.read().decode().split()
    here = [*some, *[each() for _ in range(100) for each in (fresh, fresh_step)]]

    assert len({*here, *there}) == len(here) + 2
    assert {len(each) for each in here} == {32, 16}


def test_no_more_is_looked_at_than_is_said() -> None:
    assert len(found("*", map(context, range(1, 1_000))).links) == MOST_LINKS
    late = [""] * MOST_LOOKED_AT + [context(1)]
    assert found("*", late) == UNTRACED
    assert found("*", late[1:]).links == (link(1),)
