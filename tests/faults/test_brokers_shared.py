"""Two processes of the broker: clients, their names, their topics and their number are both's."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from mqtt_client import MqttClient
from support.broker_programs import BrokerProgram, a_broker, holder, shares
from support.delivery_program import World, settings, subscribe
from waiting import until

from servioticy.domain.feed_slots import SLOTS
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed

__all__ = ["settings"]

pytestmark = pytest.mark.timeout(600)
SECONDS = 120.0
TOPIC = "plant/mine/streams/data/updates"
MOST = 3
"""Connections of a tenant, on all processes together."""
WINDOW = 64
"""Messages of a subscription that are on their way, and may come twice after a death."""
SESSION_TAKEN_OVER = 0x8E
HALVES = [SLOTS // 2, SLOTS // 2]


class Both(NamedTuple):
    """The process that has the tenant's durable subscriptions, and the other one."""

    holder: BrokerProgram
    other: BrokerProgram
    world: World

    def client(self, program: BrokerProgram, **more: object) -> MqttClient:
        return MqttClient(program.port, self.world.ours, **more)  # type: ignore[arg-type]


@pytest.fixture
def both(settings: Settings, tmp_path: Path) -> Iterator[Both]:
    with ExitStack() as stack:
        first = stack.enter_context(a_broker(settings, tmp_path))
        until(lambda: shares(settings) == [SLOTS], SECONDS)
        beside = changed(settings, mqtt_port=ports.free())
        second = stack.enter_context(a_broker(beside, tmp_path))
        until(lambda: shares(settings) == HALVES, SECONDS)
        world = World(settings, first.process)
        has_it = holder(settings, world.ours) == first.port
        yield Both(*((first, second) if has_it else (second, first)), world)


def emit(world: World, *times: int) -> None:
    for at in times:
        world.stored(at)
        world.emitted(at)


def got(*clients: MqttClient) -> list[int]:
    return [orjson.loads(m.payload)["lastUpdate"] for each in clients for m in each.messages]


@pytest.mark.parametrize("version", [4, 5])
def test_a_client_that_comes_to_another_process_takes_its_name_over(
    both: Both, version: int
) -> None:
    before = both.client(both.holder, client="pump", version=version)
    stranger = MqttClient(both.holder.port, both.world.theirs, client="pump", version=version)

    after = both.client(both.other, client="pump", version=version)

    assert before.is_gone.wait(SECONDS)
    if version == 5:
        assert before.gone_for.value == SESSION_TAKEN_OVER
    again = both.client(both.holder, client="pump", version=version)
    assert after.is_gone.wait(SECONDS)
    assert not again.is_gone.wait(1.0)
    assert not stranger.is_gone.is_set(), "it is another tenant's"
    for each in (again, stranger):
        each.close()


def test_a_durable_topic_reaches_a_client_wherever_it_is(both: Both) -> None:
    """In order, once each; and once only to a client whose subscriptions overlap."""
    subscribe(both.world, "s", topic="plant")
    client = both.client(both.other)
    assert client.subscribe("plant/+/streams/data/updates", 1)
    assert client.subscribe(TOPIC, 1)

    emit(both.world, *range(1, 51))

    until(lambda: len(client.messages) >= 50, SECONDS)
    time.sleep(0.5)
    assert got(client) == [*range(1, 51)]
    assert {each.topic for each in client.messages} == {TOPIC}
    client.close()


def test_each_process_has_the_topics_of_some_tenants(both: Both) -> None:
    """It gives them to clients of the other one, too; who is left has all of them."""
    world = both.world
    assert holder(world.settings, world.theirs) == both.other.port
    subscribe(world, "s", topic="plant")
    subscribe(world, "t", topic="mill", token=world.theirs, name="private")
    our, their = both.client(both.other), MqttClient(both.holder.port, world.theirs)
    assert our.subscribe(TOPIC, 1)
    assert their.subscribe("mill/private/streams/data/updates", 1)

    emit(world, *range(1, 11))
    world.emitted(*range(1, 11), name="private")

    until(lambda: len(our.messages) >= 10 and len(their.messages) >= 10, SECONDS)
    assert got(our) == got(their) == [*range(1, 11)]
    both.other.kill()
    world.emitted(*range(11, 21), name="private")
    until(lambda: 20 in got(their), SECONDS)
    assert list(dict.fromkeys(got(their))) == [*range(1, 21)]
    their.close()


def test_what_a_client_did_not_acknowledge_comes_to_who_is_there_next(both: Both) -> None:
    subscribe(both.world, "s", topic="plant")
    client = both.client(both.other, manual_ack=True)
    assert client.subscribe(TOPIC, 1)
    emit(both.world, 1, 2, 3)
    until(lambda: len(client.messages) == 3, SECONDS)
    client.close()

    later = both.client(both.holder)
    assert later.subscribe(TOPIC, 1)

    until(lambda: len(later.messages) >= 3, SECONDS)
    assert got(later) == [1, 2, 3]
    later.close()


def test_who_is_left_delivers_when_the_one_that_had_the_topics_is_killed(
    both: Both, tmp_path: Path
) -> None:
    """And again when that one is killed: one that has come meanwhile is asked, or takes over."""
    subscribe(both.world, "s", topic="plant")
    client = both.client(both.other)
    assert client.subscribe(TOPIC, 1)
    emit(both.world, *range(1, 31))
    until(lambda: len(client.messages) >= 10, SECONDS)

    both.holder.kill()
    emit(both.world, *range(31, 61))
    until(lambda: 60 in got(client), SECONDS)
    with a_broker(both.holder.settings, tmp_path) as third:
        until(lambda: shares(both.world.settings) == HALVES, SECONDS)
        behind = both.client(third)
        assert behind.subscribe(TOPIC, 1)
        both.other.kill()
        emit(both.world, *range(61, 91))
        until(lambda: 90 in got(behind), SECONDS)

        found = got(client, behind)
        behind.close()

    assert set(found) == {*range(1, 91)}
    assert list(dict.fromkeys(got(client))) == [*range(1, len(set(got(client))) + 1)]
    assert len(found) <= 90 + 3 * WINDOW, "two have died, and one has come"
    assert max(Counter(found).values()) <= 4


def test_connections_of_a_tenant_are_counted_at_both(settings: Settings, tmp_path: Path) -> None:
    """To the last place, told within a second; one that is killed has none any more."""
    few = changed(settings, live_sockets_per_tenant=MOST)
    with ExitStack() as stack:
        one = stack.enter_context(a_broker(few, tmp_path))
        two = stack.enter_context(a_broker(changed(few, mqtt_port=ports.free()), tmp_path))
        until(lambda: shares(few) == HALVES, SECONDS)
        token = World(settings, one.process).ours
        clients = [MqttClient(one.port, token), MqttClient(one.port, token)]
        time.sleep(2.0)
        clients.append(MqttClient(two.port, token))

        beyond = MqttClient(two.port, token)
        assert beyond.refusal is not None

        time.sleep(2.0)
        assert MqttClient(one.port, token).refusal is not None
        clients[0].close()
        _until_let_in(two.port, token)
        time.sleep(2.0)
        assert MqttClient(two.port, token).refusal is not None
        one.kill()
        _until_let_in(two.port, token)
        assert MqttClient(two.port, token).refusal is not None


def _until_let_in(port: int, token: str) -> None:
    """For five seconds, and a try each tenth of one."""
    for _ in range(50):
        if MqttClient(port, token).refusal is None:
            return
        time.sleep(0.1)
    pytest.fail("the place was not free in time")
