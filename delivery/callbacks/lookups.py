"""Asks name servers for addresses: they may take long, and nobody else waits for that."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial

from delivery.admission.fair_places import FairPlaces

THREADS = 64
MAX_OF_A_TENANT = 4

Found = Sequence[tuple[int, int, int, str, tuple[object, ...]]]
"""Addresses as `socket.getaddrinfo` returns them."""

TENANT: ContextVar[int] = ContextVar("tenant", default=0)
"""For whom a name is looked up: the resolver is not told by who calls it."""


class Lookups:
    """Looks names up in threads of its own, a few at a time for each tenant, by tenants in turn.

    A lookup cannot be stopped: it keeps its thread and its place when nobody waits any more.
    """

    def __init__(self, threads: int = THREADS, each: int = MAX_OF_A_TENANT) -> None:
        self._threads = ThreadPoolExecutor(threads, "names")
        self._places = FairPlaces(threads, each)

    async def look_up(self, host: str, port: int, family: socket.AddressFamily) -> Found:
        """Return all addresses of a name. Raises OSError where there is none."""
        tenant = TENANT.get()
        await self._places.acquire(tenant)
        ask = partial(
            socket.getaddrinfo,
            host,
            port,
            family=family,
            type=socket.SOCK_STREAM,
            flags=socket.AI_ADDRCONFIG,
        )
        job: asyncio.Future[Found]
        job = asyncio.get_running_loop().run_in_executor(self._threads, ask)

        def ended(job: asyncio.Future[Found]) -> None:
            self._places.release(tenant)
            if not job.cancelled():
                job.exception()  # counts as retrieved, even where nobody waits for it any more

        job.add_done_callback(ended)
        return await asyncio.shield(job)

    def stop(self) -> None:
        """Begin no more lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)
