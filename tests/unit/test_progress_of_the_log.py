"""Whoever waits for the log is told in words what came of it; readers have headers for them."""

from __future__ import annotations

import msgspec
import pytest
from memory import MemoryPlatform

from api.http.read_after_write import HEADER, ReadAfterWrite, headers_of
from ingest.progress import Awaited, Ended, How, Progress
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import UpdateRecord
from servioticy.ports.addresses import Address

HERE = Awaited(0, 1)
UPDATE = UpdateRecord(
    *StreamRef("pump", "flow"),
    Timestamp(1),
    msgspec.Raw(b'{"channels":{"v":{"current-value":1}},"lastUpdate":1}'),
)


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds or 1.0


def held(platform: MemoryPlatform, seconds: float, clock: Clock) -> list[Ended]:
    progress = Progress(platform.history, platform.log)
    return progress.hold([HERE, HERE], seconds, lambda: clock.now, clock.sleep)


def test_where_all_is_worked_on_nobody_waits() -> None:
    clock = Clock()

    assert held(MemoryPlatform(), 1.0, clock) == [Ended(How.STORED, at_once=True)]
    assert clock.slept == []


def test_it_is_waited_until_all_is_worked_on_and_not_for_long() -> None:
    """Where nothing is worked on it is taken all the same."""
    platform, clock = MemoryPlatform(), Clock()
    platform.log.append(0, UPDATE)

    assert held(platform, 0.25, clock) == [Ended(How.BEHIND, behind=1)]
    assert clock.now == pytest.approx(100.25)
    assert len(clock.slept) > 3


def test_a_reader_is_told_by_a_header_how_it_ended() -> None:
    platform, clock = MemoryPlatform(), Clock()
    platform.log.append(0, UPDATE)
    waiting = ReadAfterWrite(platform.history, platform.log, 0.1, lambda: clock.now, clock.sleep)
    address = Address(1, "pump", 1, False, 1, 0, 1)

    assert waiting.wait(address) == {HEADER: "1"}
    assert [headers_of(Ended(each, behind=7)) for each in How] == [
        {},
        {HEADER: "7"},
        {HEADER: "unknown"},
        {HEADER: "log-lost"},
    ]
