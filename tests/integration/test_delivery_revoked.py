"""A connection ends when its token does, whatever it speaks, and when it may read no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest import mock

import httpx
import pytest
import waiting
from ended_streams import REASON, end_of
from stomp_client import StompClient
from support.delivery_stores import WAIT_SECONDS
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker
from support.running_delivery import RunningDelivery
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from delivery.feeds import feeds as feeds_module
from servioticy.domain.model import StreamRef

FLOW = StreamRef("pump", "flow")
PRIVATE = "the stream is private by now, or gone"


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.add("s", FLOW)
        yield delivery


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as found:
        yield found


def test_a_socket_ends_with_a_code_of_its_own(running: RunningDelivery) -> None:
    revoked, other = running.watch("token-1"), running.watch("token-2")
    running.catalog.revoke("token-1")

    assert end_of(revoked) == (1008, REASON)
    running.publish(b'{"lastUpdate":0}')
    assert other.recv(WAIT_SECONDS) == '{"lastUpdate":0}'


@pytest.mark.parametrize("change", ["hide", "delete"])
def test_a_socket_ends_when_its_stream_may_not_be_read(
    running: RunningDelivery, change: str
) -> None:
    foreign, own = running.watch("token-1", name="open"), running.watch("token-9", name="open")
    getattr(running.catalog, change)("open")

    assert end_of(foreign) == (1008, PRIVATE)
    if change == "delete":
        assert end_of(own) == (1008, PRIVATE)


def test_a_socket_ends_in_the_middle_of_its_history(running: RunningDelivery) -> None:
    """Nothing is sent any more, however much there is."""
    running.history.updates, running.history.size = 1_000_000, 1_000
    socket = running.watch("token-1", "?after=0")
    last, got = socket.recv(WAIT_SECONDS), 1
    running.catalog.revoke("token-1")

    with pytest.raises(ConnectionClosed) as error:
        while True:
            last, got = socket.recv(WAIT_SECONDS), got + 1

    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008
    assert json.loads(last)["lastUpdate"] == got < 1_000_000


def test_a_socket_with_many_subscriptions_ends_or_loses_one(running: RunningDelivery) -> None:
    url = f"ws://127.0.0.1:{running.port}/live?access_token=token-1"
    socket = connect(url, proxy=None, open_timeout=WAIT_SECONDS, close_timeout=0.5)
    for name in ("pump", "open"):
        wish = {"do": "subscribe", "id": name, "serviceObject": name, "stream": "flow"}
        socket.send(json.dumps(wish))
        assert json.loads(socket.recv(WAIT_SECONDS))["is"] == "subscribed"
    running.catalog.hide("open")
    assert json.loads(socket.recv(WAIT_SECONDS)) == {
        "id": "open",
        "is": "ended",
        "reason": PRIVATE,
    }
    running.catalog.revoke("token-1")

    assert end_of(socket) == (1008, REASON)


@pytest.mark.parametrize("path", ["pump/streams/flow/events", "subscriptions/s/events"])
def test_events_end_with_the_reason(running: RunningDelivery, path: str) -> None:
    url = f"http://127.0.0.1:{running.port}/{path}"
    headers = {"Authorization": "token-1"}
    with httpx.stream("GET", url, headers=headers, timeout=WAIT_SECONDS) as answer:
        lines = answer.iter_lines()
        next(lines)
        running.until(lambda: len(running.hub.reception.stays) == 1)
        running.catalog.revoke("token-1")
        rest = list(lines)

    assert [each for each in rest if each][-2:] == ["event: end", f'data: {{"reason":"{REASON}"}}']


def test_a_poll_ends_with_403(running: RunningDelivery) -> None:
    url = f"http://127.0.0.1:{running.port}/subscriptions/s/updates?wait=60"
    poll = partial(httpx.get, url, headers={"Authorization": "token-1"}, timeout=WAIT_SECONDS)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(poll)
        running.until(lambda: len(running.hub.reception.stays) == 1)
        running.catalog.revoke("token-1")

    assert (answer.result().status_code, answer.result().json()["message"]) == (403, REASON)


@pytest.mark.parametrize("version", [4, 5])
def test_an_mqtt_client_is_cut_off(broker: RunningBroker, version: int) -> None:
    token = f"token-7-{version}"
    client = MqttClient(broker.port, token, version=version, client=f"revoked-{version}")
    other = MqttClient(broker.port, "token-8", client="stays")
    broker.catalog.revoke(token)

    assert client.is_gone.wait(WAIT_SECONDS)
    assert not other.is_gone.is_set()
    other.close()


def test_an_mqtt_client_is_cut_off_from_what_becomes_private(broker: RunningBroker) -> None:
    client = MqttClient(broker.port, "token-7", client="reads")
    assert client.subscribe("updates/open/flow")
    broker.catalog.hide("open")

    assert client.is_gone.wait(WAIT_SECONDS)


def test_a_stomp_client_is_told_why(broker: RunningBroker) -> None:
    client = StompClient(broker.port, "token-6")
    broker.catalog.revoke("token-6")

    assert client.receive().headers["message"] == REASON


def test_who_has_gone_leaves_nothing(broker: RunningBroker) -> None:
    client = MqttClient(broker.port, "token-5", client="leaves")
    assert client.subscribe("updates/pump/flow")
    before = broker.call(lambda: len(broker.hub.reception.stays))
    client.close()

    waiting.until(lambda: broker.call(lambda: len(broker.hub.reception.stays)) == before - 2)
