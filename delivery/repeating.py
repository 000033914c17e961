"""Work that goes on until it is cancelled, whatever it meets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from servioticy.errors import Unavailable

RETRY_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger("servioticy.delivery")


async def for_ever(work: Callable[[], Awaitable[object]], name: str) -> NoReturn:
    """Do the work again and again; a second later where the store is away, or after a bug of
    ours. What is logged then begins with its name.
    """
    while True:
        try:
            await work()
        except Unavailable as error:
            log.warning(f"{name}_wait", extra={"why": str(error)})
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            log.exception(f"{name}_failed")
            await asyncio.sleep(RETRY_SECONDS)


async def patiently(ask: Callable[[], Awaitable[T]], name: str) -> T:
    """Ask until there is an answer."""
    while True:
        try:
            return await ask()
        except Unavailable as error:
            log.warning(f"{name}_wait", extra={"why": str(error)})
            await asyncio.sleep(RETRY_SECONDS)
