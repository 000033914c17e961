"""What a connection was made of goes with it: who comes in crowds leaves nothing to look through.

Objects that hold each other stay until all that lives is looked through, and nobody is served
meanwhile: after 16,000 requests of strangers to delivery that took 130 ms, and 110 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.garbage_left import ask, left_of
from support.running_broker import RunningBroker
from support.running_delivery import RunningDelivery, a_request

from benchmarks.attacks.brokering import hello

UNKNOWN = b"GET /x/streams/s/live HTTP/1.1\r\nHost: a\r\n\r\n"
TO_DELIVERY = {
    "without a token": UNKNOWN,
    "plain HTTP": b"GET /x/streams/s/updates HTTP/1.1\r\nHost: a\r\n\r\n",
    "an unknown token": a_request("/pump/streams/flow/live", "nobody's"),
    "half a line": UNKNOWN[:20],
    "nothing": b"",
}
ANSWERED = [(name, True) for name in list(TO_DELIVERY)[:3]]
TO_BROKER = {
    "MQTT without a token": hello("stranger"),
    "MQTT with one": hello("somebody", "token-1"),
    "STOMP": b"CONNECT\naccept-version:1.2\n\n\0",
    "nonsense": b"zzzz",
    "nothing": b"",
}


@pytest.fixture(scope="module")
def delivery() -> Iterator[RunningDelivery]:
    with RunningDelivery() as made:
        yield made


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as made:
        yield made


@pytest.mark.parametrize(("name", "waits"), [*ANSWERED, *((name, False) for name in TO_DELIVERY)])
def test_delivery_holds_nothing_of_who_has_gone(
    delivery: RunningDelivery, name: str, *, waits: bool
) -> None:
    """Whether its client waits for the answer or not."""
    sent = TO_DELIVERY[name]
    assert left_of(lambda: ask(delivery.port, sent, waits=waits)) <= 0


@pytest.mark.parametrize("name", TO_BROKER)
def test_the_broker_holds_nothing_of_who_has_gone(broker: RunningBroker, name: str) -> None:
    assert left_of(lambda: ask(broker.port, TO_BROKER[name], waits=False)) <= 0
