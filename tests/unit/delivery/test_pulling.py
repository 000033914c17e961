"""Events and long polls over plain HTTP: from where a client goes on, and what it has to say."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS

from delivery.feeds import feeds as feeds_module
from delivery.feeds import lent, pulls
from delivery.feeds.feed import MAX_QUEUED_BYTES
from servioticy.domain.model import StreamRef

FLOW = StreamRef("pump", "flow")
OWN, FOREIGN = "token-1", "token-2"


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.add("s", FLOW)
        yield delivery


def emit(running: RunningDelivery, *times: int, size: int = 0) -> None:
    running.hub.publish([running.topic.append(0, FLOW, at, size) for at in times])


def request(
    running: RunningDelivery, path: str, method: str = "GET", body: str = "", token: str = OWN
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=WAIT_SECONDS)
    connection.request(method, path, body, {"Authorization": token})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None


def polled(running: RunningDelivery, query: str = "") -> tuple[list[int], str]:
    status, answer = request(running, f"/subscriptions/s/updates?{query}")
    assert status == 200, answer
    return [each["update"]["lastUpdate"] for each in answer["updates"]], answer["cursor"]


class Events:
    """A client of events, that reads when it is asked to."""

    def __init__(self, running: RunningDelivery, path: str, last: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        headers = {"Authorization": OWN} | ({"Last-Event-ID": last} if last else {})
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.last = last
        self._line()  # retry
        self._rest()

    def _line(self) -> tuple[str, str]:
        name, _, value = self.answer.readline().decode().rstrip("\n").partition(": ")
        return name, value

    def _rest(self) -> dict[str, str]:
        event = {}
        while (line := self._line()) != ("", ""):
            event[line[0]] = line[1]
        self.last = event.get("id", self.last)
        return event

    def next(self) -> Any:
        while True:
            event = self._rest()
            if "event" in event:
                return event["event"], json.loads(event["data"])["reason"]
            if "data" in event:
                return json.loads(event["data"])

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


def test_a_poll_gives_what_is_not_acknowledged_and_acknowledges_what_came_before(running) -> None:
    polled(running, "wait=0")
    emit(running, 1, 2, 3)
    first, cursor = polled(running, "limit=2")
    again, _ = polled(running, "limit=2")
    rest, last = polled(running, f"cursor={cursor}")
    nothing, same = polled(running, f"wait=0&cursor={last}")

    assert (first, again, rest, nothing) == ([1, 2], [1, 2], [3], [])
    assert same == last
    assert request(running, "/subscriptions/s/position")[1]["lag"] == 0


def test_an_acknowledgement_is_stored_and_moves_the_position(running) -> None:
    polled(running, "wait=0")
    emit(running, 1, 2, 3)
    _, cursor = polled(running, "limit=2")
    body = json.dumps({"id": cursor})
    status, position = request(running, "/subscriptions/s/acknowledgements", "POST", body)

    assert (status, position["offsets"]["0"], position["lag"]) == (200, 2, 1)
    assert running.cursors.rows["s"].cursor.offsets[0] == 2
    assert polled(running)[0] == [3]


def test_events_of_a_subscription_go_on_behind_the_last_one_that_its_client_names(running) -> None:
    events = Events(running, "/subscriptions/s/events")
    emit(running, 1, 2, 3)
    got = [events.next()["update"]["lastUpdate"] for _ in range(2)]
    events.close()
    again = Events(running, "/subscriptions/s/events", events.last)
    assert again.next()["update"]["lastUpdate"] == 3
    unacknowledged = Events(running, "/subscriptions/s/events")

    assert got == [1, 2]
    assert again.next()[0] == "end", "a subscription has one client at a time"
    assert unacknowledged.next()["update"]["lastUpdate"] == 3


def test_whoever_acknowledges_nothing_is_told_to(running) -> None:
    with mock.patch.object(pulls, "MAX_UNACKNOWLEDGED", 2):
        events = Events(running, "/subscriptions/s/events")
        emit(running, 1, 2, 3)

        assert [events.next()["update"]["lastUpdate"] for _ in range(2)] == [1, 2]
        assert "acknowledge" in events.next()[1]


@pytest.mark.parametrize("query", ["wait=61", "wait=-1", "limit=0", "limit=1001", "limit=x"])
def test_a_poll_out_of_bounds_is_refused(running, query: str) -> None:
    assert request(running, f"/subscriptions/s/updates?{query}")[0] == 400


@pytest.mark.parametrize("cursor", ["x", "0.0", "0.99.1", "9.0.1", "0.1.99999999999999999999"])
def test_a_cursor_that_came_from_nowhere_is_refused(running, cursor: str) -> None:
    """Else a subscription would pass over what has not come yet."""
    assert request(running, f"/subscriptions/s/updates?wait=0&cursor={cursor}")[0] == 400
    emit(running, 1)

    assert polled(running)[0] == [1]


def test_a_foreign_subscription_is_as_unknown_as_one_that_is_none(running) -> None:
    polled(running, "wait=0")
    for action in ("updates", "events", "position"):
        foreign = request(running, f"/subscriptions/s/{action}", token=FOREIGN)
        unknown = request(running, f"/subscriptions/none/{action}", token=FOREIGN)
        assert foreign == unknown
        assert foreign[0] == 404
    assert request(running, "/subscriptions/s/updates", token="wrong")[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/subscriptions/s/updates", "", 405),
        ("GET", "/subscriptions/s/acknowledgements", "", 405),
        ("POST", "/subscriptions/s/acknowledgements", "{", 400),
        ("POST", "/subscriptions/s/acknowledgements", "[]", 400),
        ("POST", "/subscriptions/s/acknowledgements", "x" * 4097, 413),
        ("POST", "/pump/streams/flow/events", "", 405),
        ("GET", "/elsewhere/events", "", 404),
        ("OPTIONS", "/pump/streams/flow/events", "", 204),
    ],
)
def test_what_is_asked_wrongly_is_answered(running, method, path, body, status: int) -> None:
    assert request(running, path, method, body)[0] == status


STREAM = "/pump/streams/flow/events"


def test_events_of_a_stream_go_on_in_the_order_of_the_topic(running) -> None:
    """An update that came late, with an old timestamp, is missed by no client that comes again."""
    before = Events(running, STREAM)
    before.close()
    emit(running, 10, 20)
    events = Events(running, STREAM, before.last)
    got = [events.next()["lastUpdate"]]
    events.close()
    emit(running, 5, 30)
    again = Events(running, STREAM, events.last)
    got += [again.next()["lastUpdate"] for _ in range(3)]
    emit(running, 40)

    assert [*got, again.next()["lastUpdate"]] == [10, 20, 5, 30, 40]


@pytest.mark.parametrize(
    ("begins", "reread"), [(2, lent.MAX_REREAD), (0, 1)], ids=["gone", "too much"]
)
def test_events_go_on_in_the_history_where_the_topic_is_not_read(
    running, begins: int, reread: int
) -> None:
    running.history.updates = 12
    events = Events(running, STREAM)
    emit(running, 10)
    events.next()
    events.close()
    emit(running, 11, 12)
    with (
        mock.patch.object(running.topic, "begins_at", lambda _partition: begins),
        mock.patch.object(lent, "MAX_REREAD", reread),
    ):
        again = Events(running, STREAM, events.last)
        got = [again.next()["lastUpdate"] for _ in range(2)]

    assert got == [11, 12]
    assert again.last is not None
    assert again.last.startswith("s"), "the history gave it"


def test_who_begins_now_asks_the_topic_nothing_however_long_the_store_takes(running) -> None:
    """Others go on meanwhile: to read that again for each of a thousand who come is much."""
    polled(running, "wait=0")  # the durable subscription has read what it had to
    newest, asked = running.hub.newest, list[str]()

    async def slow(admission: Any) -> Any:
        found = await newest(admission)
        begun = running.hub.fanout.begun
        behind = begun.next_offsets().get(0, 0) + 2
        emit(running, 1, 2)
        while begun.next_offsets().get(0, 0) < behind:
            await asyncio.sleep(0)
        return found

    def noted(name: str) -> Any:
        call = getattr(running.topic, name)
        return mock.patch.object(running.topic, name, lambda *x: asked.append(name) or call(*x))

    with mock.patch.object(running.hub, "newest", slow), noted("begins_at"), noted("read"):
        events = Events(running, STREAM)
        emit(running, 3)

        assert events.next()["lastUpdate"] == 3
    assert asked == []


@pytest.mark.parametrize("place", ["999999.1", "1.0", "0.99999999999999999", "0.3"])
def test_a_place_that_a_client_made_up_is_asked_of_nobody(running, place: str) -> None:
    """Not of the broker, which knows no such place and is for others: the history answers."""
    running.hub.fanout.log = NOW
    running.history.updates = 12
    emit(running, 1, 2, 3)
    Events(running, STREAM).close()
    with mock.patch.object(running.topic, "begins_at", side_effect=AssertionError):
        events = Events(running, STREAM, f"{place}.11.{NOW}")

        assert events.next()["lastUpdate"] == 12


BEFORE, NOW = "0a0a0a0a", "0b0b0b0b"
"""What ids of events name the topic by, before the platform was restored and since."""


def test_events_go_on_in_the_history_where_the_id_is_of_a_topic_that_is_gone(running) -> None:
    """There its place is that of another update: it would pass over what came in between."""
    running.history.updates = 12
    running.hub.fanout.log = BEFORE
    events = Events(running, STREAM)
    emit(running, 10)
    events.next()
    events.close()
    assert events.last is not None and events.last.endswith(f".10.{BEFORE}")
    emit(running, 11, 12)
    running.hub.fanout.log = NOW
    again = Events(running, STREAM, events.last.replace("0.0.", "0.1."))
    got = [again.next()["lastUpdate"] for _ in range(2)]
    emit(running, 13)

    assert [*got, again.next()["lastUpdate"]] == [11, 12, 13]
    assert again.last is not None and again.last.endswith(f".13.{NOW}")


def test_an_id_of_a_topic_that_is_gone_acknowledges_nothing(running) -> None:
    """What the subscription still has to get comes, some of it once more; nothing is missed."""
    polled(running, "wait=0")
    running.hub.fanout.log = BEFORE
    emit(running, 1, 2, 3)
    _, cursor = polled(running, "limit=2")
    running.hub.fanout.log = NOW
    body = json.dumps({"id": cursor})
    refused, why = request(running, "/subscriptions/s/acknowledgements", "POST", body)
    came, _ = polled(running, f"cursor={cursor}")
    events = Events(running, "/subscriptions/s/events", cursor)

    assert refused == 400
    assert "before the platform was restored" in json.dumps(why)
    assert came == [1, 2, 3]
    assert events.next()["update"]["lastUpdate"] == 1


def test_nothing_is_acknowledged_by_an_id_that_does_not_say_of_which_topic_it_is(running) -> None:
    """As those were that are older than this rule."""
    polled(running, "wait=0")
    running.hub.fanout.log = NOW
    emit(running, 1, 2)

    assert polled(running, "cursor=0.1.2")[0] == [1, 2]


def test_an_event_id_that_is_none_is_refused(running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=WAIT_SECONDS)
    connection.request("GET", STREAM, headers={"Authorization": OWN, "Last-Event-ID": "yesterday"})

    assert connection.getresponse().status == 400


def test_a_client_that_does_not_read_is_ended_and_stalls_nobody(running) -> None:
    slow = running.plain(
        f"GET {STREAM} HTTP/1.1\r\nHost: x\r\nAuthorization: {FOREIGN}\r\n\r\n".encode()
    )
    quick = Events(running, STREAM)
    running.until(lambda: running.hub.connections == 2)
    size = 100_000
    count = 3 * MAX_QUEUED_BYTES // size
    got = []
    for _ in range(count):
        emit(running, len(got), size=size)
        got.append(quick.next()["lastUpdate"])

    assert got == list(range(count))
    rest = b""
    while b"event: end" not in rest[-200:]:
        part = slow.recv(65_536)
        assert part
        rest += part
    assert b"slower" in rest[-200:]
