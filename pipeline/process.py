"""The file to read first: a batch of updates through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.journal import Journal, Made
from pipeline.partition import Partition
from pipeline.stages.dispatch import Put, Step, Waiting, dispatch
from pipeline.stages.emit import emit
from pipeline.stages.fetch import fetch
from pipeline.stages.transform import Sandbox, transform
from servioticy.graph import Graph
from servioticy.model import StreamRef
from servioticy.ports import Output


def process(
    updates: Sequence[Made],
    next_offset: int,
    partition: Partition,
    sandbox: Sandbox,
    output: Output,
) -> None:
    """Compute, store and emit all that follows from these updates.

    `updates` are raw, in order of the log; the batch ends before `next_offset`.
    """
    graph = partition.graph
    reachable = graph.reachable({each.update.origin for each in updates})
    journal = Journal(partition.recall({each.update.origin for each in updates} | reachable))
    levels = graph.levels(reachable)
    if levels is None:  # a cycle: no composite comes before all others
        for each in updates:
            _evaluate([each], graph, None, journal, partition, sandbox)
    else:
        _evaluate(updates, graph, levels, journal, partition, sandbox)
    emit(journal, next_offset, partition, output)


def _evaluate(
    updates: Sequence[Made],
    graph: Graph,
    levels: list[list[StreamRef]] | None,
    journal: Journal,
    partition: Partition,
    sandbox: Sandbox,
) -> None:
    waiting = Waiting()
    _accept(updates, levels, journal, waiting)
    dispatch(updates, graph, waiting)
    for turn in _turns(waiting, levels):
        folds = fetch(turn, graph, journal, partition.programs)
        new = transform(folds, sandbox, journal)
        dispatch(new, graph, waiting)


def _accept(
    updates: Sequence[Made],
    levels: list[list[StreamRef]] | None,
    journal: Journal,
    waiting: Waiting,
) -> None:
    """Note what came from outside.

    On a composite whose turn is still to come it waits in line with its computations.
    """
    coming = {ref for level in levels or () for ref in level}
    for each in updates:
        if each.update.origin in coming:
            journal.keep_later(each)
            waiting.add(each.update.origin, Put(each.place, each))
        else:
            journal.keep(each)


def _turns(
    waiting: Waiting, levels: list[list[StreamRef]] | None
) -> Iterator[Mapping[StreamRef, Sequence[Step]]]:
    """Which composites compute next: a level at once, or in a cycle the next step alone."""
    if levels is None:
        while turn := waiting.take_first():
            yield turn
    else:
        for level in levels:
            if turn := waiting.take(level):
                yield turn
