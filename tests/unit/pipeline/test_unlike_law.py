"""A provider whose scripts never say the same twice: all who read it have what everybody has.

Whatever dies, and whatever is forgotten: what has been told of a computation once counts.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest
from changing_law import purge
from changing_oracle import Shown
from changing_world import World
from crossing_worlds import faults
from hypothesis import given, settings
from hypothesis import strategies as st
from log_oracle import value_of
from oracle import Composite, Ref
from put_off_runs import Whims
from python_evaluator import PythonEvaluator, Trigger
from serial_order import Generous, javascript

from pipeline.sharing.fairness import Fairness
from servioticy.domain.records import BorderRecord

WHOSE = {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1, "f": 1}
"""Composites `c0`: of `a` says something new each time, the others what they have read."""

READS: dict[str, Ref] = {"b": ("a", "c0"), "c": ("b", "c0"), "d": ("c", "c0"), "e": ("a", "c0")}


def thing(id_: str, *more: Ref) -> Any:
    groups = {"g": (READS[id_],)} if id_ in READS else {}
    if more:
        groups["h"] = more
    reads = ("g",) if id_ in READS else ("d0",)
    composites = (Composite("c0", reads, None),)
    codes = {(id_, "c0"): javascript(reads, 0, 1000, 1001)}
    return Shown(id_, ("d0",), composites, groups, WHOSE[id_], True), codes


class Unlike:
    """What scripts say: of `a` never the same twice, of others what has woken them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, trigger: Trigger, documents: list[bytes | None]) -> int:
        if trigger.name.startswith("a/"):
            return next(self._numbers)
        document = documents[0]
        assert document is not None
        return value_of(document)


@pytest.mark.parametrize("puts_off", [False, True], ids=["in-turn", "puts-off"])
@settings.get_profile("changes")
@given(data=st.data())
def test_everybody_has_the_same(data, puts_off: bool) -> None:
    draw = data.draw
    over = st.lists(st.sets(st.integers(1, 3), max_size=2), max_size=40)
    world = World(
        draw(st.sampled_from([1, 2, 3])),
        {"javascript": PythonEvaluator(Unlike())},
        draw(faults(6)),
        most=draw(st.sampled_from([1, 2, 1000])),
        puts_off=puts_off,
        fairness=Fairness(Whims(draw(over)) if puts_off else Generous(1.0)),
    )
    for id_ in WHOSE:
        world.create(*thing(id_))
    world.finish()
    sent = draw(st.integers(1, 12))
    joins = draw(st.integers(0, sent))
    for at in range(1, sent + 1):
        world.put(("a", "d0"), at, at)
        if at == joins:
            world.replace(*thing("b", ("f", "d0")))  # they become one component, so one moves
        if draw(st.booleans()):
            world.run([draw(st.integers(0, length)) for length in world.lengths()])
        if draw(st.integers(0, 5)) == 0:
            world.crash()
    world.finish()
    purge(world)

    emitted = _emitted(world)
    stored = _stored(world)
    assert set(stored["a", "c0"]) == set(range(1, sent + 1))
    for reader in ("b", "c", "d", "e"):
        assert stored[reader, "c0"] == stored["a", "c0"], reader
    for ref, values in emitted.items():
        assert values == {at: {value} for at, value in stored[ref].items()}, ref
    for ref, at, value in _crossed(world):
        assert stored[ref][at] == value


def _stored(world: World) -> dict[Ref, dict[int, int]]:
    """Of each composite stream what is stored, by timestamp."""
    state = world.platform.state
    names = state.readable()
    found: defaultdict[Ref, dict[int, int]] = defaultdict(dict)
    for _partition, row in state.updates.values():
        found[tuple(names[row.stream_id])][row.timestamp] = value_of(row.document)  # type: ignore[index]
    return found


def _emitted(world: World) -> dict[Ref, dict[int, set[int]]]:
    found: defaultdict[Ref, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for _partition, each in world.platform.state.emitted_to:
        ref = each.service_object, each.stream
        found[ref][each.timestamp].add(value_of(bytes(each.update)))
    return found


def _crossed(world: World) -> list[tuple[Ref, int, int]]:
    """All that crosses borders in any log."""
    return [
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for partition in range(world.partitions)
        for _, record in world.platform.records(partition)
        if isinstance(record, BorderRecord)
        for each in record.updates
    ]
