"""MQTT as a client speaks it: what we write is what a broker reads, and the other way round."""

from __future__ import annotations

import asyncio
import struct
from typing import cast

import pytest

from broker import mqtt_packets
from broker.bridge import incoming, packets
from broker.bridge.incoming import read_packet
from broker.bridge.packets import Hello
from broker.errors import Malformed
from broker.mqtt_packets import Kind
from broker.wire import Wire

PUBLISH = Kind.PUBLISH << 4


def hello(version: int, user: str = "me", password: str = "secret") -> Hello:
    return Hello(version, "servioticy.a", user, password, 30, 3_600, 200, 70_000)


@pytest.mark.parametrize("version", [4, 5])
def test_a_hello_is_read_as_it_was_meant(version: int) -> None:
    found = mqtt_packets.read_connect(packets.connect(hello(version))[2:])

    assert (found.version, found.client, found.keep_alive) == (version, "servioticy.a", 30)
    assert (found.user, found.password, found.will) == ("me", "secret", None)
    if version == 5:
        assert dict(found.properties) == {
            mqtt_packets.SESSION_EXPIRY: 3_600,
            mqtt_packets.RECEIVE_MAXIMUM: 200,
            mqtt_packets.MAXIMUM_PACKET: 70_000,
        }


def test_who_has_no_user_says_none() -> None:
    found = mqtt_packets.read_connect(packets.connect(hello(4, "", ""))[2:])

    assert (found.user, found.password) == ("", "")


@pytest.mark.parametrize("version", [4, 5])
def test_a_wish_is_read_as_it_was_meant(version: int) -> None:
    """What was retained is not to come, where MQTT can say so."""
    content = packets.subscribe(7, ["a/+", "b/#"], 1, version)[2:]
    number, wishes = mqtt_packets.read_subscribe(content, version)

    assert number == 7
    assert [(each.text, each.qos) for each in wishes] == [("a/+", 1), ("b/#", 1)]
    assert {each.retained for each in wishes} == {2 if version == 5 else 0}


def test_an_answer_in_another_version_is_understood() -> None:
    """A broker that refuses MQTT 5 does it in MQTT 3.1.1."""
    assert packets.read_welcome(b"\0\1", 5).code == 1


def test_acknowledgements_have_a_code_or_none() -> None:
    assert packets.read_acknowledgement(b"\0\7") == (7, 0)
    assert packets.read_acknowledgement(b"\0\7\x97\0") == (7, 0x97)


class Bytes:
    """Enough of a Wire to be read from; notes the largest piece that was asked for."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.largest = 0

    async def readexactly(self, size: int) -> bytes:
        self.largest = max(self.largest, size)
        if size > len(self._content):
            raise asyncio.IncompleteReadError(self._content, size)
        taken, self._content = self._content[:size], self._content[size:]
        return taken


def read(wire: Bytes, most: int = 1_000) -> incoming.Packet:
    return asyncio.run(read_packet(cast(Wire, wire), most, 1.0))


def packet(first: int, content: bytes) -> bytes:
    return bytes([first]) + mqtt_packets.variable(len(content)) + content


def test_packets_are_whole_up_to_the_most_that_is_taken() -> None:
    wire = Bytes(packet(PUBLISH, b"x" * 1_000) + packet(PUBLISH | 2, b"y"))

    assert read(wire) == (Kind.PUBLISH, 0, b"x" * 1_000, 1_000)
    assert read(wire) == (Kind.PUBLISH, 2, b"y", 1)


def test_of_a_message_that_is_too_large_only_its_beginning_is_kept() -> None:
    start = struct.pack(">H", 3) + b"a/b" + struct.pack(">H", 9)
    wire = Bytes(packet(PUBLISH | 2, start + b"x" * 1_000_000) + packet(PUBLISH, b"y"))
    large = read(wire)

    assert not large.is_whole
    assert large.content.startswith(start)
    assert len(large.content) == incoming.HEAD_BYTES
    assert wire.largest <= incoming.HEAD_BYTES + 4
    assert read(wire).content == b"y"


@pytest.mark.parametrize(
    "sent", [packet(Kind.SUBACK << 4, b"x" * 1_001), b"\x30\xff\xff\xff\xff\x01"]
)
def test_what_no_broker_may_send_is_malformed(sent: bytes) -> None:
    with pytest.raises(Malformed):
        read(Bytes(sent))
