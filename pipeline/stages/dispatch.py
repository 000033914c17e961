"""Stage 1: which trees enter which regions, and whose composites they do not wake."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.growth import Entered, Entering, Verdict
from pipeline.sharing.rules import Refusal, Rules
from pipeline.sharing.spending import Spending
from pipeline.work import LoggedUpdate
from sandbox.trees import CLOCK, FOLLOWERS, NOBODY, Event, Node, Path
from servioticy.domain.known_streams import Region

MAX_SHED_NOTED = 100
"""Composites that are refused and get a verdict of an update; the rest end without one."""


def dispatch(
    entered: Entered, updates: Sequence[LoggedUpdate], rules: Rules, spending: Spending
) -> tuple[list[Entering], list[Verdict]]:
    """The trees of each region, in order of the log, and the computations that end at once.

    `updates` are those that the trees grow from. Of a tree that is refused the region learns what
    it reads, and wakes nobody; what is told of that is noted in `spending`. A region in which
    nobody is woken has nothing to do.
    """
    entering: list[Entering] = []
    ended: list[Verdict] = []
    for region, by_number in entered.items():
        numbers = sorted(by_number)
        trees = [by_number[number] for number in numbers]
        for place, (number, events) in enumerate(zip(numbers, trees, strict=True)):
            if len(events) > 1:
                events.sort(key=_place)
            why = rules.refusal(updates[number]) if updates[number].is_input else None
            if why is not None:
                before = len(ended)
                trees[place] = _refused(region, events, why, ended)
                spending.refuse(len(ended) - before)
        nodes = region.wiring.nodes
        if any(_wakes(event, nodes) for tree in trees for event in tree):
            entering.append(Entering(region, numbers, trees))
    return entering, ended


def _wakes(event: Event, nodes: Sequence[Node]) -> bool:
    """Whether an event may wake somebody."""
    wakes = nodes[event.node].wakes
    if event.only is None:
        return any(not nodes[wake.node].follows or wake.argument == CLOCK for wake in wakes)
    return event.only == FOLLOWERS and any(nodes[wake.node].follows for wake in wakes)


def _refused(
    region: Region, events: list[Event], why: Refusal, ended: list[Verdict]
) -> list[Event]:
    """The events of a tree that wakes nobody here; the verdicts of that go to `ended`."""
    for event in events:
        trigger = region.stream(event.node)
        nodes = region.wiring.nodes
        for wake in nodes[event.node].wakes[:MAX_SHED_NOTED] if event.only is None else ():
            if nodes[wake.node].follows:
                continue
            composite = region.stream(wake.node)
            kind, message = why
            ended.append(Verdict(composite, kind, trigger, event.timestamp, message))
    return [event._replace(only=NOBODY) for event in events]


def _place(event: Event) -> tuple[int, Path]:
    """Of a tree, breadth first."""
    return len(event.path), event.path
