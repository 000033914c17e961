"""A tenant that has used up its deliveries gets no more, is told so, and loses nothing.

What clients see of it; the program itself is in `test_delivery_used_up_program.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import httpx
import pytest
from support.delivery_stores import WAIT_SECONDS
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker
from support.running_delivery import RunningDelivery
from waiting import until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from delivery.admission.resting import Resting
from delivery.feeds import feeds as feeds_module
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import DELIVERIES, Exceeded, quotas
from servioticy.ports.history import VersionedUpdate
from servioticy.settings import Settings

OVER = Exceeded(quotas(Settings())[DELIVERIES]._replace(most=5), 60)
REASON = "your quota of deliveries is used up; reconnect later with ?after="
ABOUT = {"name": "deliveries", "limit": 5, "unit": "updates given to subscribers an hour"}
HTTP = "http://127.0.0.1"


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.add("s", StreamRef("pump", "flow"))
        yield delivery


def rest(resting: Resting, tenant: int = 1) -> Callable[[], bool]:
    def begin() -> bool:
        resting.change({tenant: OVER})
        return True

    return begin


def emit(running: RunningDelivery, *times: int) -> None:
    stream = StreamRef("pump", "flow")
    running.hub.publish([running.topic.append(0, stream, at) for at in times])


def live(running: RunningDelivery, *wishes: dict[str, Any]) -> ClientConnection:
    url = f"ws://127.0.0.1:{running.port}/live?access_token=token-1"
    socket = connect(url, proxy=None, open_timeout=WAIT_SECONDS, close_timeout=0.5)
    for wish in wishes:
        socket.send(json.dumps({"do": "subscribe"} | wish))
    return socket


STREAM = {"id": "stream", "serviceObject": "pump", "stream": "flow"}
DURABLE = {"id": "durable", "subscription": "s"}


def test_a_socket_is_closed_with_the_reason_and_another_tenants_is_not(
    running: RunningDelivery,
) -> None:
    own, other = running.watch("token-1"), running.watch("token-2")
    running.until(rest(running.hub.resting))
    emit(running, 1)

    with pytest.raises(ConnectionClosed) as closed:
        own.recv(WAIT_SECONDS)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, REASON)
    assert json.loads(other.recv(WAIT_SECONDS))["lastUpdate"] == 1
    with pytest.raises(InvalidStatus) as refused:
        running.watch("token-1", "?after=0")
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["Retry-After"] == "60"
    assert json.loads(refused.value.response.body)["quota"] == ABOUT
    assert running.sockets == 1, "who is refused takes no place"


def test_the_history_of_a_socket_counts_page_by_page_and_ends_with_the_quota(
    running: RunningDelivery,
) -> None:
    """Else whoever comes each second for what is stored since gets everything for nothing."""
    running.history.updates = 1_200
    given: list[int] = []

    def note(tenant: int, provider: int, stream: StreamRef, times: int = 1) -> None:
        assert (tenant, provider, stream) == (1, 1, StreamRef("pump", "flow"))
        given.append(times)
        if len(given) == 5:
            running.hub.resting.change({1: OVER})

    running.hub.fanout.note = note
    with running.watch("token-1", "?after=0") as whole:
        for at in range(1, 1_201):
            assert json.loads(whole.recv(WAIT_SECONDS))["lastUpdate"] == at
    running.until(lambda: len(given) == 3)
    begun = running.watch("token-1", "?after=0")
    got = 0
    with pytest.raises(ConnectionClosed) as closed:
        while begun.recv(WAIT_SECONDS):
            got += 1

    assert given == [500, 500, 200, 500, 500]
    assert got == 1_000
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, REASON)


def test_subscriptions_of_a_socket_end_and_new_ones_are_refused(running: RunningDelivery) -> None:
    """The socket stays: its device's actuations come over it, too."""
    socket = live(running, STREAM, DURABLE)
    begun = {json.loads(socket.recv(WAIT_SECONDS))["is"] for _ in range(2)}
    assert begun == {"subscribed"}
    running.until(rest(running.hub.resting))
    emit(running, 1)

    told = [json.loads(socket.recv(WAIT_SECONDS)) for _ in range(2)]
    assert {each["id"] for each in told} == {"stream", "durable"}
    assert {(each["is"], each["reason"]) for each in told} == {("ended", REASON)}
    for wish in (STREAM, DURABLE):
        socket.send(json.dumps({"do": "subscribe"} | wish))
        answer = json.loads(socket.recv(WAIT_SECONDS))
        assert (answer["is"], answer["status"]) == ("refused", 429)
    running.until(lambda: running.hub.resting.change({}) is None)
    socket.send(json.dumps({"do": "subscribe"} | DURABLE))
    assert json.loads(socket.recv(WAIT_SECONDS))["is"] == "subscribed"
    assert json.loads(socket.recv(WAIT_SECONDS))["update"]["lastUpdate"] == 1


