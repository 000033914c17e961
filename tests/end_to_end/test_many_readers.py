"""A popular public stream: who reads it is computed in every partition, and misses nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


@pytest.fixture(scope="module")
def readers(wide: RunningPlatform) -> Readers:
    """In each of the partitions that are there from the beginning."""
    return Readers(wide, READERS)


@pytest.mark.timeout(1800)
def test_all_readers_have_every_value_once_and_in_order_though_workers_are_killed(
    wide: RunningPlatform, readers: Readers
) -> None:
    """The others' partitions go on beside; and both sides are told of the use."""
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
    before = Readers(wide, 4)
    with sending(before):
        wide.command("migrate", SERVIOTICY_PARTITIONS=str(PARTITIONS + 2))
        until(lambda: added(wide, before), SECONDS_TO_RECOVER)
        after = Readers(wide, 8)
        assert after.partitions() >= {PARTITIONS, PARTITIONS + 1}
        watched = Watched(wide, after)
        after.send(1)
        until(lambda: watched.seen == [1], SECONDS_TO_RECOVER)
        after.send(30)  # of what was not there when it was asked for, nothing is in the history
        until(lambda: len(watched.seen) == after.sent, SECONDS_TO_RECOVER)

    watched.stop.set()
    assert watched.seen == [*range(1, after.sent + 1)]
    after.assert_all_have_everything()
    before.assert_all_have_everything()


@pytest.mark.timeout(1800)
def test_what_is_there_is_spread_over_partitions_while_traffic_runs(
    wide: RunningPlatform, readers: Readers
) -> None:
    """Readers go on in their order wherever they are computed, and miss nothing; nor does the
    device that sends without a pause, wherever it moves itself (decision 0160)."""
    wide.command("migrate", SERVIOTICY_PARTITIONS=str(PARTITIONS + 2))
    until(lambda: added(wide, readers), SECONDS_TO_RECOVER)
    with sending(readers):
        until(lambda: bool(rebalanced(wide, "--plan")["moves"]), SECONDS_TO_RECOVER)
        moved = rebalanced(wide, "--moves", "6")["moved"]
        there = {each["serviceObject"]: each["to"] for each in moved}
        assert set(there) & {readers.device, *(each.id for each in readers.readers)}
        for id_, to in there.items():
            until(lambda id_=id_, to=to: readers.partitions_of([id_]) == {to}, SECONDS_TO_RECOVER)
        sent = readers.sent
        until(lambda: readers.sent >= sent + 10, SECONDS_TO_RECOVER)

    stayed = [each.id for each in readers.readers if each.id not in there]
    readers.assert_all_have_everything(stayed[4:])
    assert readers.partitions() & {PARTITIONS, PARTITIONS + 1}


def rebalanced(platform: RunningPlatform, *options: str) -> dict[str, Any]:
    """What the command tells of what it has moved, or would move."""
    found: dict[str, Any] = json.loads(platform.command("rebalance", "--json", *options).stdout)
    return found


@contextmanager
def sending(readers: Readers) -> Iterator[None]:
    """The device sends on meanwhile, one update after the other."""
    stop = threading.Event()

    def send_on() -> None:
        while not stop.is_set():
            readers.send(1)

    thread = threading.Thread(target=send_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


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
