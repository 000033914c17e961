"""Computing a stretch of the log whatever its updates do: cut, wait, or leave one out.

Every error that can come of accepted records is in one of three classes. What heals by
waiting (Unavailable and its like) is raised, and the stretch is tried again. What concerns
one record or tree is a value: a verdict, or a cut into pieces that fit. Anything else is a
bug of ours: it is logged, the batch is halved until the record that does it stands alone,
and that record becomes a dead letter. So nothing that was accepted stops a partition.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pipeline.intake import Intake, Row
from pipeline.limits import (
    BatchTooLarge,
    BatchTooSlow,
    Limits,
    Overflow,
    TreeTooLarge,
    TreeTooSlow,
)
from pipeline.partition import Partition
from pipeline.process import process
from pipeline.sharing.pace import Pace, count_by_tenant
from pipeline.sharing.shares import Shares
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import Rules
from pipeline.stages.transform import Sandbox
from pipeline.work import Work
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PutOff

log = logging.getLogger("servioticy.pipeline")

PIECES = 4
"""Into so many a batch is cut that took too long."""

ATTEMPTS = 3
"""Of a tree whose scripts take too long, before it is taken alone and cut by its verdicts: the
machine may have been busy."""

PREPARING_ATTEMPTS = 100
"""Of one whose programs are met for the first time; each gets further than the one before."""

MAX_REMEMBERED = 1000

SLOW_SECONDS = 1.0
"""A batch that takes longer is worth an event: others have waited for it."""


class Piece(NamedTuple):
    """A piece of work; `alone`: one tree, one computation at a time."""

    work: Work
    alone: bool = False


class Batches:
    """Computes, stores and emits work of one partition."""

    def __init__(
        self,
        partition: Partition,
        sandbox: Sandbox,
        output: Output,
        limits: Limits,
        shares: Shares,
        pace: Pace,
        heals: tuple[type[Exception], ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._partition = partition
        self._sandbox = sandbox
        self._output = output
        self._limits = limits
        self._shares = shares
        self._pace = pace
        self._heals = heals
        self._clock = clock
        self._intake = Intake(partition, output, heals)
        self._attempts: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def run(self, work: Work) -> None:
        """Take it as one batch, or as several where it causes too much for one.

        Raises what heals by waiting, Fenced among it. Of late work that took too long only a
        first piece is done, and the rest waits where it was.
        """
        waiting = [Piece(work)]
        while waiting:
            piece = self._behind_what_waits(waiting.pop())
            some = piece.work
            if some.is_empty and some.next_offset <= self._partition.next_offset:
                continue
            decided = self._first_decided(some)
            if decided is not None and len(some.taken) > 1:
                waiting += map(Piece, reversed(some.cut(decided, decided + 1)))
                continue
            try:
                self._take(some, alone=piece.alone, decided=decided is not None)
            except Overflow as overflow:
                pieces = self._smaller(some, overflow)
                if some.late:
                    waiting = pieces[:1]
                else:
                    waiting += reversed(pieces)
            except self._heals:
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, others must go on
                waiting += map(Piece, reversed(self._without_culprit(some, error)))
        self._partition.trim()

    def _behind_what_waits(self, piece: Piece) -> Piece:
        """A piece of a batch, once an earlier piece has been put off: behind that.

        Or once its tenant is over its share: a batch may have many pieces.
        """
        work = piece.work
        if work.late or not work.taken or self._first_decided(work) is not None:
            return piece
        held = set(work.owners.values())
        held &= self._partition.waiting.keys() | self._shares.over()
        return Piece(work.without(held)) if held else piece

    def guard(self, row: Row, act: Callable[[], None], late: Sequence[PutOff] = ()) -> None:
        """Do what a control record asks; a bug in that makes a dead letter of the record."""
        try:
            act()
        except self._heals:
            raise
        except Exception as error:
            number = self._partition.number
            log.exception("record_failed", extra={"partition": number, "offset": row.offset})
            self._intake.bury(row, f"failed: {type(error).__name__}: {error}")
            end = self._partition.next_offset if late else row.offset + 1
            self.run(Work((), end, (), late))

    def _first_decided(self, work: Work) -> int | None:
        """The number of the first update whose outcomes subscribers know already."""
        decided = self._partition.decided
        if not decided.trees:
            return None
        offsets = (each.record.offset for each in work.taken)
        return next((number for number, at in enumerate(offsets) if decided.covers(at)), None)

    def _take(self, work: Work, *, alone: bool = False, decided: bool = False) -> None:
        """One transaction. Raises Overflow where nothing was stored because it is too much.

        What is decided is taken alone, and nobody in it is refused: it was not then.
        """
        spending = Spending(self._limits, work.owners)
        shared = not decided and self._partition.graph.shared
        refused = self._shares.over() if shared else frozenset[int]()
        rules = Rules(self._limits, alone or decided, refused)
        began = self._clock()
        try:
            process(work, self._partition, self._sandbox, self._output, rules, spending)
        finally:
            self._note(work, spending, self._clock() - began)
        self._partition.note_waiting(work)

    def _note(self, work: Work, spending: Spending, seconds: float) -> None:
        """Charge tenants with the time, and learn from it how long updates take."""
        spent = spending.shared_out(seconds)
        self._shares.saw(spent)
        self._shares.charge(spent)
        if seconds > SLOW_SECONDS:
            facts = {"seconds": round(seconds, 3), "updates": len(work.taken)}
            log.warning("batch_slow", extra=facts | {"by_tenant": spent})
        if work.taken:
            self._pace.learn(count_by_tenant(work.owners), spent)

    def _smaller(self, work: Work, overflow: Overflow) -> list[Piece]:
        """The work in pieces of which each is less; the slow ones of a tenant are put off.

        Late work in no pieces at all waits for the next time.
        """
        count = len(work.taken)
        if isinstance(overflow, BatchTooLarge):
            return _pieces(work.cut(count // 2))
        if isinstance(overflow, BatchTooSlow):
            return _pieces(
                self._put_off(work) or work.cut(*range(0, count, max(1, count // PIECES)))
            )
        if not isinstance(overflow, TreeTooLarge):
            raise overflow
        if count > 1:
            place = next(
                number
                for number, each in enumerate(work.taken)
                if each.record.offset == overflow.offset
            )
            return _pieces(work.cut(place, place + 1))
        # Nobody's tree waits for the programs of those who subscribe to it.
        if isinstance(overflow, TreeTooSlow) and not overflow.foreign:
            later = self._put_off(work)
            if later:
                return _pieces(later)
            if self._tries_again(overflow):
                waits = overflow.prepared or work.late
                return self._another_time(work) if waits else [Piece(work)]
        return [Piece(work, alone=True)]

    def _another_time(self, work: Work) -> list[Piece]:
        """Others come first meanwhile: to know its programs takes a while, for one."""
        return [] if work.late else _pieces([work.without(work.owners.values())])

    def _put_off(self, work: Work) -> list[Work]:
        """The work without what tenants over their share have in it; none if that is nothing."""
        over = set(work.owners.values()) & self._shares.over()
        return [work.without(over)] if over and not work.late else []

    def _tries_again(self, tree: TreeTooSlow) -> bool:
        preparing, other = self._attempts.get(tree.offset, (0, 0))
        preparing, other = (preparing + 1, other) if tree.prepared else (preparing, other + 1)
        self._attempts[tree.offset] = preparing, other
        if len(self._attempts) > MAX_REMEMBERED:
            self._attempts.popitem(last=False)
        return preparing < PREPARING_ATTEMPTS and other < ATTEMPTS

    def _without_culprit(self, work: Work, error: Exception) -> list[Work]:
        """Halves; or the work without its one record, which becomes a dead letter."""
        number = self._partition.number
        if len(work.taken) > 1:
            log.exception("batch_failed", extra={"partition": number, "updates": len(work.taken)})
            return work.cut(len(work.taken) // 2)
        if not work.taken:
            raise error
        offset, _tenant, _service_object, record = work.taken[0].record
        log.exception("record_failed", extra={"partition": number, "offset": offset})
        self._intake.bury(Row(offset, record), f"failed: {type(error).__name__}: {error}")
        return [work._replace(taken=())]


def _pieces(works: Iterable[Work]) -> list[Piece]:
    return [Piece(each) for each in works]