@pytest.mark.parametrize("path", ["pump/streams/flow/events", "subscriptions/s/events"])
def test_events_end_with_the_reason_and_are_refused(running: RunningDelivery, path: str) -> None:
    url = f"{HTTP}:{running.port}/{path}"
    headers = {"Authorization": "token-1"}
    with httpx.stream("GET", url, headers=headers, timeout=WAIT_SECONDS) as answer:
        lines = answer.iter_lines()
        next(lines)
        running.until(rest(running.hub.resting))
        emit(running, 1)
        got = [each for each in lines if each]

    assert got[-2:] == ["event: end", f'data: {{"reason":"{REASON}"}}']
    refused = httpx.get(url, headers=headers, timeout=WAIT_SECONDS)
    assert (refused.status_code, refused.json()["quota"]) == (429, ABOUT)


def test_a_poll_is_refused_and_what_is_acknowledged_stays_so(running: RunningDelivery) -> None:
    base, headers = f"{HTTP}:{running.port}/subscriptions/s", {"Authorization": "token-1"}
    ask = {"headers": headers, "timeout": WAIT_SECONDS}
    httpx.get(f"{base}/updates?wait=0", **ask)
    emit(running, 1, 2)
    got = httpx.get(f"{base}/updates?limit=1", **ask).json()
    running.until(rest(running.hub.resting))

    assert httpx.get(f"{base}/updates", **ask).status_code == 429
    cursor = {"id": got["cursor"]}
    assert httpx.post(f"{base}/acknowledgements", json=cursor, **ask).status_code == 200
    assert httpx.get(f"{base}/position", **ask).json()["lag"] == 1
    running.until(lambda: running.hub.resting.change({}) is None)
    again = httpx.get(f"{base}/updates", **ask).json()["updates"]
    assert [each["update"]["lastUpdate"] for each in again] == [2]


def test_an_mqtt_client_that_watches_is_cut_off_and_may_come_to_publish() -> None:
    with RunningBroker() as broker:
        watching = MqttClient(broker.port, "token-1", version=5, client="watches")
        assert watching.subscribe("updates/pump/flow")
        broker.run(_rest(broker))
        broker.emit(1)

        assert watching.is_gone.wait(WAIT_SECONDS)
        assert watching.messages == []
        with MqttClient(broker.port, "token-1", version=5, client="watches") as back:
            assert not back.subscribe("updates/pump/flow")
            back.acknowledged(back.publish("updates/pump/flow", b"{}", 1))


def test_the_last_value_of_an_mqtt_subscription_counts() -> None:
    with RunningBroker() as broker:
        given: list[tuple[Any, ...]] = []
        broker.hub.fanout.note = lambda *what: given.append(what)
        with MqttClient(broker.port, "token-1", version=5) as client:
            assert client.subscribe("updates/pump/flow")
            broker.run(_nothing_yet())
            assert given == [], "there is none"
            broker.stored.last = VersionedUpdate(1, b'{"lastUpdate":1}', 1)
            assert client.subscribe("updates/pump/flow")
            until(lambda: client.messages, WAIT_SECONDS)

        assert given == [(1, 1, StreamRef("pump", "flow"))]


async def _nothing_yet() -> None:
    """What was begun before is done when this is."""


async def _rest(broker: RunningBroker) -> None:
    broker.hub.resting.change({1: OVER})
