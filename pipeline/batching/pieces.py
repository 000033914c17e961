"""Pieces of work, each of one tenant: how one is begun, and what is left of one that failed."""

from __future__ import annotations

import logging

from pipeline.batching.cutting import Cutting, Piece
from pipeline.batching.dead_letters import DeadLetters
from pipeline.batching.flow import Flight, Flow
from pipeline.batching.slots import SLOW_SECONDS
from pipeline.engine import Engine
from pipeline.errors import Overflow
from pipeline.process import process
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.work import Row, Work

log = logging.getLogger("servioticy.pipeline")


class Pieces:
    """Begins the pieces of one partition."""

    def __init__(
        self,
        partition: Partition,
        engine: Engine,
        fairness: Fairness,
        dead_letters: DeadLetters,
        cutting: Cutting,
        flow: Flow,
    ) -> None:
        self._partition = partition
        self._engine = engine
        self._fairness = fairness
        self._dead_letters = dead_letters
        self._cutting = cutting
        self._flow = flow
        self.is_backlog = False
        """Whether there is more than can be served quickly."""

    def begin(self, work: Work, *, alone: bool = False, decided: bool = False) -> Flight:
        """Let a piece begin, of which there are updates of one tenant. Raises Unavailable.

        What is `decided`, as subscribers know of it, is computed alone, and nobody in it is
        refused: it was not then. Late work is not read back from what was emitted.
        """
        alone = alone or decided or self._cutting.is_slow(work)
        limits, tenant = self._engine.limits, work.updates[0].tenant
        size = sum(each.size for each in work.updates)
        spending = Spending(limits, len(work.updates), size)
        rules = Rules(limits, alone)
        if not decided and any(each.is_input for each in work.updates):
            rules = self._fairness.rules(limits, self._partition.store, alone=alone)
        known = Decided() if work.late else self._partition.decided
        steps = process(work, self._partition, known, self._engine, rules, spending)
        is_met = self._fairness.shares.knows(tenant)
        is_slow = self.is_slow(tenant)
        return self._flow.begin(Flight(tenant, work, steps, spending, is_met, is_slow))

    def is_slow(self, tenant: int) -> bool:
        """Whether a piece of it takes long as far as is known, so that nobody is to wait for it.

        As its updates have; or as a process has to be started for it, but in a backlog.
        """
        if self._fairness.shares.each(tenant) >= SLOW_SECONDS:
            return True
        return not self.is_backlog and not any(
            by.is_ready(str(tenant)) for by in self._engine.evaluators.values()
        )

    def was_slow(self, flight: Flight) -> bool:
        """Whether a piece that is computed has cost so much that nobody is to wait for it."""
        spending = flight.spending
        return flight.is_slow or spending.processor >= SLOW_SECONDS * spending.updates

    def ended(self, flight: Flight) -> None:
        """Remember of a piece that is done whether its scripts took too long."""
        self._cutting.note(flight.work, flight.spending)

    def instead_of(self, work: Work, error: Exception) -> list[Piece]:
        """What is to be computed in place of work that ended so, which nothing is to heal."""
        if isinstance(error, Overflow):
            return self._cutting.smaller(work, error)
        return self.without_culprit(work, error)

    def without_culprit(self, work: Work, error: Exception) -> list[Piece]:
        """Halves; or the work without its one record, which becomes a dead letter."""
        count = len(work.updates)
        if count > 1:
            facts = {"partition": self._partition.number, "updates": count}
            log.error("batch_failed", extra=facts, exc_info=error)
            return [Piece(each) for each in work.cut(count // 2)]
        if not work.updates:
            raise error
        update = work.updates[0]
        self._dead_letters.add_failed(Row(update.offset, update.record), error)
        return [Piece(work._replace(updates=()))]
