"""Claims by message: a device that has no token yet gets one, as it does by `POST /claims`."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

import orjson

from broker.rest_requests import JSON
from delivery.rest_api import ApiResponse, Asks

AT_ONCE = 10
"""So many are asked for; to the API all of them come from one address."""


class Claims:
    """Asks the API, for each network address one after the other.

    Whoever claims is nobody yet. So a stranger who tries codes, over however many connections,
    makes nobody wait but for one of its tries.
    """

    def __init__(self, api: Asks) -> None:
        self._api = api
        self._places = asyncio.Semaphore(AT_ONCE)
        self._addresses: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def ask(self, address: str, claim: bytes) -> ApiResponse:
        """Return what the API says. Tried once: whoever claims may say the same again."""
        turn = self._addresses.setdefault(address, asyncio.Lock())
        async with turn, self._places:
            return await self._api.ask("POST", "/claims", "", claim, JSON)


def told(answer: ApiResponse) -> tuple[bytes, str | None]:
    """Return what the device is told, and the token that it has got, if any."""
    if not 200 <= answer.status < 300:
        status = answer.status or 503
        return orjson.dumps({"status": status, "message": answer.message}), None
    given = orjson.loads(answer.body)
    return orjson.dumps({"status": answer.status} | given), given["api_token"]
