"""A task that misses rows, or finds less stored than it took, must not go on."""

from __future__ import annotations

import json

import msgspec
import pytest
from memory import MemoryPlatform

from pipeline.engine import Engine
from pipeline.errors import ProgressLost
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.records import UpdateRecord

ENGINE = Engine({}, 10, 10, sleep=lambda _seconds: None)


@pytest.fixture
def platform() -> MemoryPlatform:
    found = MemoryPlatform()
    for number in range(4):
        text = json.dumps({"channels": {}, "lastUpdate": number}).encode()
        found.log.append(0, UpdateRecord("nobody", "data", number, msgspec.Raw(text)))
    return found


@pytest.fixture
def task(platform: MemoryPlatform) -> Task:
    store = platform.partition_store(argument_names)
    return Task(0, store, lambda: platform.output(0), ENGINE)


def rows(platform: MemoryPlatform, first: int, end: int) -> list[Row]:
    return [Row(offset, platform.state.log[0][offset]) for offset in range(first, end)]


def test_rows_after_a_gap_are_not_taken(platform: MemoryPlatform, task: Task) -> None:
    task.take(rows(platform, 0, 2))
    with pytest.raises(ProgressLost, match="was at offset 3, and is stored up to 2"):
        task.take(rows(platform, 3, 4))
    assert platform.state.progress[0].next_offset == 2


def test_progress_that_went_back_is_noticed_though_no_rows_follow(
    platform: MemoryPlatform, task: Task
) -> None:
    task.take(rows(platform, 0, 4))
    task.release()
    platform.state.progress[0].next_offset = 1
    with pytest.raises(ProgressLost, match="was at offset 4, and is stored up to 1"):
        task.take(())


def test_rows_that_come_again_are_taken(platform: MemoryPlatform, task: Task) -> None:
    """By a new task: Spark makes one where the old one has failed."""
    task.take(rows(platform, 0, 4))
    task.release()
    platform.state.progress[0].next_offset = 1
    store = platform.partition_store(argument_names)
    again = Task(0, store, lambda: platform.output(0), ENGINE)
    again.take(rows(platform, 0, 4))
    assert platform.state.progress[0].next_offset == 4
