"""MQTT as a client writes and reads it: what `broker/mqtt_packets.py` has not."""

from __future__ import annotations

import struct
from typing import NamedTuple

from broker import mqtt_packets as packets
from broker.mqtt_packets import V5, Body, Kind, Properties

KEEP_SESSION = 0
HAS_USER, HAS_PASSWORD = 0x80, 0x40
_PASSED_ON = bytes([packets.USER_PROPERTY]) + b"".join(
    packets.text(each) for each in packets.PASSED_ON_PAIR
)
WITHOUT_RETAINED = 2 << 4
"""Of the options of a subscription: what was retained before is not to come."""


class Hello(NamedTuple):
    """Who we are, and what we can take."""

    version: int
    client_id: str
    user: str
    password: str
    keep_alive: int
    session_seconds: int
    most_at_once: int
    most_bytes: int
    is_passed_on: bool = False
    """Whether it is one process of ours that comes to another."""


class Welcome(NamedTuple):
    """What the broker says to that."""

    has_session: bool
    code: int
    properties: Properties


def connect(hello: Hello) -> bytes:
    """Return a CONNECT that goes on with the session, if there is one."""
    flags = (
        KEEP_SESSION | (HAS_USER if hello.user else 0) | (HAS_PASSWORD if hello.password else 0)
    )
    about = packets.properties(
        hello.version,
        struct.pack(">BI", packets.SESSION_EXPIRY, hello.session_seconds),
        struct.pack(">BH", packets.RECEIVE_MAXIMUM, hello.most_at_once),
        struct.pack(">BI", packets.MAXIMUM_PACKET, hello.most_bytes),
        _PASSED_ON if hello.is_passed_on else b"",
    )
    content = packets.text("MQTT") + struct.pack(">BBH", hello.version, flags, hello.keep_alive)
    content += about + packets.text(hello.client_id)
    content += b"".join(packets.text(each) for each in (hello.user, hello.password) if each)
    return packets.packet(Kind.CONNECT, content)


def read_welcome(content: bytes, version: int) -> Welcome:
    """Return what a CONNACK says. Raises Malformed."""
    body = Body(content)
    flags, code = body.byte(), body.byte()
    # A broker that refuses a version may answer in another one.
    found: Properties = {} if body.is_empty else body.properties(version)
    return Welcome(bool(flags & 1), code, found)


def subscribe(packet_id: int, filters: list[str], qos: int, version: int) -> bytes:
    """Return a SUBSCRIBE."""
    options = qos | (WITHOUT_RETAINED if version >= V5 else 0)
    wishes = b"".join(packets.text(each) + bytes([options]) for each in filters)
    content = struct.pack(">H", packet_id) + packets.properties(version) + wishes
    return packets.packet(Kind.SUBSCRIBE, content, 2)


def unsubscribe(packet_id: int, filters: list[str], version: int) -> bytes:
    """Return an UNSUBSCRIBE."""
    content = struct.pack(">H", packet_id) + packets.properties(version)
    content += b"".join(packets.text(each) for each in filters)
    return packets.packet(Kind.UNSUBSCRIBE, content, 2)


def read_granted(content: bytes, version: int) -> list[int]:
    """Return what a SUBACK grants, or refuses: a code for each filter. Raises Malformed."""
    body = Body(content)
    body.packet_id()
    body.properties(version)
    return list(body.rest())


def read_acknowledgement(content: bytes) -> tuple[int, int]:
    """Return which message is meant, and the reason code. Raises Malformed."""
    body = Body(content)
    packet_id = body.packet_id()
    return packet_id, 0 if body.is_empty else body.byte()


def read_farewell(content: bytes) -> int:
    """Return why the broker ends the connection, as a reason code of MQTT 5."""
    return content[0] if content else 0
