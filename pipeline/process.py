"""The file to read first: a batch of updates through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pipeline.journal import Journal, Made, Verdict
from pipeline.limits import BATCH_SECONDS, BatchTooSlow, TreeTooLarge, TreeTooSlow
from pipeline.partition import Partition
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import Put, Rules, Step, Turn, Waiting, dispatch, settle
from pipeline.stages.emit import emit
from pipeline.stages.fetch import fetch
from pipeline.stages.transform import Sandbox, transform
from pipeline.work import Work
from sandbox import TookTooLong
from servioticy.domain.graph import Graph, Level
from servioticy.domain.model import StreamRef
from servioticy.ports.output import Output


def process(
    work: Work,
    partition: Partition,
    sandbox: Sandbox,
    output: Output,
    rules: Rules,
    spending: Spending,
) -> None:
    """Compute, store and emit all that follows from these updates.

    Raises Overflow before anything is stored where that is more than fits. Updates taken
    `alone`, each one computation at a time, are cut by the limits where the serial order
    cuts them. `spending` gets what was spent, whatever happens.
    """
    graph, updates = partition.graph, work.updates
    origins = {each.update.origin for each in updates}
    # In the tree of an update of theirs, tenants that are refused elsewhere are not.
    plan = graph.plan(origins, rules.refused - set(work.owners.values()))
    levels = [Level([], [frozenset(plan.reachable)])] if rules.alone else plan.levels
    journal = Journal(partition.recall(origins | plan.reachable))
    waiting = Waiting()
    deadline = time.monotonic() + BATCH_SECONDS
    _accept(updates, plan.reachable, journal, waiting, spending)
    dispatch(updates, graph, waiting, journal, spending, rules)
    for turn in _turns(waiting, levels, graph, journal):
        if rules.alone:
            turn = _within_limits(turn, partition, journal, spending)
        within = None if rules.alone else _left(deadline, work)
        folds = fetch(turn, graph, journal, partition.programs)
        try:
            new = transform(folds, sandbox, journal, partition.decided, spending, within)
        except TookTooLong as error:
            raise _overflow(work, error, spending) from error
        _count(new, graph, spending, rules)
        dispatch(new, graph, waiting, journal, spending, rules)
    emit(journal, work, partition, output)


def _accept(
    updates: Sequence[Made],
    reachable: set[StreamRef],
    journal: Journal,
    waiting: Waiting,
    spending: Spending,
) -> None:
    """Note what came from outside.

    On a composite whose turn is still to come it waits in line with its computations.
    """
    for each in updates:
        spending.add_raw_bytes(len(each.update.document))
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


def _left(deadline: float, work: Work) -> float:
    """Seconds that scripts of this batch may still take. Raises BatchTooSlow.

    A single update takes what its tree takes: the limits of trees bound that.
    """
    if len(work.taken) == 1:
        return float("inf")
    left = deadline - time.monotonic()
    if left <= 0:
        raise BatchTooSlow
    return left


def _overflow(work: Work, error: TookTooLong, spending: Spending) -> BatchTooSlow | TreeTooSlow:
    """What it means that scripts took too long."""
    if len(work.taken) > 1:
        return BatchTooSlow()
    _made, record = work.taken[0]
    foreign = spending.latest != record.tenant
    return TreeTooSlow(record.offset, prepared=error.prepared, foreign=foreign)


def _count(new: Sequence[Made], graph: Graph, spending: Spending, rules: Rules) -> None:
    """Note the bytes of what was made. Raises TreeTooLarge unless the tree is alone."""
    for (offset, _depth, _path), update in new:
        part = offset, graph.tenant(update.origin)
        spending.add_bytes(part, len(update.document))
        if not rules.alone and spending.is_too_large(part):
            raise TreeTooLarge(offset)


def _within_limits(turn: Turn, partition: Partition, journal: Journal, spending: Spending) -> Turn:
    """The steps that may compute; the others end here. Of a tree taken alone."""
    kept: dict[StreamRef, list[Step]] = {}
    for ref, steps in turn.items():
        for step in steps:
            part = step.place.offset, partition.graph.tenant(ref)
            refusal = spending.refusal(part)
            known = partition.decided.knows(ref, step.place)
            if isinstance(step, Put) or refusal is None or known:
                kept.setdefault(ref, []).append(step)
            elif spending.note_refusal(part):
                kind, message = refusal
                journal.end(Verdict(step.place, ref, kind, step.trigger, message))
    return kept
