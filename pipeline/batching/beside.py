"""Late work computed beside the batches of its partition: by a thread of its own, if there is one.

Scripts of strangers may take long, and nobody else is to wait for them. While a sandbox's
process computes, the thread that asked it only waits: the partition goes on with what has
nothing to do with it (`pipeline/state/excerpt.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

from pipeline.batching.batches import Batches
from pipeline.batching.cutting import Cutting
from pipeline.batching.dead_letters import DeadLetters
from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.state.excerpt import Excerpt
from pipeline.work import Work
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class InTurn(Executor):
    """Does at once what it is given: nothing is beside anything."""

    def submit(
        self,
        act: Callable[Arguments, Answer],
        /,
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Future[Answer]:
        """Return what came of it; raises what it raises."""
        done: Future[Answer] = Future()
        done.set_result(act(*arguments, **named))
        return done


class _Under(NamedTuple):
    """What is under way."""

    excerpt: Excerpt
    future: Future[None]


class Beside:
    """One piece of late work at a time, and what the partition has lent for it."""

    def __init__(
        self,
        executor: Executor,
        new_output: Callable[[], Output],
        engine: Engine,
        fairness: Fairness,
        cutting: Cutting,
    ) -> None:
        """`new_output` makes the one that what comes out late is sent by."""
        self._executor = executor
        self._new_output = new_output
        self._output: Output | None = None
        self._engine = engine
        self._fairness = fairness
        self._cutting = cutting
        self._under: _Under | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a piece is under way, or has not been noted yet."""
        return self._under is not None

    def start(self, work: Work, excerpt: Excerpt) -> None:
        """Begin to compute, store and emit a piece of work; nothing else is under way."""
        self._under = _Under(excerpt, self._executor.submit(partial(self._run, work, excerpt)))

    def is_idle(self) -> bool:
        """Whether nothing is under way; what has just ended is given back.

        Raises what it ended with.
        """
        if self._under is not None and self._under.future.done():
            self.settle()
        return self._under is None

    def settle(self) -> None:
        """Wait until nothing is under way. Raises what it ended with."""
        if self._under is not None:
            excerpt, future = self._under
            future.result()
            self._under = None
            excerpt.give_back()

    def withdraw(self) -> None:
        """Wait until nothing is under way, of which no more is stored; forget what came of it."""
        if self._under is not None:
            excerpt, future = self._under
            self._under = None
            excerpt.withdraw()
            error = future.exception()
            if error is not None:
                log.info("late_work_withdrawn", extra={"why": str(error)})

    def _run(self, work: Work, excerpt: Excerpt) -> None:
        output = self._output = self._output or self._new_output()
        letters = DeadLetters(excerpt.number, output, self._engine.passes)
        batches = Batches(excerpt, output, self._engine, self._fairness, letters, self._cutting)
        batches.run(work)
