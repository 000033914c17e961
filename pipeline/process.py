"""The file to read first: a batch of updates through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.journal import Journal, Made
from pipeline.partition import Partition
from pipeline.stages.dispatch import Limits, Put, Turn, Waiting, dispatch, settle
from pipeline.stages.emit import emit
from pipeline.stages.fetch import fetch
from pipeline.stages.transform import Sandbox, transform
from servioticy.graph import Graph, Level
from servioticy.model import StreamRef
from servioticy.ports import Output


def process(
    updates: Sequence[Made],
    next_offset: int,
    partition: Partition,
    sandbox: Sandbox,
    output: Output,
    limits: Limits,
    *,
    alone: bool = False,
) -> None:
    """Compute, store and emit all that follows from these updates.

    `updates` are raw, in order of the log; the batch ends before `next_offset`. Raises
    TreeTooLarge and BatchTooLarge before anything is stored. An update `alone` is taken
    one computation at a time, so that the limits cut its tree where the serial order does.
    """
    graph = partition.graph
    plan = graph.plan(frozenset(each.update.origin for each in updates))
    levels = [Level([], [frozenset(plan.reachable)])] if alone else plan.levels
    journal = Journal(partition.recall({each.update.origin for each in updates} | plan.reachable))
    waiting = Waiting()
    _accept(updates, plan.reachable, journal, waiting)
    dispatch(updates, graph, waiting, journal, limits, alone=alone)
    for turn in _turns(waiting, levels, graph, journal):
        folds = fetch(turn, graph, journal, partition.programs)
        new = transform(folds, sandbox, journal, partition.decided)
        dispatch(new, graph, waiting, journal, limits, alone=alone)
    emit(journal, next_offset, partition, output)


def _accept(
    updates: Sequence[Made], reachable: set[StreamRef], journal: Journal, waiting: Waiting
) -> None:
    """Note what came from outside.

    On a composite whose turn is still to come it waits in line with its computations.
    """
    for each in updates:
        if each.update.origin in reachable:
            journal.keep_later((each,))
            waiting.add(Put(each.place, each.update.origin, each))
        else:
            journal.keep(each)


def _turns(
    waiting: Waiting, levels: list[Level], graph: Graph, journal: Journal
) -> Iterator[Turn]:
    """Which composites compute next: a level at once, in its loops one step at a time."""
    for level in levels:
        if turn := waiting.take(level.at_once):
            yield settle(turn, graph, journal)
        for loop in level.loops:
            if len(loop) == 1:
                for steps in settle(waiting.take(loop), graph, journal).values():
                    for step in steps:
                        waiting.add(step)
            yield from waiting.one_by_one(loop)
