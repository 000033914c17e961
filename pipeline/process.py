"""The file to read first: a piece, updates of one tenant, goes through the four stages.

What is stored and emitted equals what an interpreter gives that takes the log one
update at a time and runs its whole tree breadth first, in order of subscription. And that is
how it is computed: the graph is cut into *regions*, and the evaluator of each takes the trees
of the piece in just that way, one after the other. A region comes after those that it reads.
A tree is of one tenant: what others read of it comes to them through the log
(docs/decisions/0046-borders.md).

A piece is a generator, which waits for nobody: it yields what its evaluators are to be asked,
and goes on when it is sent the answer (docs/decisions/0049-flow.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from pipeline.engine import Engine
from pipeline.errors import BatchTooSlow, TreeTooLarge, TreeTooSlow
from pipeline.growth import Keeping, StateLacking, Verdict
from pipeline.limits import BATCH_SECONDS, MAX_WAITING
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED
from pipeline.state.batch import BatchState
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.work import Work
from sandbox import TookTooLong
from servioticy.domain.borders import revision_over
from servioticy.domain.graph import Graph, Whole
from servioticy.domain.known_streams import KnownStream, is_follower
from servioticy.domain.pauses import Paused
from servioticy.domain.plans import Plan
from servioticy.domain.verdicts import BEHIND

TOO_MUCH_WAITS = f"more than {MAX_WAITING} records of its tenant wait to be computed"

Steps: TypeAlias = Generator[Callable[[], Any] | None, Any, BatchState]
"""Yields what is to be asked: to be called in whichever thread, as it touches nothing of the
partition; is sent what that returns, or thrown what it raises. None: others may go on first."""

SLICE_SECONDS = 0.002
"""Long work on a graph gives way to others after so long."""

LONG = 1_000
"""Last updates, of which trees need so many: to find what is asked and to take in what comes of it
takes milliseconds each, and others may go on before and behind."""

T = TypeVar("T")


def process(
    work: Work,
    partition: Partition,
    decided: Decided,
    engine: Engine,
    rules: Rules,
    spending: Spending,
) -> Steps:
    """Compute all that follows from the updates of this work; return it, to be stored and emitted.

    Raises Overflow where that is more than fits. A tree that the rules say is computed `alone` is
    evaluated one step at a time, and the limits cut it where the serial order does. `spending`
    gets what was spent, whatever happens.
    """
    graph, stages, updates, limits = partition.graph, engine.stages, work.updates, rules.limits
    spending.add_bytes(sum(each.size for each in updates))
    origins = [[graph.stream(root.origin) for root in each.roots] for each in updates]
    plans: dict[KnownStream, Plan] = {}
    for origin in dict.fromkeys(chain.from_iterable(origins)):
        plans[origin] = yield from _in_slices(graph.planning(origin))
    if not rules.alone:
        _check(work, origins, {o for o, plan in plans.items() if plan.least > limits.computations})
    last_updates = yield from _in_slices(partition.recall(plans.values()))
    is_long = len(last_updates) > LONG
    state = BatchState(updates, origins, last_updates)
    entries: list[Whole] = []
    for some in origins:
        if rules.alone:
            entries.append((yield from _in_slices(graph.whole(some))))
        else:
            entries.append(tuple([each.entries for each in some]))
    state.enter(entries)

    while entered := state.next_level():
        entering, ended = stages.dispatch(entered, updates, rules, spending)
        state.end(ended)
        keeping: Keeping = {}
        while entering:
            asked = stages.fetch(entering, updates, graph, last_updates, rules, keeping)
            if is_long:
                yield None
            within = None if rules.alone else _seconds_left(work, spending)
            try:
                new, ended = yield partial(
                    stages.transform,
                    asked,
                    updates,
                    engine.evaluators,
                    decided,
                    rules,
                    spending,
                    within,
                )
            except TookTooLong as error:
                raise _overflow(work, error) from error
            except StateLacking as lacking:
                is_one = len(updates) == 1
                keeping = partition.recall_kept(lacking.keys, keeping, is_one=is_one)
                continue
            if is_long:
                yield None
            state.add(new)
            state.end(ended)
            break
    return state


def _check(
    work: Work, origins: Sequence[Sequence[KnownStream]], too_large: Set[KnownStream]
) -> None:
    """Raise TreeTooLarge of a tree whose root alone wakes more than may compute: those of updates
    of these streams. To try it would take as long as to compute all that may."""
    for each, some in zip(work.updates, origins, strict=True) if too_large else ():
        if each.is_stored and not too_large.isdisjoint(some):
            raise TreeTooLarge(each.key)


def _in_slices(work: Paused[T]) -> Generator[None, Any, T]:
    until = time.monotonic() + SLICE_SECONDS
    while True:
        try:
            next(work)
        except StopIteration as end:
            answer: T = end.value
            return answer
        if time.monotonic() >= until:
            yield None
            until = time.monotonic() + SLICE_SECONDS


def _seconds_left(work: Work, spending: Spending) -> float:
    """Seconds that scripts of this piece may still take. Raises BatchTooSlow.

    A single update takes what its tree takes: the limits of trees bound that.
    """
    if len(work.updates) == 1:
        return float("inf")
    left = BATCH_SECONDS - spending.seconds
    if left <= 0:
        raise BatchTooSlow
    return left


def _overflow(work: Work, error: TookTooLong) -> BatchTooSlow | TreeTooSlow:
    """What it means that scripts took too long."""
    if len(work.updates) > 1:
        return BatchTooSlow()
    return TreeTooSlow(work.updates[0].key, prepared=error.prepared)


def behind(work: Work, graph: Graph) -> Iterator[Verdict]:
    """How computations end that do not begin, as their tenant is too far behind."""
    for each in work.behind:
        for origin, timestamp, document, path in each.roots:
            if revision_over(document, path):
                continue  # nobody but followers, of which nothing is told
            for wake in graph.wakes(origin)[:MAX_SHED_NOTED]:
                composite, trigger = graph.stream(wake.composite), graph.stream(origin)
                if is_follower(composite):
                    continue
                yield Verdict(composite, BEHIND, trigger, timestamp, TOO_MUCH_WAITS)
