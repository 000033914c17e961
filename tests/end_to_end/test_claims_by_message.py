"""A device that speaks MQTT alone, on a whole platform: from its code to its first update."""

from __future__ import annotations

import json
from typing import Any

from mqtt_client import MqttClient
from running_platform import RunningPlatform

from servioticy.domain.model import StreamRef

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
UPDATE = {"channels": {"v": {"current-value": 5}}, "lastUpdate": 5}


def posted(platform: RunningPlatform, path: str, body: Any) -> Any:
    status, _, answer = platform.request("POST", path, body)
    assert status == 201, answer
    return json.loads(answer)


def test_a_device_claims_by_mqtt_and_sends(platform: RunningPlatform) -> None:
    template = posted(platform, "/templates", {"parameters": {}, "document": DEVICE})["id"]
    made = posted(platform, f"/templates/{template}/claim-codes", {})
    claim = {"code": made["claimCodes"][0]["code"], "device": "lamp", "key": "k" * 16}
    with MqttClient(platform.mqtt_port, version=5) as device:
        assert device.subscribe("claims", 1)
        device.publish("claims", json.dumps(claim | {"code": "7K3QM-2F9XW-D4HTA-Q8RZV"}), 1)
        device.publish("claims", json.dumps(claim), 1)
        refused, given = (json.loads(body) for _, body in device.received(2))
        assert (refused["status"], given["status"]) == (404, 201)
        topic = f"updates/{given['id']}/data"
        assert not device.acknowledged(device.publish(topic, json.dumps(UPDATE), 1)).is_failure
    # The answer may have been lost: the same again, and then the token as password.
    with MqttClient(platform.mqtt_port) as again:
        assert again.subscribe("claims", 1)
        again.publish("claims", json.dumps(claim), 1)
        ((_, body),) = again.received(1)
        assert json.loads(body) == {**given, "status": 200}
    with MqttClient(platform.mqtt_port, given["api_token"]) as device:
        assert device.subscribe(topic)
    (update,) = platform.updates(StreamRef(given["id"], "data"))
    assert update["lastUpdate"] == 5
