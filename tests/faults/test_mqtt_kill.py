"""What MQTT acknowledged is kept, what is subscribed to arrives, though programs are killed."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import orjson
import paho.mqtt.client as mqtt
import pytest
import waiting
from paho.mqtt.enums import CallbackAPIVersion
from support.running_broker import an_update
from support.running_platform import RunningPlatform

from servioticy.domain.model import StreamRef

UPDATES = 400
SECONDS = 300.0
DOCUMENT = {
    "version": "0.2.0",
    "streams": {
        "flow": {"channels": {"v": {"type": "number"}}},
        "twice": {
            "channels": {
                "v": {
                    "type": "number",
                    "current-value": 'function(flow){return flow.channels.v["current-value"]*2}',
                }
            }
        },
    },
}


class Device:
    """A client that comes again whenever it is cut off, and asks again for what it wants."""

    def __init__(self, platform: RunningPlatform, *topics: str) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.acknowledged = 0
        self._topics = topics
        self._is_there = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set("device", platform.token)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = lambda *_: self._is_there.set()
        self._client.on_message = self._on_message
        self._client.on_publish = self._on_publish
        self._client.connect("127.0.0.1", platform.mqtt_port)
        self._client.loop_start()
        assert self._is_there.wait(SECONDS)

    def _on_connect(self, client: mqtt.Client, *_: Any) -> None:
        client.subscribe([(each, 1) for each in self._topics])

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        self.heard.append((message.topic, orjson.loads(message.payload)))

    def _on_publish(self, *_: Any) -> None:
        self.acknowledged += 1

    def publish(self, topic: str, payload: bytes) -> None:
        self._client.publish(topic, payload, 1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", ["broker", "delivery", "api", "kafka"])
def test_nothing_acknowledged_or_subscribed_to_is_lost(
    victim: str, platform: RunningPlatform
) -> None:
    so = platform.create(DOCUMENT)
    status, _, _ = platform.request(
        "POST", f"/{so}/streams/twice/subscriptions", {"callback": "pubsub"}
    )
    assert status == 201
    topic = f"{platform.token}/{so}/streams/twice/updates"
    listener, device = Device(platform, topic), Device(platform, "errors")

    for at in range(1, UPDATES + 1):
        device.publish(f"updates/{so}/flow", an_update(at))
        if at == UPDATES // 2:
            waiting.until(lambda: device.acknowledged > UPDATES // 10, SECONDS)
            os.kill(platform.pids()[victim], signal.SIGKILL)
    waiting.until(lambda: device.acknowledged >= UPDATES, SECONDS)
    everything = set(range(1, UPDATES + 1))
    stored = {each["lastUpdate"] for each in platform.updates(StreamRef(so, "flow"))}
    waiting.until(
        lambda: {each["lastUpdate"] for _, each in listener.heard} == everything, SECONDS
    )

    assert stored == everything
    assert {name for name, _ in listener.heard} == {topic}
    for client in (device, listener):
        client.close()
