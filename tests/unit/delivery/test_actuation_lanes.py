"""Actuations reach whoever is connected for a device: all, in order, whatever happens."""

from __future__ import annotations

import asyncio

import pytest
from actuation_lanes import LAMP, PUMP, Client, World, quickly

from delivery.actuations.together import WINDOW
from delivery.actuations.ways import Report
from servioticy.domain.actuations import State

__all__ = ["quickly"]


def test_a_device_that_comes_gets_what_waits_in_order() -> None:
    async def run() -> None:
        world = World()
        made = [world.submit() for _ in range(3)]
        world.submit(PUMP)

        client = world.join(Client())
        await world.settle()

        assert client.got == made
        assert world.store.state(made[0], world.now_ms) is State.SENT
        assert set(world.queues.lanes) == {LAMP}, "the other device is away, and costs nothing"

    asyncio.run(run())


def test_what_is_acknowledged_is_delivered_and_makes_room() -> None:
    async def run() -> None:
        world = World()
        client = world.join(Client())
        made = [world.submit() for _ in range(WINDOW + 2)]
        await world.settle()
        assert client.got == made[:WINDOW]

        for each in made[:2]:
            client.acknowledge(each)
        await world.settle()

        assert client.got == made
        assert world.store.kept[made[0]].state is State.DELIVERED
        assert list(world.store.kept[made[0]].times) == ["queued", "sent", "delivered"]

    asyncio.run(run())


def test_who_acknowledges_nothing_has_taken_what_is_written() -> None:
    async def run() -> None:
        world = World()
        client = world.join(Client(acknowledges=False))
        made = [world.submit() for _ in range(3 * WINDOW)]
        await world.settle()
        await world.settle()

        assert client.got == made
        assert {each.state for each in world.store.kept.values()} == {State.DELIVERED}
        assert not world.queues.lanes

    asyncio.run(run())


@pytest.mark.parametrize("over_topic", [False, True])
def test_who_comes_later_gets_first_what_is_on_its_way(over_topic: bool) -> None:
    """Else it would get what was on its way to one that is gone after what follows that."""

    async def run() -> None:
        world = World()
        come = world.subscribe if over_topic else world.join
        first, made = come(Client()), [world.submit(), world.submit()]
        await world.settle()
        later = come(Client())
        await world.settle()
        made.append(world.submit())
        await world.settle()
        world.leave(first)
        await world.settle()

        assert list(dict.fromkeys(later.got)) == made

    asyncio.run(run())


@pytest.mark.parametrize("said", ["x", "done", "failed"])
def test_what_somebody_else_says_at_once_keeps_nothing_from_the_device(said: str) -> None:
    """Before the actuation is on its way, and while it is: only the device's own word counts."""

    async def run() -> None:
        world = World()
        first = world.submit()
        world.store.report(first, said, world.now_ms, by_device=False)
        device = world.join(Client())
        await world.settle()
        second = world.submit()
        world.store.report(second, said, world.now_ms, by_device=False)
        await world.settle()

        assert device.got == [first, second]
        assert {world.store.state(each, world.now_ms) for each in device.got} == {State.SENT}

    asyncio.run(run())


def test_a_client_without_room_gets_nothing_and_delays_nobody() -> None:
    async def run() -> None:
        world = World()
        full, other = world.join(Client()), world.join(Client(), PUMP)
        full.room = False
        made, others = world.submit(), world.submit(PUMP)
        await world.settle()
        assert (full.got, other.got) == ([], [others])

        full.room = True
        await world.settle()

        assert full.got == [made]

    asyncio.run(run())


def test_what_is_over_or_reported_meanwhile_is_not_sent() -> None:
    async def run() -> None:
        world = World()
        over, reported, good = world.submit(timeout_ms=5), world.submit(), world.submit()
        world.store.report(reported, "done", world.now_ms)
        world.now_ms += 5

        client = world.join(Client())
        await world.settle()

        assert client.got == [good]
        assert world.store.state(over, world.now_ms) is State.EXPIRED
        assert world.store.state(reported, world.now_ms) is State.DONE

    asyncio.run(run())


def test_what_is_acknowledged_after_its_lane_has_ended_is_noted() -> None:
    """A client that has unsubscribed may still acknowledge."""

    async def run() -> None:
        world = World()
        client, made = world.join(Client()), world.submit()
        await world.settle()
        world.queues.leave(LAMP, client)
        await world.settle()
        assert not world.queues.lanes

        client.acknowledge(made)
        await world.settle()

        assert world.store.kept[made].state is State.DELIVERED

    asyncio.run(run())


@pytest.mark.parametrize(
    ("told", "heard"),
    [([True], [True]), ([False], [False]), ([False, True], [True]), ([True, False], [True])],
)
def test_one_of_several_ways_is_enough(told: list[bool], heard: list[bool]) -> None:
    said: list[bool] = []
    report = Report(len(told), said.append)
    for each in told:
        report.taken(each)

    assert said == heard
