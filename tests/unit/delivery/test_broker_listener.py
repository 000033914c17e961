"""What cannot become a conversation is known by its first bytes: nothing is made for it."""

from __future__ import annotations

import pytest

from benchmarks.attacks.brokering import hello
from broker.listener import is_nonsense
from broker.mqtt import MAX_HELLO_BYTES


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x10",
        b"\x10\xff\xff",
        hello("a client", "a token"),
        hello("x" * 10_000),
        b"CONNECT\n",
        b"STOMP\n",
        b"\n\r\nCONNECT",
        b"GET / HTTP/1.1",
    ],
)
def test_what_may_go_on_as_mqtt_stomp_or_a_websocket_comes_in(first: bytes) -> None:
    assert not any(is_nonsense(first[:size]) for size in range(len(first[:300]) + 1))


@pytest.mark.parametrize(
    "first",
    [
        b"\x10\xff\xff\xff\x7f",
        b"\x10\xff\xff\xff\xff",
        b"\x10"
        + bytes([(MAX_HELLO_BYTES + 1) & 127 | 128, (MAX_HELLO_BYTES + 1) >> 7 & 127 | 128])
        + bytes([(MAX_HELLO_BYTES + 1) >> 14]),
        b"\x16\x03\x01",
        b"\xc0\0",
        b"\0",
    ],
)
def test_what_can_be_neither_is_closed(first: bytes) -> None:
    assert is_nonsense(first)
