"""The file to read first: a batch of updates goes through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription. And that is
how it is computed: the graph is cut into *regions*, and the evaluator of each takes the trees
of the batch in just that way, one after the other. A region comes after those that it reads.
A tree is of one tenant: what others read of it comes to them through the log
(docs/decisions/0046-borders.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

from pipeline.engine import Engine
from pipeline.errors import BatchTooSlow, TreeTooSlow
from pipeline.growth import Verdict
from pipeline.limits import BATCH_SECONDS, MAX_WAITING
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED
from pipeline.state.base import Base
from pipeline.state.batch import BatchState
from pipeline.work import Work
from sandbox import TookTooLong
from servioticy.domain.graph import Graph
from servioticy.domain.verdicts import BEHIND
from servioticy.ports.output import Output

TOO_MUCH_WAITS = f"more than {MAX_WAITING} records of its tenant wait to be computed"


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
    spending.add_bytes(sum(each.size for each in updates))
    origins = [[graph.stream(root.origin) for root in each.roots] for each in updates]
    last_updates = base.recall(dict.fromkeys(chain.from_iterable(origins)))
    state = BatchState(updates, origins, last_updates)
    state.enter(
        [graph.whole(some) if rules.alone else [each.entries for each in some] for some in origins]
    )
    state.end(_behind(work, graph))

    while entered := state.next_level():
        entering, ended = stages.dispatch(entered, updates, rules, spending)
        state.end(ended)
        asked = stages.fetch(entering, updates, graph, last_updates, rules)
        within = None if rules.alone else _seconds_left(deadline, work)
        try:
            new, ended = stages.transform(
                asked, updates, engine.evaluators, base.decided, rules, spending, within
            )
        except TookTooLong as error:
            raise _overflow(work, error) from error
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


def _overflow(work: Work, error: TookTooLong) -> BatchTooSlow | TreeTooSlow:
    """What it means that scripts took too long."""
    if len(work.updates) > 1:
        return BatchTooSlow()
    return TreeTooSlow(work.updates[0].key, prepared=error.prepared)


def _behind(work: Work, graph: Graph) -> Iterator[Verdict]:
    """How computations end that do not begin, as their tenant is too far behind."""
    for each in work.behind:
        for origin, timestamp, _document, _path in each.roots:
            for wake in graph.wakes(origin)[:MAX_SHED_NOTED]:
                composite, trigger = graph.stream(wake.composite), graph.stream(origin)
                yield Verdict(composite, BEHIND, trigger, timestamp, TOO_MUCH_WAITS)
