"""Whatever clients say, and whoever they are, they have bounded turns of the loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from live_clients import Client, running
from running_delivery import RunningDelivery, a_request

from delivery.admission.refusals import Refusal
from delivery.admission.requests import MAX_FIELDS, fields_of
from delivery.transports.pieces import Pieces
from delivery.transports.websocket_caller import PIECE
from delivery.turns import Turns

__all__ = ["running"]

PING = b"\x89\x80\0\0\0\0"


class Reading:
    """A transport that only knows whether it is read from."""

    def __init__(self) -> None:
        self.is_read = True
        self.is_closed = False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return self.is_closed


def test_what_has_come_is_taken_a_piece_in_a_turn_and_nothing_is_read_meanwhile() -> None:
    async def run() -> None:
        transport, took = Reading(), list[bytes]()
        wire: Any = transport
        turns = Turns()
        pieces = Pieces(wire, "address", turns, 10, took.append, lambda: True)
        pieces.be_of(1, turns, 10)
        pieces.add(b"x" * 95)
        assert took == [b"x" * 10] and not transport.is_read

        turns.ask(2, lambda: took.append(b"other") is None)
        while not transport.is_read:
            await asyncio.sleep(0)
        assert took.index(b"other") <= 2
        took.remove(b"other")
        assert b"".join(took) == b"x" * 95 and len(took) == 10

    asyncio.run(run())


def test_who_speaks_for_the_first_time_does_not_wait_for_all_of_its_address() -> None:
    """A hundred that drip one byte after the other have turns with each other, and it with all
    that are new."""

    async def run() -> None:
        wires: Any = [Reading() for _ in range(101)]
        turns, took = Turns(at_once=2), list[int]()
        dripping = [
            Pieces(wires[n], "a", turns, 1, lambda _piece, n=n: took.append(n), lambda: True)
            for n in range(100)
        ]
        for each in dripping:
            each.add(b"x" * 50)
        while len(took) < 300:
            await asyncio.sleep(0)
        last = Pieces(wires[100], "a", turns, 9, lambda _piece: took.append(100), lambda: True)
        last.add(b"request")
        before = len(took)
        while 100 not in took:
            await asyncio.sleep(0)
        assert len(took) - before <= 5

    asyncio.run(run())


def test_what_waits_of_a_connection_that_has_gone_is_dropped() -> None:
    async def run() -> None:
        transport, took = Reading(), list[bytes]()
        wire: Any = transport
        turns = Turns()
        pieces = Pieces(wire, "address", turns, 10, took.append, lambda: True)
        pieces.be_of(1, turns, 10)
        pieces.add(b"x" * 95)
        transport.is_closed = True
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(took) == 1

    asyncio.run(run())


def test_who_has_stopped_reading_for_another_reason_is_not_made_to_read() -> None:
    async def run() -> None:
        transport = Reading()
        wire: Any = transport
        pieces = Pieces(wire, 1, Turns(), 10, lambda _piece: None, lambda: False)
        transport.is_read = False
        pieces.add(b"x")
        assert not transport.is_read

    asyncio.run(run())


def test_a_flood_of_pings_has_a_turn_for_each_few_of_them(running: RunningDelivery) -> None:
    """Ten thousand in one go, and each is answered: what they cost is their sender's to wait."""
    client = running.plain(a_request("/live", "token-1"))
    while not client.recv(4096).endswith(b"\r\n\r\n"):
        pass
    before = running.hub.turns.taken
    flood, pongs = PING * 10_000, 0
    client.setblocking(True)
    client.sendall(flood[: len(flood) // 2])
    while pongs < 2 * 5_000:
        pongs += len(client.recv(65_536))

    assert running.hub.turns.taken - before >= len(flood) // 2 // PIECE


@pytest.mark.parametrize("path", ["/pump/streams/flow/live", "/pump/streams/flow/events"])
def test_a_request_byte_by_byte_without_a_token_has_turns_of_strangers(
    running: RunningDelivery, path: str
) -> None:
    """And is answered as any other: it is late by its own doing."""
    strangers = running.hub.reception.pending.turns
    before = strangers.taken
    client = running.plain()
    client.setsockopt(6, 1, 1)
    request = a_request(path, "")
    for number in range(len(request)):
        client.sendall(request[number : number + 1])
        if number % 10 == 0:
            running.until(lambda: True)  # so that it comes in some pieces at least

    assert b" 403 " in client.recv(4096)
    assert strangers.taken - before >= len(request) // 100


def test_half_a_handshake_of_many_keeps_nobody_out(running: RunningDelivery) -> None:
    halves = [running.plain(b"GET /pump/streams/flow/live HTTP/1.1\r\nHo") for _ in range(50)]
    client = Client(running)

    assert client.watch("a")["is"] == "subscribed"
    assert len(halves) == 50


@pytest.mark.parametrize(
    ("headers", "status"), [(b"a: b\r\n" * 3_000, b" 431 "), (b"x" * 20_000, b" 431 ")]
)
def test_a_flood_of_headers_without_a_token_is_refused(
    running: RunningDelivery, headers: bytes, status: bytes
) -> None:
    for path in (b"/pump/streams/flow/events", b"/subscriptions/s/updates"):
        client = running.plain(b"GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (path, headers))
        assert status in client.recv(4096)


def test_an_address_has_so_many_parameters() -> None:
    """Eight thousand of them take milliseconds to be read, by whoever has no token."""
    most = "&".join(["a="] * MAX_FIELDS)

    assert not isinstance(fields_of(most), Refusal)
    refused = fields_of(most + "&a=")
    assert isinstance(refused, Refusal) and refused.status == 400


def test_messages_of_a_socket_are_heard_in_its_tenants_turns(running: RunningDelivery) -> None:
    client = Client(running)
    before = running.hub.turns.taken
    for number in range(100):
        client.socket.send(json.dumps({"do": "unsubscribe", "id": str(number)}))
    for _ in range(100):
        assert client.hear()["status"] == 404

    assert running.hub.turns.taken - before >= 100
