"""Whom a callback may call: nobody inside, however written; who hangs holds up nobody."""

from __future__ import annotations

import asyncio
import socket
import threading
from http import HTTPStatus

import pytest
from callback_receivers import Answers, Dead, Receiver, an_outgoing
from support.evaluating import an_evaluator

from delivery.callbacks.http_client import AttemptResult, HttpClient
from delivery.callbacks.lookups import TENANT, Lookups
from delivery.callbacks.receiver import Callbacks
from delivery.callbacks.requests import CallbackForm
from servioticy.domain.outside_addresses import ForbiddenAddress, Rules

INSIDE = """
    127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1
    255.255.255.255 168.63.129.16 192.0.0.192 198.18.0.1 240.0.0.1 :: ::1 ::127.0.0.1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: fe80::1
    fc00::1 fd00:ec2::254 ff02::1 fec0::1 2001:0:7f00:1:: 2001:db8::1 192.88.99.1
    localhost 1.2.3
"""


WRITTEN = """
    127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. localhost localhost. [::1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] 0 [::]
"""


FULL_WIDTH = "".join(chr(ord(each) + 0xFEE0) if each.isdigit() else each for each in "127.0.0.1")


@pytest.mark.parametrize("address", INSIDE.split())
def test_what_is_inside_is_not_called(address: str) -> None:
    with pytest.raises(ForbiddenAddress):
        Rules().check(address, 443)


@pytest.mark.parametrize("port", [0, 22, 25, 5432, 6379, 9092, 65536])
def test_what_is_no_web_server_is_not_called(port: int) -> None:
    Rules().check("8.8.8.8", 443)
    with pytest.raises(ForbiddenAddress):
        Rules().check("8.8.8.8", port)


def test_what_an_operator_allows_may_be_called() -> None:
    rules = Rules(["127.0.0.0/8"])
    rules.check("127.0.0.1", 12345)
    with pytest.raises(ForbiddenAddress):
        rules.check("10.0.0.1", 80)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
)
def test_the_platforms_own_ports_are_not_called_whatever_is_allowed(address: str) -> None:
    """Of this machine: 8080 of another one is somebody else's."""
    rules = Rules(["0.0.0.0/0", "::/0"], {8080, 9401})

    for port in (8080, 9401):
        with pytest.raises(ForbiddenAddress, match="own"):
            rules.check(address, port)
    rules.check(address, 8081)
    rules.check("10.0.0.1", 8080)


@pytest.mark.parametrize("host", [*WRITTEN.split(), FULL_WIDTH])
def test_no_way_of_writing_leads_inside(host: str) -> None:
    """Whatever the client makes of it, a canary on loopback hears nothing."""

    async def run() -> None:
        async with Receiver() as canary:
            client = HttpClient()
            await client.start()
            form = CallbackForm("s", f"http://{host}:{canary.port}/")
            answer = await client.call(form.request(an_outgoing(), 1), 7)
            await client.stop()
            assert answer.status == 0
            assert canary.requests == []

    asyncio.run(run())


def test_who_looks_names_up_for_long_keeps_others_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its lookups have places of its own, and the threads of stores are not theirs."""
    answers = threading.Event()

    def slow(host: str, *_args: object, **_more: object) -> list[object]:
        assert host != "slow" or answers.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run() -> None:
        lookups = Lookups(threads=3, each=2)
        TENANT.set(1)
        slow_ones = [
            asyncio.create_task(lookups.look_up("slow", 80, socket.AF_INET)) for _ in range(9)
        ]
        await asyncio.sleep(0)
        for each in slow_ones[:2]:
            each.cancel()  # nobody waits any more, and its thread is still taken
        TENANT.set(2)
        async with asyncio.timeout(20):
            assert await lookups.look_up("quick", 80, socket.AF_INET) == []
        answers.set()
        await asyncio.gather(*slow_ones, return_exceptions=True)
        lookups.stop()

    asyncio.run(run())


def test_one_tenants_hanging_host_is_nobody_elses() -> None:
    """Several tenants have receivers at the same provider."""

    class Hanging(Answers):
        async def call(self, request: object, tenant: int) -> AttemptResult:
            if tenant == 1:
                await asyncio.Event().wait()
            return await super().call(request, tenant)

    async def run() -> None:
        callbacks = Callbacks(Hanging(200), Dead(), an_evaluator())
        form = CallbackForm("s", "http://example.org/a")
        hanging = [
            asyncio.create_task(callbacks.attempt(1, form, an_outgoing())) for _ in range(100)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert (await callbacks.attempt(2, form, an_outgoing())).status == HTTPStatus.OK
        for each in hanging:
            each.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    asyncio.run(run())
