"""Computes a stretch of the log whatever its updates do: cuts it, waits, or leaves one out.

Every error that can come of accepted records is in one of three classes. What heals by
waiting (Unavailable and its like) is raised, and the stretch is tried again. What concerns
one record or tree is a value: a verdict, or a cut into pieces that fit. Anything else is a
bug of ours: it is logged, the batch is halved until the record that does it stands alone,
and that record becomes a dead letter. So nothing that was accepted stops a partition.

And nobody waits for another: what of a stretch takes long, or is more than fits, while others are
active, is put off by the transaction that stores the rest, and goes on (`late.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pipeline.batching.cutting import Piece
from pipeline.batching.flow import Flight, Flow
from pipeline.batching.pieces import Pieces
from pipeline.engine import Engine
from pipeline.errors import BatchTooLarge
from pipeline.process import behind
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.spending import is_too_much
from pipeline.state.partition import Partition
from pipeline.work import Work
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")

SLOW_SECONDS = 1.0
"""A batch that takes longer is worth an event: others have waited for it."""


class Batches:
    """Computes, stores and emits stretches of the log of one partition."""

    def __init__(
        self,
        partition: Partition,
        output: Output,
        engine: Engine,
        fairness: Fairness,
        pieces: Pieces,
        flow: Flow,
        adopt: Callable[[Flight], None],
        others_wait: Callable[[int], bool],
    ) -> None:
        """`adopt` takes pieces that go on late. `others_wait` tells whether records of others
        than a tenant have come meanwhile."""
        self._partition = partition
        self._output = output
        self._engine = engine
        self._shares = fairness.shares
        self._fairness = fairness
        self._pieces = pieces
        self._flow = flow
        self._adopt = adopt
        self._others_wait = others_wait

    def run(self, work: Work) -> None:
        """Compute the work as one transaction, or as several where it causes too much for one.

        Raises the errors that no record is to blame for.
        """
        waiting = [Piece(work)]
        while waiting:
            piece = self._behind_what_waits(waiting.pop())
            some = piece.work
            if some.is_empty and some.end <= self._partition.progress:
                continue
            decided = self._first_decided(some)
            if decided is not None and len(some.updates) > 1:
                waiting += map(Piece, reversed(some.cut(decided, decided + 1)))
                continue
            try:
                self._compute(some, alone=piece.alone, decided=decided is not None)
            except self._engine.passes:
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, others must go on
                waiting += reversed(self._pieces.instead_of(some, error))
        is_backlog = len(work.updates) + len(work.put_off) >= self._engine.backlog
        self._partition.trim(contested=self._shares.contested and not is_backlog)

    def _behind_what_waits(self, piece: Piece) -> Piece:
        """A piece of a batch, once an earlier piece has been put off: behind that.

        Or once its tenant is over its share: a batch may have many pieces.
        """
        work = piece.work
        if work.late or not work.updates or self._first_decided(work) is not None:
            return piece
        held = set(work.owners.values())
        waits = self._partition.waiting.keys() | self._partition.under_way
        held &= waits | self._shares.over()
        return Piece(work.without(held)) if held else piece

    def _first_decided(self, work: Work) -> int | None:
        """The number of the first update whose outcomes subscribers know already."""
        decided, updates = self._partition.decided, work.updates
        if not decided.trees:
            return None
        known = (decided.covers(each.offset, each.tenant, each.roots[0].path) for each in updates)
        return next((number for number, is_known in enumerate(known) if is_known), None)

    def _compute(self, work: Work, *, alone: bool, decided: bool) -> None:
        """One transaction. Raises Overflow where nothing was stored because it is too much."""
        flights: list[Flight] = []
        began, waited, processor = time.monotonic(), self._flow.waited, time.thread_time()
        try:
            theirs = work.by_tenant()
            if len(theirs) > 1:
                self._partition.recall_all(work)
            for some in theirs:
                flights.append(self._pieces.begin(some, alone=alone, decided=decided))
            left = self._flow.settle(flights, lambda: not decided and self._leaves(flights))
            self._store(work, flights, left)
        finally:
            seconds = time.monotonic() - began - (self._flow.waited - waited)
            self._flow.drop([each for each in flights if not each.is_adopted])
            for each in flights:
                each.error = None  # its traceback holds the flight
            self._charge(flights, seconds, time.thread_time() - processor)

    def _store(self, work: Work, flights: Sequence[Flight], left: Sequence[Flight]) -> None:
        """Store what is done, and put off what is not. Raises what ended a piece, where that is
        everybody's affair."""
        for each in flights:
            if each.error and (len(flights) == 1 or isinstance(each.error, self._engine.passes)):
                raise each.error
        failed = [each for each in flights if each.error is not None]
        done = [each for each in flights if each.state is not None]
        if len(done) > 1 and is_too_much(
            sum([each.spending.computations for each in done]),
            sum([each.spending.bytes for each in done]),
        ):
            raise BatchTooLarge
        later = [each.tenant for each in (*left, *failed)]
        rest = work.without(later) if later else work
        states = [each.state for each in done if each.state is not None]
        endings = behind(work, self._partition.graph)
        for _ in self._engine.stages.emit(states, endings, rest, self._partition, self._output):
            """What is not late is sent already."""
        self._partition.note_waiting(rest)
        for each in done:
            self._pieces.ended(each)
        for each in filter(self._flow.goes_on, left):  # the others have their turn once more
            each.is_adopted = True
            self._adopt(each)

    def _leaves(self, flights: Sequence[Flight]) -> bool:
        """Whether somebody waits for what is slow."""
        if len(flights) > 1 or self._shares.contested:
            return True
        return self._others_wait(flights[0].tenant)

    def _charge(self, flights: Sequence[Flight], seconds: float, processor: float) -> None:
        """Charge tenants with the time of a batch, and tell of one that took long."""
        ended = [(each.tenant, each.spending) for each in flights if not each.is_adopted]
        charged = self._fairness.note(ended, seconds, processor)
        if seconds > SLOW_SECONDS:
            facts = {"seconds": round(seconds, 3), "updates": sum(e.updates for _t, e in ended)}
            log.warning("batch_slow", extra=facts | {"by_tenant": charged})
