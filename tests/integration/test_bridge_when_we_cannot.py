"""What comes from a broker of the operator's own while the platform cannot take it."""

from __future__ import annotations

import orjson
import pytest
import waiting
from support.played_ingest import AWAY
from support.running_bridge import ALICE, MOST_BYTES, World
from support.running_broker import an_update

from broker.bridge import conversation
from broker.intake import MAX_WAITING_BYTES
from delivery.admission.refusals import Refusal

REQUEST = orjson.dumps({"meta": {"authorization": ALICE, "method": "GET", "url": "/"}})
COUNT = 2 * MAX_WAITING_BYTES // MOST_BYTES
"""Large messages, of which twice as much comes as waits at most."""


def test_a_request_is_done_though_nobody_knew_for_a_moment_who_asked(
    bridged: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would not be acknowledged, and nothing after it either."""
    reception = bridged.broker.hub.reception
    recognise, refusals = reception.recognise, [Refusal(503, "The store is away")]

    async def recognised(*asked: object) -> object:
        return refusals.pop() if refusals else await recognise(*asked)  # type: ignore[arg-type]

    with bridged.connected(), bridged.device() as device:
        monkeypatch.setattr(reception, "recognise", recognised)
        device.subscribe(f"{bridged.prefix}/+/to", 1)
        device.publish(f"{bridged.prefix}/token-1-b/from", REQUEST, 1)
        ((topic, _),) = device.received(1)

    assert topic == f"{bridged.prefix}/token-1-b/to"
    assert not refusals


def test_a_fault_of_ours_costs_no_message(bridged: World) -> None:
    log, refused = bridged.broker.log, bridged.broker.broker.refused
    log.faults = [ZeroDivisionError()] * 2
    with bridged.connected(), bridged.device() as device:
        device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: log.appended == 3 and log.came)

    assert bridged.broker.broker.refused == refused


@pytest.mark.parametrize("bridged", [5], indirect=True)
def test_messages_go_out_though_none_can_be_taken(bridged: World) -> None:
    """Acknowledgements of these come behind what waits, and so does the end of a connection."""
    log = bridged.broker.log
    log.faults = [AWAY] * 10_000
    with bridged.connected() as bridges, bridged.device() as device:
        device.subscribe(f"{bridged.prefix}/news", 1)
        publish_large(bridged)
        waiting.until(lambda: waits(bridged) > 1.5 * MAX_WAITING_BYTES)
        told = bridged.give("news")
        waiting.until(lambda: told == [True])
        device.received(1)
        bridged.cable.cut()
        waiting.until(lambda: not bridges.connected)
        log.faults.clear()
        bridged.cable.mend()
        waiting.until(lambda: len(set(log.updates)) == COUNT)


@pytest.mark.parametrize("bridged", [4], indirect=True)
def test_a_connection_with_no_room_for_what_comes_is_not_kept(
    bridged: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could notice its end; the session keeps what was not acknowledged."""
    monkeypatch.setattr(conversation, "KEEP_ALIVE_SECONDS", 1)
    log = bridged.broker.log
    log.faults = [AWAY] * 10_000
    with bridged.connected() as bridges:
        publish_large(bridged)
        waiting.until(lambda: waits(bridged) > MAX_WAITING_BYTES)
        waiting.until(lambda: not bridges.connected)
        log.faults.clear()
        waiting.until(lambda: len(set(log.updates)) == COUNT)


def publish_large(bridged: World) -> None:
    with bridged.device() as device:
        for at in range(COUNT):
            update = an_update(at, MOST_BYTES - 1_000)
            device.acknowledged(device.publish(f"{bridged.prefix}/updates/pump/flow", update, 1))


def waits(bridged: World) -> int:
    """Return how many bytes have come, and are not worked on yet."""
    return sum(each.waiting_bytes for each in list(bridged.broker.broker.clients))
