"""MQTT 3.1, 3.1.1 and 5 on the wire: reading what a client may send, writing what it may get.

Nothing here knows a connection: functions from bytes to values and back.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeVar

from broker.errors import Malformed, visible

V5 = 5
NAMES = {"MQIsdp": (3,), "MQTT": (4, V5)}
MAX_FILTERS = 100
"""Filters of one packet."""
MAX_PROPERTIES = 200
"""Of one packet, those of users included: each costs time, and may have five bytes."""


class Kind(IntEnum):
    """The types of packets."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


RECEIVE_MAXIMUM, MAXIMUM_PACKET, TOPIC_ALIAS, REASON_STRING = 0x21, 0x27, 0x23, 0x1F
TOPIC_ALIAS_MAXIMUM, ASSIGNED_CLIENT, MAXIMUM_QOS = 0x22, 0x12, 0x24
SESSION_EXPIRY, RETAIN_AVAILABLE, SHARED_AVAILABLE = 0x11, 0x25, 0x2A
_BYTE, _SHORT, _LONG, _VARIABLE, _TEXT, _BINARY, _PAIR = range(7)
_PROPERTIES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), _BYTE),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), _SHORT),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), _LONG),
    0x0B: _VARIABLE,
    **dict.fromkeys((0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F), _TEXT),
    **dict.fromkeys((0x09, 0x16), _BINARY),
    0x26: _PAIR,
}
USER_PROPERTY, _SUBSCRIPTION_ID = 0x26, 0x0B
PASSED_ON = 0x100
"""No property of the wire: stands for that property of users by which another process of ours says
that it comes for a client of its own."""
PASSED_ON_PAIR = "servioticy-passed-on", "1"

Properties = dict[int, "int | str | bytes"]
T = TypeVar("T")


class Body:
    """The content of a packet, read from the front. Every method may raise Malformed."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return so many bytes."""
        end = self._at + size
        if end > len(self._content):
            raise Malformed("the packet is shorter than it says")
        part, self._at = self._content[self._at : end], end
        return part

    def byte(self) -> int:
        """Return one byte."""
        return self.take(1)[0]

    def short(self) -> int:
        """Return a number of two bytes."""
        return int.from_bytes(self.take(2), "big")

    def packet_id(self) -> int:
        """Return the number of a packet, which is never 0."""
        number = self.short()
        if not number:
            raise Malformed("a packet has the number 0")
        return number

    def binary(self) -> bytes:
        """Return bytes with their length before them."""
        return self.take(self.short())

    def text(self) -> str:
        """Return text with its length before it."""
        try:
            found = self.binary().decode()
        except UnicodeDecodeError as error:
            raise Malformed("text is not UTF-8") from error
        if "\0" in found:
            raise Malformed("text has a NUL in it")
        return found

    def variable(self) -> int:
        """Return a number of one to four bytes."""
        number = 0
        for shift in range(0, 28, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise Malformed("a length has more than four bytes")

    def rest(self) -> bytes:
        """Return what is left."""
        return self.take(len(self._content) - self._at)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._content)

    def properties(self, version: int) -> Properties:
        """Return the properties that packets have since MQTT 5; those of users are left out, but
        for PASSED_ON.
        """
        found: Properties = {}
        if version < V5:
            return found
        part, count = Body(self.take(self.variable())), 0
        while not part.is_empty:
            count += 1
            if count > MAX_PROPERTIES:
                raise Malformed(f"a packet has at most {MAX_PROPERTIES} properties")
            number = part.variable()
            value = part._property(number)
            if number in found and number != _SUBSCRIPTION_ID:
                raise Malformed(f"property {number} is there twice")
            if number != USER_PROPERTY:
                found[number] = value
            elif value == "\0".join(PASSED_ON_PAIR):
                found[PASSED_ON] = 1
        return found

    def _property(self, number: int) -> int | str | bytes:
        kind = _PROPERTIES.get(number)
        if kind == _BYTE:
            return self.byte()
        if kind == _SHORT:
            return self.short()
        if kind == _LONG:
            return int.from_bytes(self.take(4), "big")
        if kind == _VARIABLE:
            return self.variable()
        if kind == _TEXT:
            return self.text()
        if kind == _BINARY:
            return self.binary()
        if kind == _PAIR:
            return self.text() + "\0" + self.text()
        raise Malformed(f"there is no property {number}")


class Message(NamedTuple):
    """Something that is published."""

    topic: str
    payload: bytes
    qos: int
    packet_id: int = 0


@dataclass(frozen=True, slots=True)
class Connect:
    """A client's first packet."""

    version: int
    client: str
    keep_alive: int
    user: str
    password: str
    will: Message | None
    properties: Mapping[int, int | str | bytes] = field(default_factory=dict)


