"""Claims by message take turns by the network addresses that they come from."""

from __future__ import annotations

import asyncio

import orjson

from broker.claims import AT_ONCE, Claims, told
from delivery.rest_api import ApiResponse


class SlowApi:
    """Answers nobody until it may; keeps to the protocol `Asks`."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.may_answer = asyncio.Event()

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        assert (method, path, token) == ("POST", "/claims", "")
        self.asked.append(body)
        await self.may_answer.wait()
        return ApiResponse(404)


def test_a_stranger_with_many_connections_makes_others_wait_for_one_try() -> None:
    async def run() -> None:
        api = SlowApi()
        claims = Claims(api)
        tries = [asyncio.create_task(claims.ask("stranger", b"guess")) for _ in range(500)]
        await asyncio.sleep(0)
        device = asyncio.create_task(claims.ask("device", b"code"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert sorted(api.asked) == [b"code", b"guess"]
        api.may_answer.set()
        await asyncio.gather(device, *tries)
        assert len(api.asked) == 501

    asyncio.run(run())


def test_so_many_addresses_are_asked_for_at_once() -> None:
    async def run() -> None:
        api = SlowApi()
        claims = Claims(api)
        tries = [asyncio.create_task(claims.ask(f"{n}", b"{}")) for n in range(AT_ONCE + 5)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(api.asked) == AT_ONCE
        api.may_answer.set()
        await asyncio.gather(*tries)
        assert not claims._addresses, "nothing is kept of who has been there"

    asyncio.run(run())


def test_silence_is_told_as_what_it_is() -> None:
    message, token = told(ApiResponse(0))

    assert token is None
    assert orjson.loads(message) == {"status": 503, "message": "the platform did not answer"}
