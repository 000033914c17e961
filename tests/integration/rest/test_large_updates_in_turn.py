"""Large updates wait for the log in their tenant's turn, and nobody else waits with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import orjson
import pytest
from api_builders import NOW, Caller, Served
from memory.log import MemoryLog
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker
from support.stomp_client import StompClient
from waiting import until

from api.app import SERVICES
from broker import ingesting
from ingest import pacing as rules
from ingest.ingest import Ingest
from ingest.progress import Awaited, Ended, How
from ingest.updates import LARGE_BYTES
from servioticy.domain.records import UpdateRecord
from servioticy.settings import Settings

AT = int(NOW * 1000)


def an_update(number: int, size: int = 0) -> bytes:
    return orjson.dumps(
        {"channels": {"x": {"current-value": number}}, "lastUpdate": AT + number}
    ).ljust(size)


class Pipeline:
    """Works on what is in the log when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[Awaited]] = []
        self.goes_on = threading.Event()

    def wait(self, awaited: Collection[Awaited]) -> Sequence[Ended]:
        self.asked.append(list(awaited))
        assert self.goes_on.wait(60)
        return [Ended(How.STORED)] * len(awaited)


class Two:
    """Alice and Bob, with a stream each in the same partition; Bob has sent to his."""

    def __init__(self, served: Served, alice: Caller, bob: Caller) -> None:
        self.served, self.alice, self.bob = served, alice, bob
        self.mine = alice.create()
        self.partition = self._partition(alice, self.mine)
        self.theirs = bob.create()
        while self._partition(bob, self.theirs) != self.partition:
            self.theirs = bob.create()
        self.pipeline = Pipeline()

    def _partition(self, caller: Caller, id_: str) -> int:
        found = self.served.platform.ports.addresses.address(caller.token, id_, "a")
        assert found is not None
        return found.partition

    def behind(self, ingest: Ingest) -> Pipeline:
        ingest._pacing._wait = self.pipeline.wait
        return self.pipeline

    def values(self, service_object: str) -> list[int]:
        """What the log has of it, in its order."""
        records = [each for _, each in self.served.platform.records(self.partition)]
        return [
            orjson.loads(bytes(each.update))["channels"]["x"]["current-value"]
            for each in records
            if isinstance(each, UpdateRecord) and each.service_object == service_object
        ]


@pytest.fixture
def two(
    served: Served, alice: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Two]:
    # So that one is what may come at once, however small it is as it is kept.
    monkeypatch.setattr(rules, "AT_ONCE", 1)
    found = Two(served, alice, bob)
    yield found
    found.pipeline.goes_on.set()


@pytest.fixture
def broker(two: Two) -> Iterator[RunningBroker]:
    """The broker is as its program wires it, as its own role in Postgres."""
    platform = two.served.platform
    addresses = platform.ports.addresses
    log = MemoryLog(platform.state)
    way = ingesting.ingest(Settings(), platform.database.delivery, addresses, log, lambda: NOW)
    two.behind(way)
    with RunningBroker(addresses=addresses, ingest=way) as running:
        yield running
        two.pipeline.goes_on.set()


def _status(caller: Caller, served: Served, service_object: str, body: bytes) -> int:
    """Send as a connection of its own, which a thread may have."""
    return Caller(served.app.test_client(), caller.token).put(service_object, body).status_code


def test_by_rest_the_next_large_one_waits_until_the_one_before_is_worked_on(two: Two) -> None:
    served, ingest = two.served, two.served.app.extensions[SERVICES].ingest
    pipeline, pacing = two.behind(ingest), ingest._pacing
    assert two.bob.put(two.theirs, an_update(0)).status_code == 202
    assert two.alice.put(two.mine, an_update(0, LARGE_BYTES)).status_code == 202
    assert pipeline.asked == []

    with ThreadPoolExecutor(2) as threads:
        later: list[Future[int]] = []
        for number in (1, 2):
            body = an_update(number, LARGE_BYTES)
            later.append(threads.submit(_status, two.alice, served, two.mine, body))
            own = next(iter(pacing._tenants.values()))
            until(lambda own=own, number=number: len(own.places) == number and pipeline.asked)
        assert [each for each in later if each.done()] == []
        assert two.alice.put(two.mine, an_update(3, LARGE_BYTES - 1)).status_code == 202
        assert two.bob.put(two.theirs, an_update(1, LARGE_BYTES)).status_code == 202
        assert two.values(two.mine) == [0, 3]
        pipeline.goes_on.set()
        assert [each.result(60) for each in later] == [202, 202]

    assert two.values(two.mine) == [0, 3, 1, 2]
    assert two.values(two.theirs) == [0, 1]
    assert {each for asked in pipeline.asked for each in asked} == {
        Awaited(two.partition, served.platform.stream(two.mine).tenant)
    }


