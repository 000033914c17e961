"""The file to read first: a batch of updates through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription.
"""

from __future__ import annotations

import time

from pipeline.engine import Engine
from pipeline.errors import BatchTooSlow, TreeTooLarge, TreeTooSlow
from pipeline.limits import BATCH_SECONDS
from pipeline.rounds import Waiting, rounds
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import Rules
from pipeline.state.batch import BatchState
from pipeline.state.partition import Partition
from pipeline.steps import DIRECT_WRITE, NewUpdate, NewUpdates, Round, Step, Verdict
from pipeline.work import Work
from sandbox import TookTooLong
from servioticy.domain.graph import Graph
from servioticy.domain.levels import Level
from servioticy.domain.model import StreamRef
from servioticy.ports.output import Output


def process(
    work: Work,
    partition: Partition,
    output: Output,
    engine: Engine,
    rules: Rules,
    spending: Spending,
) -> None:
    """Compute, store and emit all that follows from the updates of this work.

    Raises Overflow before anything is stored where that is more than fits. A tree that the
    rules say is taken `alone` is evaluated one computation at a time, and the limits cut it
    where the serial order does. `spending` gets what was spent, whatever happens.
    """
    graph, stages = partition.graph, engine.stages
    origins = {each.update.origin for each in work.new_updates}
    # In the tree of an update of theirs, tenants that are refused elsewhere are not.
    plan = graph.plan(origins, rules.refused - set(work.owners.values()))
    levels = [Level([], [frozenset(plan.reachable)])] if rules.alone else plan.levels
    state = BatchState(partition.recall(origins | plan.reachable))
    waiting = Waiting()
    deadline = time.monotonic() + BATCH_SECONDS

    new, direct_writes = _received(work, plan.reachable, spending)
    waiting.add(direct_writes)
    state.add(new)
    arrivals, ended = stages.dispatch(new, graph, spending, rules)
    waiting.add(arrivals)
    state.end(ended)

    for steps in rounds(waiting, levels, graph, state):
        if rules.alone:
            steps, ended = _within_limits(steps, partition, spending)
            state.end(ended)
        folds, ended = stages.fetch(steps, graph, state, partition.programs)
        state.end(ended)
        within = None if rules.alone else _seconds_left(deadline, work)
        try:
            new, ended = stages.transform(
                folds, engine.sandbox, partition.decided, spending, within
            )
        except TookTooLong as error:
            raise _overflow(work, error, spending) from error
        state.add(new)
        state.end(ended)
        _count_bytes(new, graph, spending, rules)
        arrivals, ended = stages.dispatch(new, graph, spending, rules)
        waiting.add(arrivals)
        state.end(ended)

    stages.emit(state, work, partition, output)


def _received(
    work: Work, reachable: set[StreamRef], spending: Spending
) -> tuple[NewUpdates, Round]:
    """What came from outside: updates that nothing comes before, and direct writes.

    A direct write is an update of a composite that computes in this batch. It waits for
    its place among the computations.
    """
    new: dict[StreamRef, list[NewUpdate]] = {}
    direct_writes: dict[StreamRef, list[Step]] = {}
    for each in work.new_updates:
        place, update, _uses = each
        origin = update.origin
        spending.add_raw_bytes(len(update.document))
        if origin in reachable:
            step = Step(place, origin, DIRECT_WRITE, update)
            direct_writes.setdefault(origin, []).append(step)
        else:
            new.setdefault(origin, []).append(each)
    return new, direct_writes


def _seconds_left(deadline: float, work: Work) -> float:
    """Seconds that scripts of this batch may still take. Raises BatchTooSlow.

    A single update takes what its tree takes: the limits of trees bound that.
    """
    if len(work.updates) == 1:
        return float("inf")
    left = deadline - time.monotonic()
    if left <= 0:
        raise BatchTooSlow
    return left


def _overflow(work: Work, error: TookTooLong, spending: Spending) -> BatchTooSlow | TreeTooSlow:
    """What it means that scripts took too long."""
    if len(work.updates) > 1:
        return BatchTooSlow()
    record = work.updates[0].record
    foreign = spending.latest != record.tenant
    return TreeTooSlow(record.offset, prepared=error.prepared, foreign=foreign)


def _count_bytes(new: NewUpdates, graph: Graph, spending: Spending, rules: Rules) -> None:
    """Note the bytes of what was derived. Raises TreeTooLarge unless the tree is alone."""
    for ref, updates in new.items():
        tenant = graph.tenant(ref)
        for (offset, depth, _path), update, _uses in updates:
            if depth:
                part = offset, tenant
                spending.add_bytes(part, len(update.document))
                if not rules.alone and spending.is_too_large(part):
                    raise TreeTooLarge(offset)


def _within_limits(
    steps: Round, partition: Partition, spending: Spending
) -> tuple[Round, list[Verdict]]:
    """The steps that may compute, and how the others end. Of a tree taken alone."""
    kept: dict[StreamRef, list[Step]] = {}
    ended: list[Verdict] = []
    for ref, theirs in steps.items():
        for step in theirs:
            part = step.place.offset, partition.graph.tenant(ref)
            refusal = spending.refusal(part)
            known = partition.decided.knows(ref, step.place)
            if step.kind == DIRECT_WRITE or refusal is None or known:
                kept.setdefault(ref, []).append(step)
            elif spending.note_refusal(part):
                kind, message = refusal
                ended.append(Verdict(step.place, ref, kind, step.update, message))
    return kept, ended
