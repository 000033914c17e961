"""An executor that has no thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

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
