"""Every parser of frames is linear: twice as much of what is worst for it takes twice as long.

The processor's time is compared, the least of several, and a bit more than twice is allowed: a
square would be four times.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import struct
import time
from collections.abc import Callable

import orjson
import pytest

from broker.errors import BadTopic, Malformed
from broker.mqtt_packets import V5, read_connect, read_publish, read_subscribe, variable
from broker.rest_requests import Request
from broker.stomp_frames import MAX_HEADER_BYTES, read_frame
from broker.topics import MAX_TOPIC, read_filter, read_topic
from broker.wire import MAX_UNTIL, Wire
from delivery.admission.refusals import Refused

LARGEST = 1_048_576
TRIES = 4
A_BIT = 3.2
REPEATED_SECONDS = 0.005
"""A parser that is quicker is asked so often that there is something to measure."""


class Given(Wire):
    """A wire whose bytes have all come."""

    def __init__(self, data: bytes) -> None:
        self._buffer = bytearray(data)
        self.part = None

    async def _fill(self) -> None:
        raise asyncio.IncompleteReadError(b"", None)


def stomp(data: bytes) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        asyncio.run(read_frame(Given(data), LARGEST))


def one_header(size: int) -> bytes:
    return b"SEND\nx:" + b"\\n" * (min(size, MAX_HEADER_BYTES) // 2 - 2) + b"\n\n\0"


def body_without_length(size: int) -> bytes:
    return b"SEND\n\n" + b"x" * (min(size, MAX_UNTIL) - 16) + b"\0"


def body_with_length(size: int) -> bytes:
    return b"SEND\ncontent-length:%d\n\n" % size + b"x" * size + b"\0"


def newlines(size: int) -> bytes:
    return b"\n" * size


def filters(size: int) -> bytes:
    return b"\0\1" + (struct.pack(">H", 2_000) + b"x" * 2_000 + b"\0") * (size // 20_000)


def properties(size: int) -> bytes:
    content = b"\x26\0\0\0\0" * (size // 10_000)
    return b"\0\1x" + variable(len(content)) + content + b"x" * size


def connect(size: int) -> bytes:
    text = struct.pack(">H", size // 64) + b"x" * (size // 64)
    return b"\0\4MQTT\4\xc2\0\0" + text + text + text


def request(size: int) -> bytes:
    meta = {"method": "PUT", "url": "/", "authorization": "x"}
    return orjson.dumps({"meta": meta, "body": [[]] * (size // 4)})


def nested(size: int) -> bytes:
    return b"[" * size


def took(parse: Callable[[bytes], object], content: bytes) -> float:
    """Seconds of the processor, without Python's looking for garbage of all other tests."""
    gc.disable()
    try:
        return _took(parse, content)
    finally:
        gc.enable()


def _took(parse: Callable[[bytes], object], content: bytes) -> float:
    times, began = 1, time.process_time()
    while True:
        for _ in range(times):
            with contextlib.suppress(Malformed, Refused, BadTopic):
                parse(content)
        seconds = time.process_time() - began
        if seconds >= REPEATED_SECONDS:
            return seconds / times
        times, began = times * 4, time.process_time()


CASES: dict[str, tuple[Callable[[bytes], object], Callable[[int], bytes], int]] = {
    "STOMP header": (stomp, one_header, MAX_HEADER_BYTES),
    "STOMP body": (stomp, body_without_length, MAX_UNTIL),
    "STOMP body with its length": (stomp, body_with_length, LARGEST),
    "STOMP newlines": (stomp, newlines, LARGEST),
    "MQTT filters": (lambda data: read_subscribe(data, 4), filters, LARGEST),
    "MQTT properties": (lambda data: read_publish(0, data, V5), properties, LARGEST),
    "MQTT hello": (read_connect, connect, LARGEST),
    "request": (Request.read, request, LARGEST),
    "request that is nested": (Request.read, nested, LARGEST),
    "topic": (lambda data: read_topic(data.decode()), lambda n: b"/x" * (n // 2), MAX_TOPIC),
    "filter": (lambda data: read_filter(data.decode()), lambda n: b"x" * n, MAX_TOPIC),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_twice_as_much_takes_twice_as_long(name: str) -> None:
    parse, worst, largest = CASES[name]
    half, whole = worst(largest // 2), worst(largest)
    floor = min(took(parse, worst(64 * 1024 if largest == LARGEST else 64)) for _ in range(TRIES))

    one = min(took(parse, half) for _ in range(TRIES))
    both = min(took(parse, whole) for _ in range(TRIES))

    assert both <= A_BIT * one + floor