def test_by_mqtt_it_is_acknowledged_when_its_turn_has_come(
    two: Two, broker: RunningBroker
) -> None:
    def topic(service_object: str) -> str:
        return f"updates/{service_object}/a"

    with (
        MqttClient(broker.port, two.alice.token) as first,
        MqttClient(broker.port, two.alice.token) as second,
        MqttClient(broker.port, two.bob.token) as bob,
    ):
        # Bob sends by the API alone as yet: the broker meets what is his in the log.
        first.acknowledged(first.publish(topic(two.mine), an_update(0, LARGE_BYTES), 1))
        assert two.bob.put(two.theirs, an_update(0)).status_code == 202
        for number in (1, 2):
            first.acknowledged(first.publish(topic(two.mine), an_update(number, LARGE_BYTES), 1))
        assert two.pipeline.asked == []
        large = first.publish(topic(two.mine), an_update(3, LARGE_BYTES), 1)
        until(lambda: two.pipeline.asked)
        behind = first.publish(topic(two.mine), an_update(4), 1)

        small = second.publish(topic(two.mine), an_update(5, LARGE_BYTES - 1), 1)
        second.acknowledged(small)
        bob.acknowledged(bob.publish(topic(two.theirs), an_update(1, LARGE_BYTES), 1))
        assert not {large, behind} & first.published.keys()
        assert two.values(two.mine) == [0, 1, 2, 5]

        two.pipeline.goes_on.set()
        for each in (large, behind):
            first.acknowledged(each)

    assert two.values(two.mine) == [0, 1, 2, 5, 3, 4]
    assert two.values(two.theirs) == [0, 1]


def test_by_stomp_the_same(two: Two, broker: RunningBroker) -> None:
    def sent(client: StompClient, service_object: str, body: bytes) -> Callable[[], str]:
        destination = f"/topic/updates/{service_object}/a"
        client.send("SEND", {"destination": destination, "receipt": "r"}, body)
        return lambda: client.receive().command

    alice, bob = StompClient(broker.port, two.alice.token), StompClient(broker.port, two.bob.token)
    assert sent(bob, two.theirs, an_update(0))() == "RECEIPT"
    assert sent(alice, two.mine, an_update(0, LARGE_BYTES))() == "RECEIPT"
    answer = sent(alice, two.mine, an_update(1, LARGE_BYTES))
    until(lambda: two.pipeline.asked)
    assert sent(bob, two.theirs, an_update(1, LARGE_BYTES))() == "RECEIPT"
    assert two.values(two.mine) == [0]

    two.pipeline.goes_on.set()
    assert answer() == "RECEIPT"
    assert two.values(two.mine) == [0, 1]
    alice.close()
    bob.close()


def test_the_broker_may_see_how_far_the_log_is_worked_on(two: Two) -> None:
    """As its own role, of the tenant that it waits for."""
    platform = two.served.platform
    way = ingesting.ingest(
        Settings(), platform.database.delivery, platform.ports.addresses, platform.log
    )
    here = Awaited(two.partition, platform.stream(two.mine).tenant)
    two.served.store()
    assert way._pacing._wait([here]) == [Ended(How.STORED, at_once=True)]

    two.alice.put(two.mine, an_update(1, LARGE_BYTES))
    assert way._pacing._wait([here]) == [Ended(How.BEHIND, behind=1)]
    two.served.store()
    assert way._pacing._wait([here]) == [Ended(How.STORED, at_once=True)]
