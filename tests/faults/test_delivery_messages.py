"""What hostile devices let delivery send, and what hostile clients say to it."""

from __future__ import annotations

import contextlib
import json

from support.delivery_stores import a_document
from support.running_delivery import (
    ATTACKER,
    INNOCENT,
    RunningDelivery,
    a_request,
)

from delivery.transports.websocket_caller import BURST_BYTES

UGLY = [
    b'{"v":"\xff"}',
    b'{"v":"\xed\xa0\x80"}',
    b"",
    b"null",
    b"[" * 100_000,
    b"\0",
]


def test_ugly_records_end_no_socket_and_cost_no_update() -> None:
    """Whoever makes them, and whoever watches them."""
    with (
        RunningDelivery() as running,
        running.watch(ATTACKER, name="ugly") as its_own,
        running.watch(INNOCENT) as other,
    ):
        for number, ugly in enumerate(UGLY):
            running.publish(ugly, name="ugly")
            running.publish(rb'{"v":"\ud800"}', b'{"v":"' + b"x" * 2_000_000 + b'"}', name="ugly")
            running.publish(a_document(number))

        assert [json.loads(other.recv(10))["lastUpdate"] for _ in UGLY] == list(range(len(UGLY)))
        assert [len(its_own.recv(10)) for _ in range(4)] == [14, 2_000_008] * 2


def test_exactly_so_much_may_be_said_at_once() -> None:
    """Four masked messages of 4 KiB with their heads; then one that is more."""
    message = b"\x81\xfe" + (4088).to_bytes(2) + bytes(4) + bytes(4088)
    with RunningDelivery() as running:
        client = running.unread(ATTACKER)
        client.sendall(message * (BURST_BYTES // len(message)))
        running.publish(a_document(1))
        assert a_document(1) in client.recv(1000)
        assert running.sockets == 1

        client.sendall(message)
        running.until(lambda: running.sockets == 0)
        client.close()


def test_who_talks_without_end_is_not_listened_to() -> None:
    """A second of tiny frames would keep the loop from everybody."""
    with RunningDelivery() as running, running.watch(INNOCENT) as honest:
        talker = running.unread(ATTACKER)
        with contextlib.suppress(OSError):
            for _ in range(1_000):
                talker.sendall(b"\x81\x80\0\0\0\0" * 1_000)
        running.until(lambda: running.sockets == 1)
        talker.close()
        honest.ping().wait(10)
        running.publish(a_document(1))

        assert json.loads(honest.recv(10))["lastUpdate"] == 1


def test_what_was_said_before_the_socket_opened_counts_as_request() -> None:
    with RunningDelivery() as running:
        client = running.plain(a_request("/pump/streams/flow/live") + b"\x81\x80\0\0\0\0" * 10_000)
        with contextlib.suppress(OSError):
            client.recv(65_536)
        client.close()
        running.until(lambda: running.sockets == 0 and running.pending == 0)
