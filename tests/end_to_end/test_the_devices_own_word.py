"""Whatever others say of an actuation while it goes to its device, the device gets it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import waiting
from mqtt_client import MqttClient
from running_platform import RunningPlatform
from stomp_client import StompClient

LAMP = {"streams": {"a": {"channels": {"v": {"type": "number"}}}}, "actions": [{"name": "blink"}]}
TEXT = {"Content-Type": "text/plain"}
ACTUATIONS = 40
SAID = ["Received on the device", "done", "failed: no power"]


def submitted(platform: RunningPlatform, lamp: str, number: int) -> str:
    path = f"/{lamp}/actuations/blink"
    status, _, body = platform.request("POST", path, number, headers=TEXT)
    assert status == 201, body
    return str(json.loads(body)["id"])


def spoken_of(platform: RunningPlatform, lamp: str, id_: str) -> None:
    """Several with other tokens than the device's say at once what became of it."""

    def say(said: str) -> None:
        path = f"/{lamp}/actuations/{id_}"
        status, _, body = platform.request("PUT", path, said, headers=TEXT)
        assert status == 201, body

    with ThreadPoolExecutor(len(SAID)) as several:
        list(several.map(say, SAID))


@pytest.mark.parametrize("comes_later", [False, True], ids=["connected", "away"])
def test_a_device_gets_what_others_speak_of_at_once(
    platform: RunningPlatform, comes_later: bool
) -> None:
    """The original's clients speak of an actuation as soon as they have made it: it counted as
    delivered, and its device never got it. Each is raced by three that say how it ended."""
    lamp, device = platform.create(LAMP), None
    if not comes_later:
        device = MqttClient(platform.mqtt_port, platform.token)
        device.subscribe(f"{lamp}/actions", 1)
    made: list[str] = []
    for number in range(ACTUATIONS):
        made.append(submitted(platform, lamp, number))
        spoken_of(platform, lamp, made[-1])
    if device is None:
        device = MqttClient(platform.mqtt_port, platform.token)
        device.subscribe(f"{lamp}/actions", 1)

    def got() -> list[str]:
        return [json.loads(each.payload)["id"] for each in device.messages]

    waiting.until(lambda: len(set(got())) >= ACTUATIONS, 60)
    assert list(dict.fromkeys(got())) == made
    device.close()


def test_a_device_over_stomp_gets_it_and_its_own_word_counts(platform: RunningPlatform) -> None:
    """By ACK, in the version of the protocol that the original's clients speak."""
    lamp = platform.create(LAMP)
    id_ = submitted(platform, lamp, 1)
    spoken_of(platform, lamp, id_)
    assert state(platform, lamp, id_) == "queued"

    device = StompClient(platform.mqtt_port, platform.token, versions="1.1,1.0")
    topic = f"/topic/{lamp}.actions"
    device.send("SUBSCRIBE", {"id": "0", "destination": topic, "ack": "client-individual"})
    came = device.receive()
    assert json.loads(came.body)["id"] == id_
    headers = {"message-id": came.headers["message-id"], "subscription": "0", "receipt": "r"}
    device.send("ACK", headers)
    assert device.receive().command == "RECEIPT"

    waiting.until(lambda: state(platform, lamp, id_) == "delivered", 30)
    device.close()


def state(platform: RunningPlatform, lamp: str, id_: str) -> str:
    _, _, body = platform.request("GET", f"/{lamp}/actuations/{id_}")
    return str(json.loads(body)["state"])
