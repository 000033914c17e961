"""One WebSocket with many subscriptions, and clients that say what they should not."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any
from unittest import mock

import pytest
from live_clients import FLOW, LAMP, Client, running
from running_delivery import RunningDelivery, a_request, status
from support.delivery_stores import a_capacity
from websockets.exceptions import ConnectionClosed

from delivery.transports import live as module
from delivery.transports.live_sender import FRAMES_A_TURN
from servioticy.domain.model import StreamRef

__all__ = ["running"]


def emit(running: RunningDelivery, *times: int, stream: StreamRef = FLOW, size: int = 0) -> None:
    running.hub.publish([running.topic.append(0, stream, at, size) for at in times])


def test_each_frame_says_which_subscription_it_is_about(running) -> None:
    client = Client(running)
    assert client.watch("a")["is"] == client.watch("b", LAMP)["is"] == "subscribed"
    emit(running, 1)
    first = client.hear()
    emit(running, 2, stream=LAMP)

    assert first == {
        "id": "a",
        "event": "0.0.1",
        "serviceObject": "pump",
        "stream": "flow",
        "update": {"lastUpdate": 1},
    }
    assert client.update() == ("b", 2)


def test_a_subscription_goes_on_behind_its_last_event_on_another_socket(running) -> None:
    """Where nothing came yet, behind the place that the answer told."""
    before = Client(running).watch("a")["event"]
    emit(running, 10)
    first = Client(running)
    first.watch("a", last=before)
    last = first.hear()
    first.socket.close()
    emit(running, 5, 20)
    again = Client(running)
    again.watch("b", last=last["event"])

    assert last["update"]["lastUpdate"] == 10
    assert [again.update() for _ in range(2)] == [("b", 5), ("b", 20)]


def test_what_is_not_subscribed_any_more_does_not_come(running) -> None:
    client = Client(running)
    client.watch("a")
    client.watch("b", LAMP)
    gone = client.say("unsubscribe", "a")
    twice = client.say("unsubscribe", "a")
    emit(running, 1)
    emit(running, 2, stream=LAMP)

    assert (gone["is"], twice["is"], twice["status"]) == ("unsubscribed", "refused", 404)
    assert client.update() == ("b", 2)
    # The lamp, and the durable subscription.
    running.until(lambda: len(running.hub.watchers) == 2)


def test_a_durable_subscription_is_acknowledged_over_its_socket(running) -> None:
    client = Client(running)
    client.say("subscribe", "a", subscription="s")
    emit(running, 1, 2, 3)
    events = [client.hear() for _ in range(3)]
    told = client.say("acknowledge", "k", subscription="s", event=events[1]["event"])
    client.socket.close()
    again = Client(running)
    again.say("subscribe", "b", subscription="s")

    assert [each["update"]["lastUpdate"] for each in events] == [1, 2, 3]
    assert told["is"] == "acknowledged"
    assert running.cursors.rows["s"].cursor.offsets[0] == 2
    assert again.update() == ("b", 3)


@pytest.mark.parametrize(
    ("names", "status"),
    [
        ({"serviceObject": "private", "stream": "flow"}, 401),
        ({"serviceObject": "nothing", "stream": "flow"}, 404),
        ({"serviceObject": "\0\ud800", "stream": ""}, 400),
        ({"serviceObject": 1, "stream": "flow"}, 400),
        ({"stream": "flow"}, 400),
        ({"serviceObject": "pump", "stream": "flow", "after": "soon"}, 400),
        ({"serviceObject": "pump", "stream": "flow", "last": "soon"}, 400),
        ({"subscription": "none"}, 404),
        ({"subscription": "s", "last": "0.99.1"}, 400),
    ],
)
def test_what_cannot_be_subscribed_to_is_refused_and_the_socket_stays(
    running, names: dict[str, Any], status: int
) -> None:
    client = Client(running)
    refused = client.say("subscribe", "a", **names)

    assert (refused["is"], refused["status"]) == ("refused", status)
    assert client.watch("a")["is"] == "subscribed"


@pytest.mark.parametrize(
    "message", ["", "{", "[]", "1", '{"do":"subscribe"}', '{"id":"a"}', '{"id":"a","do":"fly"}']
)
def test_what_is_no_message_is_refused_and_the_socket_stays(running, message: str) -> None:
    client = Client(running)
    client.socket.send(message)

    assert client.hear()["status"] == 400
    assert client.watch("a")["is"] == "subscribed"


def test_a_foreign_durable_subscription_is_as_unknown_as_one_that_is_none(running) -> None:
    client = Client(running, "token-2")
    foreign = client.say("subscribe", "a", subscription="s")
    unknown = client.say("subscribe", "a", subscription="none")

    assert foreign == unknown
    assert foreign["status"] == 404


def test_bytes_end_the_socket(running) -> None:
    client = Client(running)
    client.socket.send(b'{"do":"subscribe"}')
    with pytest.raises(ConnectionClosed) as closed:
        client.hear()

    assert closed.value.rcvd.code == 1003


def test_ten_thousand_subscribe_messages_cost_others_nothing(running) -> None:
    """So many as a socket may have are taken, the rest is refused one by one, or later."""
    greedy, other = Client(running, "token-2"), Client(running)
    other.watch("a")
    with mock.patch.object(module, "MAX_SUBSCRIPTIONS", 50):
        answers = [greedy.watch(str(number)) for number in range(60)]
        for number in range(2_000):
            try:
                greedy.socket.send(json.dumps({"do": "subscribe", "id": str(number), "stream": 1}))
            except ConnectionClosed:
                break
        emit(running, 1)

        assert other.update() == ("a", 1)
    assert [each.get("status") for each in answers] == [None] * 50 + [429] * 10
    greedy.socket.close()
    running.until(lambda: len(running.hub.watchers) == 2)


def test_a_socket_that_is_not_read_stalls_nobody(running) -> None:
    slow = running.plain(a_request("/live", "token-2"))
    while b"\r\n\r\n" not in slow.recv(4096):
        pass
    said = b'{"do":"subscribe","id":"a","serviceObject":"pump","stream":"flow"}'
    slow.sendall(bytes([0x81, 0x80 | len(said), 0, 0, 0, 0]) + said)
    quick = Client(running)
    quick.watch("a")
    running.until(lambda: len(running.hub.watchers) == 3)
    got = []
    for at in range(40):
        emit(running, at, size=100_000)
        got.append(quick.update()[1])

    assert got == list(range(40))
    running.until(lambda: running.hub.backlog.total < 3 * 1024 * 1024)


@pytest.mark.parametrize(
    ("target", "token", "expected"),
    [("/live", "", 403), ("/live", "wrong", 403), ("/live?access_token=wrong", "", 403)],
)
def test_strangers_get_no_socket(running, target: str, token: str, expected: int) -> None:
    assert status(running.plain(a_request(target, token))) == expected


def test_nothing_of_a_socket_stays(running) -> None:
    client = Client(running)
    for number in range(20):
        client.socket.send(
            json.dumps(
                {"do": "subscribe", "id": str(number), "serviceObject": "a", "stream": "flow"}
            )
        )
    client.socket.close()

    running.until(lambda: len(running.hub.watchers) == 1 and running.sockets == 0)


def subscribed(client: Client, most: int) -> list[dict[str, object]]:
    return [client.watch(str(number)) for number in range(most)]


def test_a_subscription_has_no_task_of_its_own_and_is_small(running) -> None:
    """A tenant may have thousands, of which most have nothing to send."""
    client = Client(running)
    subscribed(client, 100)
    tasks = len(asyncio.all_tasks(running._loop))
    tracemalloc.start()
    for number in range(500):
        client.watch(f"x{number}")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(asyncio.all_tasks(running._loop)) <= tasks + 5
    assert size / 500 < 6_000


def test_an_update_to_all_of_a_sockets_subscriptions_is_sent_in_turns(running) -> None:
    client = Client(running)
    subscribed(client, 200)
    before = running.hub.turns.taken
    emit(running, 1)
    got = {client.update() for _ in range(200)}

    assert got == {(str(number), 1) for number in range(200)}
    assert running.hub.turns.taken - before >= 200 // FRAMES_A_TURN


def test_what_a_socket_had_is_taken_down_in_turns(running) -> None:
    client = Client(running)
    subscribed(client, 200)
    before = running.hub.turns.taken
    client.socket.close()
    running.until(
        lambda: len(running.hub.watchers) == 1 and not running.hub.reception.subscriptions
    )

    assert running.hub.turns.taken - before >= 200 // module.FORGOTTEN_A_TURN


def test_a_tenant_has_so_many_subscriptions_over_all_its_sockets() -> None:
    """One more is refused by the name of its quota; what ends makes room; others have theirs."""
    with RunningDelivery(a_capacity(live=5)) as running:
        first, second, other = Client(running), Client(running), Client(running, "token-2")
        assert [each["is"] for each in subscribed(first, 3)] == ["subscribed"] * 3
        assert [each["is"] for each in subscribed(second, 2)] == ["subscribed"] * 2
        refused = second.watch("more")
        device = second.say("subscribe", "device", serviceObject="lamp", actions=True)
        assert (refused["status"], device["status"]) == (429, 429)
        assert "5 subscriptions of sockets" in refused["reason"]
        assert other.watch("a")["is"] == "subscribed"

        assert first.say("unsubscribe", "0")["is"] == "unsubscribed"
        assert second.watch("x", StreamRef("nothing", "flow"))["is"] == "refused"
        assert second.watch("more")["is"] == "subscribed"
        second.socket.close()
        running.until(lambda: len(running.hub.reception.subscriptions) == 3)
