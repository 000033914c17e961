"""Which topics another process is asked for, and what it gives to one that asks for a client."""

from __future__ import annotations

import pytest

from broker.bridge import packets as ours
from broker.client import Client, Publication, Subscription
from broker.mqtt_packets import PASSED_ON, V5, read_connect
from broker.passing_on import Peer, may_be_durable, read_peer
from broker.topics import read_filter
from delivery.backlog import Backlog


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("plant/pump/streams/flow/updates", True),
        ("plant/#", True),
        ("plant", True),
        ("destinations/pump/actions", True),
        ("pump/actuations/7", True),
        ("pump/actions", False),
        ("TOKEN/to", False),
        ("errors", False),
        ("claims", False),
        ("updates/pump/flow", False),
    ],
)
def test_only_what_a_subscription_may_deliver_is_asked_for(text: str, may: bool) -> None:
    """Most devices subscribe to what each process gives itself: they need no second connection."""
    assert may_be_durable(read_filter(text)) is may


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("mqtt://10.1.0.7:1883", Peer("10.1.0.7", 1883, False)),
        ("mqtts://broker-1:8883", Peer("broker-1", 8883, True)),
        ("mqtt://[::1]:1883", Peer("::1", 1883, False)),
        ("mqtt://host", None),
        ("mqtt://host:99999", None),
        ("http://host:80", None),
        ("", None),
    ],
)
def test_an_address_of_a_process_is_read(address: str, peer: Peer | None) -> None:
    assert read_peer(address) == peer


@pytest.mark.parametrize("is_passed_on", [True, False])
def test_who_comes_for_a_client_of_its_own_says_so(is_passed_on: bool) -> None:
    hello = ours.Hello(V5, "", "user", "token", 30, 0, 64, 1_000, is_passed_on=is_passed_on)

    packet = ours.connect(hello)
    found = read_connect(packet[2:])

    assert packet[1] < 0x80
    assert (PASSED_ON in found.properties) is is_passed_on
    assert (found.user, found.password) == ("user", "token")


class Nobody:
    """An outlet that is never used."""

    def unsent_bytes(self) -> int:
        return 0


@pytest.mark.parametrize("is_passed_on", [True, False])
def test_what_each_process_gives_its_own_clients_is_not_passed_on(is_passed_on: bool) -> None:
    """Else an actuation would come to a device by both."""
    client = Client(Nobody(), Backlog(1_000))  # type: ignore[arg-type]
    client.is_passed_on = is_passed_on
    asks_for_all = Subscription(client, "s", read_filter("pump/#"), 1)
    actuated = Publication(1, ("pump", "actions"), b"", None, actuated="pump")
    answer = Publication(1, ("pump", "to"), b"", None, only_for="token")
    durable = Publication(1, ("pump", "x"), b"", None)

    assert asks_for_all.wants(durable)
    assert asks_for_all.wants(actuated) is not is_passed_on
    assert asks_for_all.wants(answer) is not is_passed_on
