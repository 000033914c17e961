"""A popular public stream: who reads it is computed in every partition, and misses nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from process_walks import pipeline_workers
from readers_of_others import Readers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

PARTITIONS = 4
READERS = 40
UPDATES = 150
KILLS = 3


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    running = RunningPlatform(tmp_path_factory.mktemp("wide") / "data", PARTITIONS)
    yield running
    running.stop()


@pytest.mark.timeout(1800)
def test_all_readers_have_every_value_once_and_in_order_though_workers_are_killed(
    wide: RunningPlatform,
) -> None:
    """The others' partitions go on beside; and both sides are told of the use."""
    readers = Readers(wide, READERS)
    assert readers.partitions() == set(range(PARTITIONS))

    for number in range(KILLS):
        readers.send(UPDATES // (KILLS + 1))
        until(lambda: bool(pipeline_workers(wide.pids()["pipeline"])), SECONDS_TO_RECOVER)
        workers = pipeline_workers(wide.pids()["pipeline"])
        os.kill(workers[number % len(workers)], signal.SIGKILL)
    readers.send(UPDATES - readers.sent)

    readers.assert_all_have_everything()
    until(lambda: readers.used_by_others().get("tenants") == READERS, SECONDS_TO_RECOVER)
