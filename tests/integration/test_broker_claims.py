"""Devices without a token claim by a message, and are who they have become."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from stomp_client import StompClient
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker, an_update

TOKEN, OTHER = "token-1", "token-2"
CLAIM = orjson.dumps({"code": "7K3QM-2F9XW-D4HTA-Q8RZV", "device": "lamp", "key": "k" * 16})
GIVEN = {"id": "pump", "api_token": TOKEN, "createdAt": 5}
NO_CODE = {"status": 404, "message": "There is no such claim code, or it has ended."}


def answers(broker: RunningBroker, *these: tuple[int, Any]) -> None:
    broker.api.answers = [(status, orjson.dumps(body)) for status, body in these]


def said(client: MqttClient, count: int = 1) -> list[Any]:
    return [orjson.loads(body) for topic, body in client.received(count) if topic == "claims"]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_device_gets_its_token_and_goes_on_with_it(
    broker: RunningBroker, version: int, qos: int
) -> None:
    name = f"device-{version}-{qos}"
    with (
        MqttClient(broker.port, version=version, client=name) as device,
        MqttClient(broker.port, OTHER, client=f"{name}-other") as other,
    ):
        assert other.subscribe("claims", 1)
        assert device.subscribe("claims", qos)
        assert not device.subscribe("updates/pump/flow")
        answers(broker, (201, GIVEN))
        device.publish("claims", CLAIM, qos)

        assert said(device) == [{"status": 201, **GIVEN}]
        assert broker.api.asked == [("POST", "/claims", "", CLAIM)]
        device.acknowledged(device.publish("updates/pump/flow", an_update(7), 1))
        assert broker.log.updates == [an_update(7)]
        assert broker.catalog.asked[-1] == TOKEN
        assert device.subscribe("updates/pump/flow")
        assert other.messages == []


def test_who_claims_in_vain_stays_nobody(broker: RunningBroker) -> None:
    with MqttClient(broker.port, client="in vain") as device:
        assert device.subscribe("claims", 1)
        answers(broker, (404, NO_CODE), (429, {"message": "wait"}), (201, GIVEN))
        device.publish("claims", CLAIM, 1)
        assert said(device) == [NO_CODE]
        assert not device.subscribe("updates/pump/flow")
        device.publish("claims", CLAIM, 1)

        assert said(device, 2)[1] == {"status": 429, "message": "wait"}
        assert len(broker.api.asked) == 2, "it is told, and not tried for ever"
        device.publish("claims", CLAIM, 1)
        assert said(device, 3)[2]["status"] == 201


def test_a_claim_whose_answer_nobody_would_get_is_not_made(broker: RunningBroker) -> None:
    with MqttClient(broker.port, version=5, client="deaf") as device:
        assert device.subscribe("errors")
        reason = device.acknowledged(device.publish("claims", CLAIM, 1))

        assert reason.is_failure
        assert broker.api.asked == []
        ((_, refusal),) = device.received(1)
        assert orjson.loads(refusal)["status"] == 400


def test_a_gateway_claims_for_others_and_stays_who_it_is(broker: RunningBroker) -> None:
    with MqttClient(broker.port, OTHER, client="gateway") as gateway:
        assert gateway.subscribe("claims", 1)
        answers(broker, (201, GIVEN), (200, GIVEN))
        for _ in range(2):
            gateway.publish("claims", CLAIM, 1)
        assert [each["status"] for each in said(gateway, 2)] == [201, 200]
        gateway.acknowledged(gateway.publish("updates/pump/flow", an_update(7), 1))

    assert broker.log.updates == [an_update(7)]
    assert broker.catalog.asked[-1] == OTHER


def test_so_does_a_device_that_speaks_stomp(broker: RunningBroker) -> None:
    device = StompClient(broker.port, login="")
    device.send("SUBSCRIBE", {"id": "0", "destination": "/topic/claims", "receipt": "s"})
    assert device.receive().command == "RECEIPT"
    answers(broker, (201, GIVEN))
    device.send("SEND", {"destination": "/topic/claims"}, CLAIM)

    assert orjson.loads(device.receive().body) == {"status": 201, **GIVEN}
    device.close()
