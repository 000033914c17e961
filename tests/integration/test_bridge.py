"""A broker of the operator's own: what devices publish there, and what they get there.

The broker is not ours (rumqttd), and neither are the clients; the log and the API are played.
"""

from __future__ import annotations

import time

import orjson
import waiting
from support.mqtt_client import MqttClient
from support.played_ingest import AWAY
from support.running_bridge import ALICE, MOST_BYTES, World
from support.running_broker import an_update

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey, StreamRef


def test_an_update_that_is_published_there_is_put(bridged: World) -> None:
    with bridged.connected(), bridged.device() as device:
        device.acknowledged(device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(7), 1))
        waiting.until(lambda: bridged.broker.log.came)

    assert bridged.broker.log.came == [(StreamRef("pump", "flow"), an_update(7))]


def test_what_the_log_has_not_is_not_acknowledged(bridged: World) -> None:
    """The session keeps it: it comes again over the next connection."""
    log = bridged.broker.log
    log.faults = [AWAY] * 3
    with bridged.connected() as bridges, bridged.device() as device:
        device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: log.appended)
        bridged.cable.cut()
        waiting.until(lambda: not bridges.connected)
        waiting.until(lambda: len(log.faults) < 3)
        bridged.cable.mend()
        waiting.until(lambda: not log.faults and log.appended >= 4)

    assert set(log.updates) == {an_update(1)}


def test_nothing_is_lost_though_connections_are_cut(bridged: World) -> None:
    topic, count = f"{bridged.prefix}/updates/pump/flow", 600
    with bridged.connected(), bridged.device() as device:
        for at in range(count):
            device.publish(topic, an_update(at), 1)
            if at % 200 == 100:
                waiting.until(lambda: bridged.broker.log.came)
                bridged.cable.cut()
                bridged.cable.mend()
        waiting.until(lambda: len(set(bridged.broker.log.updates)) == count)

    assert set(bridged.broker.log.updates) == {an_update(at) for at in range(count)}


def test_it_goes_on_with_a_broker_that_was_killed(bridged: World) -> None:
    """What was to go out meanwhile goes when a client for it can be there again."""
    with bridged.connected() as bridges:
        bridged.cable.cut()
        bridged.external.kill()
        waiting.until(lambda: not bridges.connected)
        out, task = bridged.begin_to_give("news", "today")
        bridged.external.start()
        with bridged.device() as device:
            device.subscribe(f"{bridged.prefix}/#", 1)
            assert out == []
            bridged.cable.mend()
            assert device.received(1)[0] == (f"{bridged.prefix}/news/today", b"{}")
            waiting.until(lambda: out == [True])
            device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(5), 1)
            waiting.until(lambda: an_update(5) in bridged.broker.log.updates)
        task.result(0)


def test_a_request_is_answered_where_it_came_from(bridged: World) -> None:
    """Answers to clients of our own are no business of that broker's."""
    request = {"meta": {"authorization": ALICE, "method": "GET", "url": "/", "messageId": 3}}
    payload = orjson.dumps(request)
    bridged.broker.api.answers = [(200, b'["a"]'), (200, b'["b"]')]
    with (
        bridged.connected(),
        bridged.device() as device,
        MqttClient(bridged.broker.port, ALICE) as own,
    ):
        own.subscribe(f"{ALICE}/to")
        device.subscribe(f"{bridged.prefix}/+/to", 1)
        own.publish(f"{ALICE}/from", payload, 1)
        own.received(1)
        device.publish(f"{bridged.prefix}/{ALICE}/from", payload, 1)
        ((topic, answer),) = device.received(1)
        ((_, own_answer),) = own.received(1)

    assert topic == f"{bridged.prefix}/{ALICE}/to"
    assert orjson.loads(answer) == {"meta": {"messageId": 3, "status": 200}, "body": ["b"]}
    assert orjson.loads(own_answer)["body"] == ["a"]


def test_a_device_gets_what_it_is_asked_to_do_and_answers(bridged: World) -> None:
    name = f"lamp{bridged.prefix}"
    store, now = bridged.broker.actuations, int(time.time() * 1000)
    store.submit(ServiceObjectKey(1, name), f"{name}-1", now, 1_000_000)
    with bridged.device() as device:
        device.subscribe(f"{bridged.prefix}/{name}/actions", 1)
        with bridged.connected():
            device.received(1)
            store.submit(ServiceObjectKey(1, name), f"{name}-2", now, 1_000_000)
            received = device.received(2)
            waiting.until(lambda: store.kept[f"{name}-2"].state is State.DELIVERED)
            device.publish(f"{bridged.prefix}/{name}/actuations/{name}-1", b"done", 1)
            waiting.until(lambda: bridged.broker.api.asked)

    assert [orjson.loads(payload)["id"] for _, payload in received] == [f"{name}-1", f"{name}-2"]
    assert bridged.broker.api.asked == [("PUT", f"/{name}/actuations/{name}-1", ALICE, b"done")]


def test_quality_of_service_0_is_enough_for_who_says_so(bridged: World) -> None:
    with bridged.bridges(qos=0) as bridges, bridged.device() as device:
        waiting.until(lambda: bridges.connected)
        device.subscribe(f"{bridged.prefix}/news", 1)
        assert bridged.give("news") == [True]
        assert device.received(1) == [(f"{bridged.prefix}/news", b"{}")]
        device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(3), 1)
        waiting.until(lambda: bridged.broker.log.came)


def test_what_was_retained_is_not_taken_once_more(bridged: World) -> None:
    """It was said before, perhaps long ago; a request would be done with each connection."""
    topic = f"{bridged.prefix}/updates/pump/flow"
    with bridged.device() as device:
        number = device._client.publish(topic, an_update(1), 1, retain=True).mid
        device.acknowledged(number)
        with bridged.connected():
            device.publish(topic, an_update(2), 1)
            waiting.until(lambda: an_update(2) in bridged.broker.log.updates)

    assert bridged.broker.log.updates == [an_update(2)]


def test_what_is_refused_is_told_and_not_in_the_way(bridged: World) -> None:
    topic = f"{bridged.prefix}/updates/pump/flow"
    with bridged.connected(), bridged.device() as device:
        device.subscribe(f"{bridged.prefix}/errors", 1)
        device.acknowledged(device.publish(topic, b'{"lastUpdate":1}', 1))
        ((_, told),) = device.received(1)
        device.publish(topic, an_update(2), 1)
        waiting.until(lambda: an_update(2) in bridged.broker.log.updates)

    assert orjson.loads(told) == {
        "topic": "updates/pump/flow",
        "status": 400,
        "message": "No channels",
    }


def test_what_is_too_large_costs_no_memory_and_is_not_in_the_way(bridged: World) -> None:
    """A broker of MQTT 5 does not even send it."""
    topic = f"{bridged.prefix}/updates/pump/flow"
    with bridged.connected() as bridges, bridged.device() as device:
        device.publish(topic, an_update(1, MOST_BYTES), 1)
        device.publish(topic, an_update(2), 1)
        waiting.until(lambda: bridged.broker.log.updates)
        assert bridges.connected == 1

    assert bridged.broker.log.updates == [an_update(2)]
