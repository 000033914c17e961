"""A real MQTT client, and bare bytes for what it would not send."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from typing import Any

import paho.mqtt.client as mqtt
import waiting
from paho.mqtt.enums import CallbackAPIVersion

SECONDS = 60.0


class MqttClient:
    """A client that has connected, or was refused."""

    def __init__(
        self,
        port: int,
        password: str | None = None,
        *,
        user: str = "somebody",
        version: int = 4,
        name: str = "",
        transport: str = "tcp",
        manual_ack: bool = False,
        client: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.messages: list[mqtt.MQTTMessage] = []
        self.published: dict[int, Any] = {}
        self.granted: dict[int, list[Any]] = {}
        self.refusal: str | None = None
        self.is_gone = threading.Event()
        self.gone_for: Any = None
        """The reason of its end, as the client library tells it."""
        self._answered = threading.Event()
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client,
            protocol=mqtt.MQTTProtocolVersion(version),
            transport=transport,  # type: ignore[arg-type]
            manual_ack=manual_ack,
            reconnect_on_failure=False,
        )
        if password is not None:
            self._client.username_pw_set(user, password)
        if tls is not None:
            self._client.tls_set_context(tls)
        self._client.on_connect = self._on_connect
        self._client.on_message = lambda _c, _u, message: self.messages.append(message)
        self._client.on_publish = self._on_publish
        self._client.on_subscribe = self._on_subscribe
        self._client.on_disconnect = self._on_disconnect
        self._client.connect("127.0.0.1", port, keepalive=30)
        self._client.loop_start()
        assert self._answered.wait(SECONDS), "no CONNACK came"

    def _on_connect(self, _c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        self.refusal = str(reason) if reason.is_failure else None
        self._answered.set()

    def _on_publish(self, _c: Any, _u: Any, number: int, reason: Any, properties: Any) -> None:
        self.published[number] = (reason, properties)

    def _on_disconnect(self, _c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        self.gone_for = reason
        self.is_gone.set()

    def _on_subscribe(self, _c: Any, _u: Any, number: int, codes: Any, _p: Any) -> None:
        self.granted[number] = codes

    def subscribe(self, topic: str, qos: int = 0) -> bool:
        """Subscribe; tell whether that was granted."""
        number = self._client.subscribe(topic, qos)[1]
        assert number is not None
        waiting.until(lambda: number in self.granted, SECONDS)
        return not any(each.is_failure for each in self.granted[number])

    def publish(self, topic: str, payload: bytes | str, qos: int = 0) -> int:
        """Publish; return the message's number."""
        return self._client.publish(topic, payload, qos).mid

    def acknowledged(self, number: int) -> Any:
        """Wait for the acknowledgement of a message, and return its reason."""
        waiting.until(lambda: number in self.published, SECONDS)
        return self.published[number][0]

    def acknowledge(self, message: mqtt.MQTTMessage) -> None:
        self._client.ack(message.mid, message.qos)

    def received(self, count: int) -> list[tuple[str, bytes]]:
        """Wait for so many messages."""
        waiting.until(lambda: len(self.messages) >= count, SECONDS)
        return [(each.topic, each.payload) for each in self.messages]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def __enter__(self) -> MqttClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Bare:
    """A connection on which a test writes what it likes."""

    def __init__(self, port: int, *sent: bytes) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(SECONDS)
        self._socket.connect(("127.0.0.1", port))
        self.send(*sent)

    def send(self, *parts: bytes) -> None:
        self._socket.sendall(b"".join(parts))

    def receive(self, size: int) -> bytes:
        found = b""
        while len(found) < size and (part := self._socket.recv(size - len(found))):
            found += part
        return found

    def until_closed(self) -> bytes:
        """All that comes until the other side ends it; fails where it does not."""
        found = b""
        try:
            while part := self._socket.recv(65_536):
                found += part
        except ConnectionResetError:
            pass
        return found

    def close(self) -> None:
        self._socket.close()


def hello(token: str = "", *, version: int = 4, name: str = "bare") -> bytes:
    """A CONNECT packet."""
    flags = 0x02 | (0xC0 if token else 0)
    content = b"\x00\x04MQTT" + bytes([version, flags]) + b"\x00\x00"
    content += (b"\x00" if version == 5 else b"") + _text(name)
    if token:
        content += _text("user") + _text(token)
    return bytes([0x10, len(content)]) + content


def publish(topic: str, payload: bytes, qos: int = 0, number: int = 1) -> bytes:
    """A PUBLISH packet of at most 127 bytes."""
    content = _text(topic) + (struct.pack(">H", number) if qos else b"") + payload
    return bytes([0x30 | qos << 1, len(content)]) + content


def subscribe(topic: str, qos: int) -> bytes:
    """A SUBSCRIBE packet of at most 127 bytes, of MQTT 3.1.1."""
    content = b"\x00\x01" + _text(topic) + bytes([qos])
    return bytes([0x82, len(content)]) + content


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
