"""The file to read first: a batch of updates goes through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription. And that is
how it is computed: the graph is cut into *regions*, and the evaluator of each takes the trees
of the batch in just that way, one after the other. A region comes after those that it reads.
"""

from __future__ import annotations

import time

from pipeline.engine import Engine
from pipeline.errors import BatchTooSlow, TreeTooSlow
from pipeline.limits import BATCH_SECONDS
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.state.base import Base
from pipeline.state.batch import BatchState
from pipeline.work import Work
from sandbox import TookTooLong
from servioticy.ports.output import Output


def process(
    work: Work,
    base: Base,
    output: Output,
    engine: Engine,
    rules: Rules,
    spending: Spending,
) -> None:
    """Compute, store and emit all that follows from the updates of this work.

    Raises Overflow before anything is stored where that is more than fits. A tree that the
    rules say is computed `alone` is evaluated one step at a time, and the limits cut it where
    the serial order does. `spending` gets what was spent, whatever happens.
    """
    graph, stages, updates = base.graph, engine.stages, work.updates
    deadline = time.monotonic() + BATCH_SECONDS
    spending.add_bytes(sum(len(each.document) for each in updates))
    origins = [graph.stream(each.origin) for each in updates]
    last_updates = base.recall(dict.fromkeys(origins))
    state = BatchState(updates, origins, last_updates)
    state.enter([graph.whole(each) if rules.alone else each.entries for each in origins])

    while entered := state.next_level():
        entering, ended = stages.dispatch(entered, updates, rules, spending)
        state.end(ended)
        asked = stages.fetch(entering, updates, graph, last_updates, rules, spending)
        within = None if rules.alone else _seconds_left(deadline, work)
        try:
            new, ended = stages.transform(
                asked, updates, engine.evaluators, base.decided, rules, spending, within
            )
        except TookTooLong as error:
            raise _overflow(work, error, spending) from error
        state.add(new)
        state.end(ended)

    stages.emit(state, work, base, output)


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
    update = work.updates[0]
    foreign = spending.latest != update.tenant
    return TreeTooSlow(update.offset, prepared=error.prepared, foreign=foreign)
