"""An executor that has no thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ImmediateExecutor(Executor):
    """Does at once what it is given: nothing is beside anything."""

    def submit(
        self,
        act: Callable[Arguments, Result],
        /,
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Future[Result]:
        """Return what came of it, an error, too, as an executor with threads does."""
        done: Future[Result] = Future()
        try:
            done.set_result(act(*arguments, **named))
        except BaseException as error:  # noqa: BLE001  it is raised by who asks for the result
            done.set_exception(error)
        return done
