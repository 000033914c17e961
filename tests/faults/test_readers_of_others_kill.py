"""Whatever dies while a public stream is sent to: its readers of other tenants have all of it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from process_walks import pipeline_workers, spark_drivers
from readers_of_others import Readers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

READERS = 6
BEFORE, AFTER = 20, 40

VICTIMS: dict[str, Callable[[RunningPlatform], list[int]]] = {
    "python workers": lambda platform: pipeline_workers(platform.pids()["pipeline"]),
    "spark jvm": lambda platform: spark_drivers(platform.pids()["pipeline"]),
    "broker": lambda platform: [platform.pids()["kafka"]],
    "postgres": lambda platform: [platform.pids()["postgres"]],
}


@pytest.fixture(scope="module")
def readers(platform: RunningPlatform) -> Iterator[Readers]:
    """Those of one device for all of these tests: each goes on where the one before ended."""
    found = Readers(platform, READERS)
    assert len(found.partitions()) > 1
    yield found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", VICTIMS)
def test_readers_have_everything_once_after_kill_9(
    victim: str, platform: RunningPlatform, readers: Readers
) -> None:
    """What crosses a border is a promise of the log, as all else is."""

    def kill() -> bool:
        """One may just be starting again after the test before."""
        killed = False
        for pid in VICTIMS[victim](platform):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed = True
        return killed

    readers.send(BEFORE)
    until(kill, SECONDS_TO_RECOVER)
    readers.send(AFTER)

    readers.assert_all_have_everything()
