"""Where what tenants have written is evaluated: never in the loop, and by tenants in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from delivery.admission.fair_executor import FairExecutor
from delivery.evaluating.other_process import OtherProcess

T = TypeVar("T")

THREADS = 2
"""For what copies, hashes and signs bytes: while it does, Python's lock is free."""


class Apart(Protocol):
    """Computes elsewhere than in this process: `OtherProcess` does. Blocks."""

    def ask(self, call: Callable[[], T]) -> T:
        """Return what the call returns. Raises what it raises, and Unavailable."""

    def stop(self) -> None:
        """Compute no more."""


class Evaluator:
    """All methods belong to the event loop's thread."""

    def __init__(self, other: Apart | None = None) -> None:
        self._other = other or OtherProcess()
        self._apart = FairExecutor("evaluating", 1)
        self._aside = FairExecutor("signing", THREADS)

    async def apart(self, tenant: int, call: Callable[[], T]) -> T:
        """Do what takes as long as a tenant's words make it, in another process.

        Raises what the call raises, and Unavailable where that process is gone.
        """
        return await self._apart.run(tenant, partial(self._other.ask, call))

    async def aside(self, tenant: int, call: Callable[[], T]) -> T:
        """Do what takes as long as there are bytes, in a thread."""
        return await self._aside.run(tenant, call)

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return self._apart.waiting + self._aside.waiting

    async def stop(self) -> None:
        """Evaluate no more."""
        await asyncio.to_thread(self._other.stop)
