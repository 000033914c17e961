"""The composites that are replayed, what they read, and the region that they make."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream, Region, is_follower
from servioticy.domain.model import JAVASCRIPT, ClockRef, StreamRef
from servioticy.domain.pauses import finished
from servioticy.domain.program_code import PROGRAMS
from servioticy.domain.regions import evaluator_of, has_clock, whole
from servioticy.domain.windowed import SILENCE, WINDOWS, WindowsOf
from servioticy.refusals import Refused

COMPUTED = {JAVASCRIPT, WINDOWS, SILENCE}
"""The evaluators that a replay has."""


def read_by(composites: Iterable[StreamRef], graph: Graph) -> frozenset[StreamRef]:
    """Return all streams that these read."""
    return frozenset(
        member
        for ref in composites
        for each in graph.composite(ref).inputs
        for member in each.members
    )


def windows_of(composites: Iterable[StreamRef], graph: Graph) -> Mapping[StreamRef, WindowsOf]:
    """Return the windows among them, and what is told of silence."""
    found: dict[StreamRef, WindowsOf] = {}
    for ref in sorted(composites):
        operator = graph.composite(ref).operator
        if isinstance(operator, WindowsOf):
            found[ref] = operator
    return found


def without_followers(composites: Iterable[StreamRef], graph: Graph) -> frozenset[StreamRef]:
    """Return those that are woken by updates: history is in order, so nothing in it is revised."""
    return frozenset([each for each in composites if not is_follower(graph.stream(each))])


def region_of(composites: Collection[StreamRef], graph: Graph) -> Region | None:
    """Return all of them as one region; None where that is nothing. Raises Refused."""
    if not composites:
        return None
    members = [graph.stream(each) for each in sorted(composites)]
    if by_program := [each for each in members if evaluator_of(each) == PROGRAMS]:
        raise Refused(
            f"{by_program[0].key} is computed by a program of its own, which a replay of history "
            "does not ask"
        )
    if others := sorted({evaluator_of(each) for each in members} - COMPUTED):
        raise Refused(f"A replay of history does not compute {', '.join(others)} yet")
    tenant = members[0].tenant
    reads = read_by(composites, graph) - frozenset(composites)
    known = {ref: KnownStream(ref, tenant, 0, 0, None) for ref in reads}
    for each in members:
        if has_clock(each):
            clock = ClockRef(*each.ref)
            known[clock] = graph.stream(clock)
    return finished(whole(members, known.get, graph.wakes))
