"""Stage 1: pair every new update with each composite stream subscribed to its origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from pipeline.errors import TreeTooLarge
from pipeline.limits import Limits
from pipeline.sharing.spending import Spending
from pipeline.steps import ARRIVAL, NewUpdate, NewUpdates, Place, Round, Step, Verdict
from servioticy.domain.graph import Graph, Wake
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.verdicts import HOP_LIMIT, OVER_SHARE

MAX_SHED_NOTED = 100
"""Composites of others over their share that get a verdict; the rest end without one."""


class Rules(NamedTuple):
    """How one batch is to be computed."""

    limits: Limits
    alone: bool = False
    """It is one tree, evaluated one step at a time: the limits cut it where the serial order
    does."""
    refused: Set[int] = frozenset()
    """Tenants over their share of the partition's time: others' updates do not wake theirs."""


def dispatch(
    new: NewUpdates, graph: Graph, spending: Spending, rules: Rules
) -> tuple[Round, list[Verdict]]:
    """The arrivals that new updates cause, by composite, and those that end at once.

    Arrivals are counted in `spending`. Raises TreeTooLarge at a limit, unless the tree is
    taken alone: then what lies beyond the limit ends with its verdict. Raises BatchTooLarge
    where several trees have too much together.
    """
    arrivals: dict[StreamRef, list[Step]] = {}
    ended: list[Verdict] = []
    most_hops = rules.limits.hops
    for origin, updates in new.items():
        for index, wake, waking in _wakes(origin, updates, graph, spending, rules, ended):
            composite, number = wake
            tenant = graph.tenant(composite)
            theirs = arrivals.setdefault(composite, [])
            for (offset, depth, path), update, _uses in waking:
                place = Place(offset, depth + 1, (*path, index))
                if depth >= most_hops:
                    refusal = HOP_LIMIT, f"more than {most_hops} hops"
                    ended.append(_refused(place, composite, update, refusal))
                    continue
                part = offset, tenant
                spending.count(part)
                if not spending.is_counted_out(part):
                    theirs.append(Step(place, composite, ARRIVAL, update, number))
                elif not rules.alone:
                    raise TreeTooLarge(offset)
                elif spending.is_noted(part):
                    refusal = spending.computation_refusal(part)
                    ended.append(_refused(place, composite, update, refusal))
    return arrivals, ended


def _wakes(
    origin: StreamRef,
    updates: Sequence[NewUpdate],
    graph: Graph,
    spending: Spending,
    rules: Rules,
    ended: list[Verdict],
) -> Iterable[tuple[int, Wake, Sequence[NewUpdate]]]:
    """Whom the updates of a stream wake: each with its number, and by which of the updates.

    Composites of refused tenants are not woken: their verdicts go to `ended`. In the tree of
    a tenant's own update nothing of that tenant is refused: it is made to wait before.
    """
    if not rules.refused:
        for index, wake in enumerate(graph.wakes(origin)):
            yield index, wake, updates
        return
    for each in updates:
        (offset, depth, path), update, _uses = each
        split = graph.wakes_but(origin, rules.refused - {spending.owner(offset)})
        for index, wake in split.refused[:MAX_SHED_NOTED]:
            place = Place(offset, depth + 1, (*path, index))
            refusal = OVER_SHARE, "its tenant has used its share of time here"
            ended.append(_refused(place, wake.composite, update, refusal))
        for index, wake in split.others:
            yield index, wake, (each,)


def _refused(
    place: Place, composite: StreamRef, update: SensorUpdate, refusal: tuple[str, str]
) -> Verdict:
    kind, message = refusal
    return Verdict(place, composite, kind, update, message)