def read_connect(content: bytes) -> Connect:
    """Return a client's first packet. Raises Malformed."""
    body = Body(content)
    name, version, flags = body.text(), body.byte(), body.byte()
    if version not in NAMES.get(name, ()):
        raise UnknownVersion(f"there is no {name:.20} {version}")
    will_qos = flags >> 3 & 3
    if flags & 1 or will_qos == 3 or (not flags & 4 and flags & 0x38):
        raise Malformed("the flags of CONNECT are not those of MQTT")
    keep_alive, properties, client = body.short(), body.properties(version), body.text()
    will = None
    if flags & 4:
        body.properties(version)
        will = Message(body.text(), body.binary(), will_qos)
    user = body.text() if flags & 0x80 else ""
    try:
        password = body.binary().decode() if flags & 0x40 else ""
    except UnicodeDecodeError as error:
        raise Malformed("a password is UTF-8 here") from error
    if not body.is_empty:
        raise Malformed("CONNECT is longer than it says")
    return Connect(version, client, keep_alive, user, password, will, properties)


class UnknownVersion(Malformed):
    """Another protocol, or a version of it that we do not speak."""


def read_publish(flags: int, content: bytes, version: int) -> Message:
    """Return what a client publishes. Raises Malformed."""
    body, qos = Body(content), flags >> 1 & 3
    if qos == 3:
        raise Malformed("there is no quality of service 3")
    topic = body.text()
    packet_id = body.packet_id() if qos else 0
    if TOPIC_ALIAS in body.properties(version):
        raise Malformed("topic aliases are not offered")
    return Message(topic, body.rest(), qos, packet_id)


class Wish(NamedTuple):
    """A filter that a client subscribes to."""

    text: str
    qos: int
    retained: int
    """Whether it wants the last value: 0 it does, 1 where it is new, 2 it does not."""


def read_subscribe(content: bytes, version: int) -> tuple[int, list[Wish]]:
    """Return the packet's number and its filters. Raises Malformed."""
    body, wishes = Body(content), list[Wish]()
    packet_id = body.packet_id()
    body.properties(version)
    while not body.is_empty:
        text, options = body.text(), body.byte()
        qos, retained = options & 3, options >> 4 & 3
        if qos == 3 or retained == 3 or options & (0xC0 if version >= V5 else 0xFC):
            raise Malformed("the options of a subscription are not those of MQTT")
        _add(wishes, Wish(text, qos, retained))
    return packet_id, _some(wishes)


def read_unsubscribe(content: bytes, version: int) -> tuple[int, list[str]]:
    """Return the packet's number and its filters. Raises Malformed."""
    body, texts = Body(content), list[str]()
    packet_id = body.packet_id()
    body.properties(version)
    while not body.is_empty:
        _add(texts, body.text())
    return packet_id, _some(texts)


def _add(found: list[T], one: T) -> None:
    """Count while they are read: what is one too many is not read any further."""
    found.append(one)
    if len(found) > MAX_FILTERS:
        raise Malformed(f"a packet has 1 to {MAX_FILTERS} filters")


def _some(found: list[T]) -> list[T]:
    if not found:
        raise Malformed(f"a packet has 1 to {MAX_FILTERS} filters")
    return found


def packet(kind: Kind, content: bytes = b"", flags: int = 0) -> bytes:
    """Return a packet as it goes over the wire."""
    return bytes([kind << 4 | flags]) + variable(len(content)) + content


def variable(number: int) -> bytes:
    """Return a number in one to four bytes."""
    out = bytearray()
    while True:
        number, byte = number >> 7, number & 0x7F
        out.append(byte | 0x80 if number else byte)
        if not number:
            return bytes(out)


def text(content: str) -> bytes:
    """Return text with its length before it."""
    encoded = content.encode()
    return struct.pack(">H", len(encoded)) + encoded


def properties(version: int, *found: bytes) -> bytes:
    """Return properties as MQTT 5 has them; nothing before it."""
    content = b"".join(found)
    return variable(len(content)) + content if version >= V5 else b""


def publish(topic: bytes, payload: bytes, packet_id: int, version: int, *, retain: bool) -> bytes:
    """Return a PUBLISH; with a number its quality of service is 1. `topic` has its length."""
    number = struct.pack(">H", packet_id) if packet_id else b""
    flags = (2 if packet_id else 0) | retain
    return packet(Kind.PUBLISH, b"".join((topic, number, properties(version), payload)), flags)


def acknowledgement(
    kind: Kind, packet_id: int, version: int, reason: int = 0, why: str = ""
) -> bytes:
    """Return a PUBACK or one of its kin. Only MQTT 5 can tell that something is wrong, or odd."""
    content = struct.pack(">H", packet_id)
    if version >= V5 and (reason or why):
        told = bytes([REASON_STRING]) + text(visible(why)) if why else b""
        content += bytes([reason]) + properties(version, told)
    return packet(kind, content, 2 if kind is Kind.PUBREL else 0)
