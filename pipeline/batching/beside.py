"""Late work computed beside the batches of its partition: by a thread of its own, if there is one.

Scripts of strangers may take long, and nobody else is to wait for them. While a sandbox's
process computes, the thread that asked it only waits: the partition goes on with what has
nothing to do with it (`pipeline/state/excerpt.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial

from pipeline.batching.batches import Batches
from pipeline.batching.cutting import Cutting
from pipeline.batching.dead_letters import DeadLetters
from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.state.excerpt import Excerpt
from pipeline.work import Work
from servioticy.domain.pauses import Paused, finished
from servioticy.errors import Unavailable
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")


@dataclass(slots=True)
class _Piece:
    """What is under way, or begins as soon as it may."""

    work: Work
    excerpt: Excerpt
    before: int
    """The partition's own client has to be acknowledged up to here first."""
    future: Future[None] | None = None
    """Of its computation, once that has begun."""
    giving_back: Paused[None] | None = None
    """What is left of it, once that has ended."""

    @property
    def has_ended(self) -> bool:
        return self.future is not None and self.future.done()

    @property
    def is_computing(self) -> bool:
        return self.future is not None and not self.future.done()


class Beside:
    """One piece of late work at a time, and what the partition has lent for it."""

    def __init__(
        self,
        executor: Executor,
        output: Output,
        new_output: Callable[[], Output],
        engine: Engine,
        fairness: Fairness,
        cutting: Cutting,
    ) -> None:
        """`output` is the partition's own, `new_output` makes the one that is used here."""
        self._executor = executor
        self._partitions_output = output
        self._new_output = new_output
        self._output: Output | None = None
        self._engine = replace(engine, evaluators=engine.beside or engine.evaluators)
        self._fairness = fairness
        self._cutting = cutting
        self._piece: _Piece | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a piece is under way, or has not been noted yet."""
        return self._piece is not None

    @property
    def has_ended(self) -> bool:
        """Whether a piece has ended, and is to be given back."""
        return self._piece is not None and self._piece.has_ended

    @property
    def is_computing(self) -> bool:
        """Whether there is nothing to do but wait for a piece."""
        return self._piece is not None and self._piece.is_computing

    def start(self, work: Work, excerpt: Excerpt, before: int) -> None:
        """Compute, store and emit a piece of work; nothing else is under way.

        It begins when all is acknowledged that the partition has emitted `before` this offset of
        the log: what follows is sent by another client, and is not to overtake that.
        """
        self._piece = _Piece(work, excerpt, before)
        self.advance()

    def advance(self) -> bool:
        """Begin with a piece that may, or give back a little of one that has ended.

        Returns whether nothing is under way. Raises what the piece ended with, and Unavailable.
        """
        piece = self._piece
        if piece is not None and piece.future is None:
            self._partitions_output.poll()
            if self._partitions_output.acknowledged >= piece.before:
                self._begin(piece)
        # After the last bit there is a pause, too: the one moment at which a worker that computes
        # all the time looks for garbage.
        if piece is not None and piece.has_ended and next(self._giving_back(piece), True):
            self._piece = None
        return self._piece is None

    def settle(self) -> None:
        """Wait until nothing is under way. Raises what it ended with, and Unavailable."""
        piece = self._piece
        if piece is None:
            return
        if piece.future is None:
            self._partitions_output.flush()
            self._begin(piece)
        finished(self._giving_back(piece))
        self._piece = None

    def withdraw(self) -> None:
        """Wait until nothing is under way, of which no more is stored; forget what came of it."""
        piece, self._piece = self._piece, None
        if piece is not None and piece.future is not None:
            piece.excerpt.withdraw()
            error = piece.future.exception()
            if error is not None:
                log.info("late_work_withdrawn", extra={"why": str(error)})

    def _begin(self, piece: _Piece) -> None:
        piece.future = self._executor.submit(partial(self._run, piece.work, piece.excerpt))

    def _giving_back(self, piece: _Piece) -> Paused[None]:
        """What is left of giving back a piece; waits until that has ended."""
        if piece.giving_back is None:
            error = piece.future.exception() if piece.future else None
            if isinstance(error, self._engine.passes):
                # Fenced, too: whoever has it now, beginning it tells. The error itself is held by
                # the future; raised, its traceback would hold that, and with it the partition.
                raise Unavailable(str(error)) from None
            if error is not None:
                raise error
            piece.giving_back = piece.excerpt.give_back()
        return piece.giving_back

    def _run(self, work: Work, excerpt: Excerpt) -> None:
        output = self._output = self._output or self._new_output()
        letters = DeadLetters(excerpt.number, output, self._engine.passes)
        batches = Batches(excerpt, output, self._engine, self._fairness, letters, self._cutting)
        batches.run(work)
