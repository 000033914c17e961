"""Actuations that were promised reach their devices, in order, though programs are killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

import orjson
import paho.mqtt.client as mqtt
import pytest
import waiting
from paho.mqtt.enums import CallbackAPIVersion
from support.flaky_receiver import FlakyReceiver
from support.running_platform import RunningPlatform, until

from delivery.actuations.together import WINDOW
from servioticy.domain.model import StreamRef

ACTUATIONS = 300
DEVICES = 2
KILLS = ["delivery", "api", "postgres", "delivery"]
PART = ACTUATIONS // (len(KILLS) + 1)
KILLED_AT = {60: "delivery", 120: "kafka", 180: "delivery"}
SECONDS = 300.0
LAMP = {"streams": {"a": {"channels": {"v": {"type": "number"}}}}, "actions": [{"name": "blink"}]}


class Device:
    """A client that comes again whenever it is cut off, and acknowledges what it gets."""

    def __init__(self, platform: RunningPlatform, name: str) -> None:
        self.got: list[tuple[str, str]] = []
        self._topic = f"{name}/actions"
        self._is_there = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set("device", platform.token)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(self._topic, 1)
        self._client.on_subscribe = lambda *_: self._is_there.set()
        self._client.on_message = self._on_message
        self._client.connect("127.0.0.1", platform.mqtt_port)
        self._client.loop_start()
        assert self._is_there.wait(SECONDS)

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        content = orjson.loads(message.payload)
        self.got.append((content["id"], content["parameters"]))

    def parameters(self) -> list[int]:
        """In the order in which each came first."""
        return [int(each) for _, each in dict.fromkeys(self.got)]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def kill(platform: RunningPlatform, program: str) -> None:
    """Kill a program, as soon as it lives."""

    def killed() -> bool:
        os.kill(platform.pids()[program], signal.SIGKILL)
        return True

    until(killed, SECONDS)


def submit(platform: RunningPlatform, name: str, number: int) -> bool:
    path = f"/{name}/actuations/blink"
    headers = {"Content-Type": "text/plain"}
    status, _, _ = platform.request("POST", path, number, headers=headers)
    assert status in (201, 500, 502, 503, 504), status
    return status == 201


@pytest.mark.timeout(900)
def test_nothing_that_was_promised_is_lost(platform: RunningPlatform) -> None:
    """And what was on its way when something was killed is all that comes again.

    Two devices are reached by MQTT, and one by a callback that fails at times.
    """
    with FlakyReceiver(0.2, lambda said: int(said["parameters"])) as receiver:
        callback = {"destination": f"http://127.0.0.1:{receiver.port}/"}
        names = [platform.create(LAMP) for _ in range(DEVICES)]
        names.append(platform.create({**LAMP, "actuationCallback": callback}))
        devices = [Device(platform, each) for each in names[:DEVICES]]
        for number in range(ACTUATIONS):
            name = names[number % len(names)]
            until(lambda name=name, number=number: submit(platform, name, number), SECONDS)
            if number % PART == PART - 1 and number // PART < len(KILLS):
                kill(platform, KILLS[number // PART])
        waiting.until(
            lambda: (
                sum(len(set(each.parameters())) for each in devices)
                + len(receiver.first_times("/"))
                >= ACTUATIONS
            ),
            SECONDS,
        )

    wanted = [list(range(first, ACTUATIONS, len(names))) for first in range(len(names))]
    for device, all_ in zip(devices, wanted, strict=False):
        # One whose answer was lost was asked for again, and has two ids.
        assert list(dict.fromkeys(device.parameters())) == all_
        assert len(device.got) - len(dict.fromkeys(device.got)) <= len(KILLS) * WINDOW
        device.close()
    assert receiver.first_times("/") == wanted[-1]
    assert receiver.failed
    assert receiver.repeats("/") <= 2 * len(KILLS)


@pytest.mark.timeout(900)
def test_each_output_acts_once(platform: RunningPlatform) -> None:
    """Whatever is killed meanwhile."""
    value = 'd.channels.v["current-value"]'
    document = {
        "version": "0.2.0",
        "actions": [{"name": "open"}],
        "streams": {
            "d": {"channels": {"v": {"type": "number"}}},
            "twice": {
                "channels": {
                    "v": {"type": "number", "current-value": f"function(d){{return {value}*2}}"}
                },
                "actions": [
                    {
                        "action": "open",
                        "if": '$output.channels.v["current-value"] % 4 == 0',
                        "parameters": "{$.channels.v.current-value}",
                    }
                ],
            },
        },
    }
    tank = platform.create(document)
    device = Device(platform, tank)
    for at in range(1, 201):
        platform.put(StreamRef(tank, "d"), at, v=at)
        if at in KILLED_AT:
            kill(platform, KILLED_AT[at])
    wanted = [2 * at for at in range(1, 201) if at % 2 == 0]
    waiting.until(lambda: len(set(device.parameters())) >= len(wanted), SECONDS)

    assert device.parameters() == wanted
    assert len({id_ for id_, _ in device.got}) == len(wanted)
    status, _, body = platform.request("GET", f"/{tank}/actuations/{device.got[-1][0]}")
    assert (status, json.loads(body)["name"]) == (200, "open")
    device.close()
