"""A popular public stream: who reads it is computed in every partition, and misses nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from process_walks import pipeline_workers
from readers_of_others import DEVICE, Readers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.client.follower import Follower
from servioticy.domain.model import StreamRef

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


@pytest.mark.timeout(1800)
def test_partitions_are_added_while_traffic_runs(wide: RunningPlatform) -> None:
    """What is there goes on in its order; what is made then is computed, read over borders and
    watched in the new ones."""
    before, stop = Readers(wide, 4), threading.Event()

    def send_on() -> None:
        while not stop.is_set():
            before.send(1)

    sending = threading.Thread(target=send_on)
    sending.start()
    try:
        wide.command("migrate", SERVIOTICY_PARTITIONS=str(PARTITIONS + 2))
        until(lambda: added(wide, before), SECONDS_TO_RECOVER)
        after = Readers(wide, 8)
        assert after.partitions() >= {PARTITIONS, PARTITIONS + 1}
        watched = Watched(wide, after)
        after.send(1)
        until(lambda: watched.seen == [1], SECONDS_TO_RECOVER)
        after.send(30)  # of what was not there when it was asked for, nothing is in the history
        until(lambda: len(watched.seen) == after.sent, SECONDS_TO_RECOVER)
    finally:
        stop.set()
        sending.join()

    watched.stop.set()
    assert watched.seen == [*range(1, after.sent + 1)]
    after.assert_all_have_everything()
    before.assert_all_have_everything()


def added(platform: RunningPlatform, readers: Readers) -> bool:
    """Whether a Service Object that is made now is in a partition that has been added."""
    return max(readers.partitions_of([platform.create(DEVICE)])) >= PARTITIONS


class Watched:
    """What a socket has got of a reader's stream in one of the partitions that were added."""

    def __init__(self, platform: RunningPlatform, readers: Readers) -> None:
        self.seen: list[int] = []
        self.stop = threading.Event()
        reader = next(
            each for each in readers.readers if min(readers.partitions_of([each.id])) >= PARTITIONS
        )
        url = f"ws://127.0.0.1:{platform.live_port}"
        self._follower = Follower(url, StreamRef(reader.id, "copy"), reader.token, after=-1)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for frame in self._follower.updates(self.stop):
            self.seen.append(json.loads(frame)["lastUpdate"])
