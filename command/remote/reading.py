"""Reading many Service Objects at once."""

from __future__ import annotations

import argparse
import asyncio
import ssl
from collections.abc import Iterable

from command.remote.access import believed, token, url
from servioticy.client import AsyncRest, NotFound, ServiceObject
from servioticy.settings import Settings

READ_AT_ONCE = 16


def read_all(
    ids: Iterable[str], parsed: argparse.Namespace, settings: Settings
) -> list[ServiceObject]:
    """Return these Service Objects, read several at once; none that are gone meanwhile."""
    address = url(parsed, settings)
    return asyncio.run(_read_all(ids, address, token(parsed), believed(address, settings)))


async def _read_all(
    ids: Iterable[str], address: str, its_token: str, ca: ssl.SSLContext | str
) -> list[ServiceObject]:
    turns = asyncio.Semaphore(READ_AT_ONCE)
    async with AsyncRest(address, its_token, ca=ca) as api:

        async def read(id_: str) -> ServiceObject | None:
            async with turns:
                try:
                    return await api.read(id_)
                except NotFound:  # deleted since the list was read
                    return None

        every = await asyncio.gather(*map(read, ids))
    return [each for each in every if each is not None]
