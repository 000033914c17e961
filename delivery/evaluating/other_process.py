"""Computes in another process what a tenant's words make: delivery's loop does not wait for it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TypeVar, cast

from servioticy.apart import asking

SECONDS = 10.0
"""For one call; within its budget one takes less than a tenth of a second."""
COMMAND = asking.command("delivery.evaluating.other_process_main")

T = TypeVar("T")


class OtherProcess:
    """Asked by one thread at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._process = asking.OtherProcess(COMMAND, seconds, "the process that fills templates")

    def ask(self, call: Callable[[], T]) -> T:
        """Return what the call returns there. Blocks; raises what it raises, and Unavailable.

        Call and result have to be values that can be pickled, all of them made by our own code.
        """
        text = self._process.ask(pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
        found = pickle.loads(text)  # noqa: S301  our own code made it
        if isinstance(found, Exception):
            raise found
        return cast(T, found)

    def stop(self) -> None:
        """End the process; another one is started when it is needed."""
        self._process.stop()
