"""Computes a stretch of the log whatever its updates do: cuts it, waits, or leaves one out.

Every error that can come of accepted records is in one of three classes. What heals by
waiting (Unavailable and its like) is raised, and the stretch is tried again. What concerns
one record or tree is a value: a verdict, or a cut into pieces that fit. Anything else is a
bug of ours: it is logged, the batch is halved until the record that does it stands alone,
and that record becomes a dead letter. So nothing that was accepted stops a partition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pipeline.batching.cutting import Cutting, Piece
from pipeline.batching.dead_letters import DeadLetters
from pipeline.engine import Engine
from pipeline.errors import Overflow
from pipeline.process import process
from pipeline.sharing.costs import Costs
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.state.base import Base
from pipeline.work import Row, Work
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PutOff, TreeKey

log = logging.getLogger("servioticy.pipeline")

SLOW_SECONDS = 1.0
"""A batch that takes longer is worth an event: others have waited for it."""


class Batches:
    """Computes, stores and emits work of one partition, or of what it has lent."""

    def __init__(
        self,
        base: Base,
        output: Output,
        engine: Engine,
        fairness: Fairness,
        dead_letters: DeadLetters,
        cutting: Cutting,
    ) -> None:
        self._base = base
        self._output = output
        self._engine = engine
        self._shares = fairness.shares
        self._fairness = fairness
        self._dead_letters = dead_letters
        self._cutting = cutting

    def run(self, work: Work) -> None:
        """Compute the work as one batch, or as several where it causes too much for one.

        Raises the errors that no record is to blame for. Of late work that took too long only
        a first piece is done, and the rest waits where it was.
        """
        waiting = [Piece(work)]
        while waiting:
            piece = self._behind_what_waits(waiting.pop())
            some = piece.work
            if some.is_empty and some.end <= self._base.progress:
                continue
            decided = self._first_decided(some)
            if decided is not None and len(some.updates) > 1:
                waiting += map(Piece, reversed(some.cut(decided, decided + 1)))
                continue
            try:
                alone = piece.alone or self._cutting.is_slow(some)
                self._compute(some, alone=alone, decided=decided is not None)
            except Overflow as overflow:
                pieces = self._cutting.smaller(some, overflow)
                if some.late:
                    waiting = pieces[:1]
                else:
                    waiting += reversed(pieces)
            except self._engine.passes:
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, others must go on
                waiting += map(Piece, reversed(self._without_culprit(some, error)))
        is_backlog = len(work.updates) + len(work.put_off) >= self._engine.backlog
        self._base.trim(contested=self._shares.contested and not is_backlog)

    def _behind_what_waits(self, piece: Piece) -> Piece:
        """A piece of a batch, once an earlier piece has been put off: behind that.

        Or once its tenant is over its share: a batch may have many pieces.
        """
        work = piece.work
        if work.late or not work.updates or self._first_decided(work) is not None:
            return piece
        held = set(work.owners.values())
        held &= self._base.waiting.keys() | self._shares.over()
        return Piece(work.without(held)) if held else piece

    def guard(self, row: Row, act: Callable[[], None], late: Sequence[PutOff] = ()) -> None:
        """Do what a control record asks; a bug in that makes a dead letter of the record."""
        try:
            act()
        except self._engine.passes:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, others must go on
            self._dead_letters.add_failed(row, error)
            end = self._base.progress if late else TreeKey(row.offset + 1)
            self.run(Work((), end, (), late))

    def _first_decided(self, work: Work) -> int | None:
        """The number of the first update whose outcomes subscribers know already."""
        decided = self._base.decided
        if not decided.trees:
            return None
        known = (decided.covers(each.offset, each.tenant) for each in work.updates)
        return next((number for number, is_known in enumerate(known) if is_known), None)

    def _compute(self, work: Work, *, alone: bool = False, decided: bool = False) -> None:
        """One transaction. Raises Overflow where nothing was stored because it is too much.

        What is decided is computed alone, and nobody in it is refused: it was not then.
        """
        limits = self._engine.limits
        spending = Spending(limits, work.owners, work.sizes)
        rules = Rules(limits, alone or decided)
        if not decided and any(each.is_input for each in work.updates):
            rules = self._fairness.rules(limits, self._base.store, alone=alone)
        began, processor = time.monotonic(), time.thread_time()
        whole = False
        try:
            process(work, self._base, self._output, self._engine, rules, spending)
            whole = True
        finally:
            processor = time.thread_time() - processor
            self._note(work, spending.costs, time.monotonic() - began, processor, whole=whole)
        self._base.note_waiting(work)
        self._cutting.note(work, spending)

    def _note(
        self, work: Work, costs: Costs, seconds: float, processor: float, *, whole: bool
    ) -> None:
        """Charge tenants with the time of a batch, and tell of one that took long."""
        self._fairness.note(costs, seconds, processor, whole=whole)
        if seconds > SLOW_SECONDS:
            facts = {"seconds": round(seconds, 3), "updates": len(work.updates)}
            log.warning("batch_slow", extra=facts | {"by_tenant": costs.seconds(seconds)})

    def _without_culprit(self, work: Work, error: Exception) -> list[Work]:
        """Halves; or the work without its one record, which becomes a dead letter."""
        count = len(work.updates)
        if count > 1:
            facts = {"partition": self._base.number, "updates": count}
            log.exception("batch_failed", extra=facts)
            return work.cut(count // 2)
        if not work.updates:
            raise error
        update = work.updates[0]
        self._dead_letters.add_failed(Row(update.offset, update.record), error)
        return [work._replace(updates=())]
