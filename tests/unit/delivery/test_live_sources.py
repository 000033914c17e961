"""One WebSocket that watches all of a Service Object, or what a group reads."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS
from websockets.sync.client import connect

from delivery.feeds import feeds as feeds_module
from delivery.feeds import following as module
from servioticy.domain.model import StreamRef
from servioticy.ports.cursors import Source

PUMP, READER = Source("pump"), Source("pump", None, "g")
FLOW, HEAT, OPEN = StreamRef("pump", "flow"), StreamRef("pump", "heat"), StreamRef("open", "flow")


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.make(PUMP, FLOW)
        delivery.cursors.make(READER, FLOW, OPEN)
        yield delivery


class Client:
    """A socket that reads what is left of it to the end."""

    def __init__(self, running: RunningDelivery, token: str = "token-1") -> None:
        url = f"ws://127.0.0.1:{running.port}/live?access_token={token}"
        self.socket = connect(url, proxy=None, open_timeout=WAIT_SECONDS, close_timeout=0.5)

    def subscribe(self, id_: str = "a", **said: Any) -> dict[str, Any]:
        self.socket.send(json.dumps({"do": "subscribe", "id": id_} | said))
        return self.hear()

    def hear(self) -> dict[str, Any]:
        return json.loads(self.socket.recv(WAIT_SECONDS))

    def update(self) -> tuple[str, str, int]:
        frame = self.hear()
        return frame["serviceObject"], frame["stream"], frame["update"]["lastUpdate"]


def emit(running: RunningDelivery, stream: StreamRef, at: int) -> None:
    running.hub.publish([running.topic.append(0, stream, at)])


def until_about(running: RunningDelivery, *streams: StreamRef) -> None:
    running.until(
        lambda: (
            [set(each.subscription.streams) for each in running.feeds._lent.values()]
            == [set(streams)]
        )
    )


def test_all_of_a_service_object_is_watched_and_what_comes_later(running) -> None:
    client = Client(running)
    assert client.subscribe(serviceObject="pump") == {"id": "a", "is": "subscribed"}
    emit(running, FLOW, 1)
    emit(running, HEAT, 2)
    emit(running, FLOW, 3)
    assert [client.update() for _ in range(2)] == [("pump", "flow", 1), ("pump", "flow", 3)]
    running.cursors.make(PUMP, HEAT)
    running.catalog.change("pump")
    until_about(running, HEAT)
    emit(running, FLOW, 4)
    emit(running, HEAT, 5)

    assert client.update() == ("pump", "heat", 5)


def test_a_member_that_becomes_private_is_watched_no_more_and_the_others_are(running) -> None:
    client = Client(running)
    client.subscribe(serviceObject="pump", group="g")
    emit(running, OPEN, 1)
    assert client.update() == ("open", "flow", 1)
    running.cursors.make(READER, FLOW)
    running.catalog.hide("open")
    until_about(running, FLOW)
    emit(running, OPEN, 2)
    emit(running, FLOW, 3)

    assert client.update() == ("pump", "flow", 3)


def test_a_member_is_watched_until_its_grant_ends_though_nothing_is_told(running) -> None:
    running.cursors.readable_until[OPEN] = time.monotonic() + 0.2
    client = Client(running)
    client.subscribe(serviceObject="pump", group="g")
    until_about(running, FLOW)
    emit(running, OPEN, 1)
    emit(running, FLOW, 2)

    assert client.update() == ("pump", "flow", 2)


def test_it_ends_when_it_may_not_be_watched(running) -> None:
    running.cursors.make(Source("open"), OPEN)
    client = Client(running)
    client.subscribe(serviceObject="open")
    running.catalog.hide("open")

    assert client.hear()["is"] == "ended"
    assert client.subscribe(serviceObject="open")["status"] == 401
    running.until(lambda: len(running.hub.reception.sources) == 0)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"serviceObject": "nothing"}, 404),
        ({"serviceObject": "private"}, 401),
        ({"serviceObject": "open", "group": "g"}, 401),
        ({"serviceObject": "pump", "group": 5}, 400),
        ({"serviceObject": "pump", "last": "0.0.1"}, 400),
        ({"serviceObject": "pump", "after": 1}, 400),
        ({}, 400),
    ],
)
def test_what_may_not_be_watched_is_refused(running, said: dict[str, Any], status: int) -> None:
    """Who belongs to a group is its owner's to know."""
    answer = Client(running).subscribe(**said)

    assert (answer["is"], answer["status"]) == ("refused", status)
    running.until(lambda: len(running.hub.reception.sources) == 0)


def test_there_are_so_many_and_of_so_many_streams(running) -> None:
    with mock.patch.object(module, "MOST_STREAMS", 1):
        answer = Client(running).subscribe(serviceObject="pump", group="g")
    assert answer["status"] == 400
    client = Client(running)
    running.hub.reception.sources._each = 1
    assert client.subscribe("a", serviceObject="pump")["is"] == "subscribed"
    assert client.subscribe("b", serviceObject="pump")["status"] == 429
    client.socket.send('{"do":"unsubscribe","id":"a"}')
    assert client.hear()["is"] == "unsubscribed"

    assert client.subscribe("b", serviceObject="pump")["is"] == "subscribed"


def test_nothing_of_it_stays(running) -> None:
    client = Client(running)
    client.subscribe(serviceObject="pump", group="g")
    client.socket.close()

    running.until(lambda: not running.feeds._lent and len(running.hub.reception.stays) == 0)
    assert len(running.hub.watchers) == 0
