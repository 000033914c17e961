"""The lane of updates: what waits is taken together, under load what comes a little later, too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from api.edge import threads
from api.edge.pools import Job
from api.edge.threads import Lane
from servioticy import gathering


class Taken:
    """What a lane takes together, batch by batch; it goes on when it may."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_go_on = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)

    def together(self, requests: list[int]) -> list[int]:
        self.batches.append(requests)
        self.begun.release()
        self.may_go_on.acquire()
        return requests


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    found = asyncio.new_event_loop()
    yield found
    found.close()


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def lane(taken: Taken, loop: asyncio.AbstractEventLoop) -> Iterator[Lane]:
    found = Lane("lane", loop, taken.together, lambda _job: None)
    yield found
    taken.may_go_on.release(9)
    found.stop()


def job(number: int) -> Job:
    return Job("me", lambda: None, lambda _: None, request=number)


def test_what_waits_is_taken_together(lane: Lane, taken: Taken) -> None:
    lane.start(job(0))
    taken.begun.acquire()
    for number in (1, 2, 3):
        lane.start(job(number))
    taken.may_go_on.release()
    taken.begun.acquire()

    assert taken.batches == [[0], [1, 2, 3]]


def test_after_several_what_comes_a_little_later_comes_along(
    lane: Lane, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_TOGETHER", 1)  # two: then nobody waits any longer
    monkeypatch.setattr(gathering, "LONGEST_SECONDS", 10.0)
    monkeypatch.setattr(gathering, "PART", 1e9)
    lane.start(job(0))
    taken.begun.acquire()
    for number in (1, 2, 3):
        lane.start(job(number))
    taken.may_go_on.release()
    taken.begun.acquire()
    threading.Timer(0.05, lane.start, (job(4),)).start()
    taken.may_go_on.release()
    taken.begun.acquire()

    assert taken.batches == [[0], [1, 2], [3, 4]]
