"""Nobody fills the loop of MQTT and STOMP: turns are counted here, not seconds."""

from __future__ import annotations

import asyncio
import struct
import time

import pytest

from broker import turns
from broker.errors import Malformed
from broker.mqtt_packets import (
    MAX_FILTERS,
    MAX_PROPERTIES,
    V5,
    read_publish,
    read_subscribe,
    variable,
)
from broker.pings import Pings
from broker.turns import BYTES, FRAMES, STRANGERS_FRAMES, Part, Turns

FLOOD = 10_000


async def flood(part: Part, done: list[str], name: str, frames: int) -> None:
    for _ in range(frames):
        await part.frame()
        done.append(name)


def known(all_turns: Turns, tenant: int) -> Part:
    part = Part(all_turns, "10.0.0.1")
    part.tenant = tenant
    return part


def test_a_flood_gives_way_after_each_turn() -> None:
    """What has come already is no reason to go on: another's frame is next but one turn."""

    async def scene() -> list[str]:
        all_turns, done = Turns(), list[str]()
        tasks = [asyncio.create_task(flood(known(all_turns, 1), done, "flood", FLOOD))]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(flood(known(all_turns, 2), done, "calm", 1)))
        await asyncio.gather(*tasks)
        return done

    assert asyncio.run(scene()).index("calm") <= 2 * FRAMES


def test_tenants_have_turns_and_not_connections() -> None:
    """A hundred connections of one tenant are one tenant."""

    async def scene() -> list[str]:
        all_turns, done = Turns(), list[str]()
        crowd = [flood(known(all_turns, 1), done, "crowd", 10 * FRAMES) for _ in range(100)]
        calm = flood(known(all_turns, 2), done, "calm", 2 * FRAMES)
        await asyncio.gather(*crowd, calm)
        return done

    done = asyncio.run(scene())
    last = len(done) - 1 - done[::-1].index("calm")
    assert last <= 6 * FRAMES


def test_bytes_are_part_of_a_turn() -> None:
    async def scene() -> int:
        all_turns = Turns()
        part = known(all_turns, 1)
        for _ in range(10):
            await part.read(BYTES)
        return all_turns.given

    assert asyncio.run(scene()) == 10


def test_all_strangers_together_have_a_small_part_of_the_loop() -> None:
    """Whatever they send over however many connections: while they wait, tenants go on."""

    async def scene() -> tuple[int, int]:
        all_turns, strange, done = Turns(), list[str](), list[str]()
        crowd = [
            asyncio.create_task(flood(Part(all_turns, f"10.0.0.{n % 9}"), strange, "s", FLOOD))
            for n in range(200)
        ]
        await flood(known(all_turns, 1), done, "tenant", 50 * FRAMES)
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        return len(strange), len(done)

    strange, done = asyncio.run(scene())
    assert done == 50 * FRAMES
    assert strange <= 51 * STRANGERS_FRAMES


def test_a_stranger_of_another_address_waits_for_no_crowd() -> None:
    async def scene() -> int:
        all_turns, done = Turns(), list[str]()
        crowd = [
            asyncio.create_task(flood(Part(all_turns, "10.0.0.1"), done, "crowd", FLOOD))
            for _ in range(1_000)
        ]
        await asyncio.sleep(0)
        before = len(done)
        await Part(all_turns, "10.0.0.2").frame()
        frames = len(done) - before
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        return frames

    assert asyncio.run(scene()) <= 3 * turns.STRANGERS_FRAMES


def test_who_has_gone_while_it_waited_takes_nobodys_turn() -> None:
    async def scene() -> None:
        all_turns = Turns()
        gone = asyncio.create_task(all_turns.of_tenant(1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait_for(all_turns.of_tenant(1), 10)

    asyncio.run(scene())


def test_what_strangers_say_is_counted_by_frames_too() -> None:
    async def scene() -> int:
        part = Part(Turns(), "10.0.0.1")
        for _ in range(3):
            await part.frame()
        await part.read(10)
        return part.strange_bytes

    assert asyncio.run(scene()) == 3 * turns.FRAME_BYTES + 10


def test_pings_are_answered_and_not_as_often_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.pings.SECONDS", 0.05)

    async def scene() -> list[int]:
        answers: list[int] = []
        pings = Pings(lambda: answers.append(1))
        for _ in range(FLOOD):
            pings.came()
        at_once = len(answers)
        await asyncio.sleep(0.5)
        later = len(answers)
        pings.came()
        pings.stop()
        return [at_once, later, len(answers)]

    assert asyncio.run(scene()) == [1, 2, 3]


def test_properties_are_bounded_by_number() -> None:
    """A megabyte of them, five bytes each, would be read for half a second."""

    def message(count: int) -> bytes:
        content = b"\x26\0\0\0\0" * count
        return struct.pack(">H", 1) + b"x" + variable(len(content)) + content

    assert read_publish(0, message(MAX_PROPERTIES), V5).topic == "x"
    with pytest.raises(Malformed):
        read_publish(0, message(MAX_PROPERTIES + 1), V5)


def test_filters_are_counted_while_they_are_read() -> None:
    filters = b"\0\1x\0" * (MAX_FILTERS + 1) + b"\xff" * 1_000_000

    with pytest.raises(Malformed, match=str(MAX_FILTERS)):
        read_subscribe(b"\0\1" + filters, 4)


def test_turns_of_strangers_that_came_late_are_made_up_for_up_to_a_bound() -> None:
    """On a busy machine the loop is woken late: they would have a tenth of their turns."""

    async def scene() -> int:
        own = Turns()
        waiting = [asyncio.create_task(own.of_stranger("a")) for _ in range(1_000)]
        while not own._is_resting:
            await asyncio.sleep(0)
        before = own.given
        time.sleep(0.005 * turns.CATCH_UP)  # the loop is not woken
        while own.given == before:
            await asyncio.sleep(0)
        found = own.given - before
        for each in waiting:
            each.cancel()
        return found

    assert asyncio.run(scene()) == turns.CATCH_UP
