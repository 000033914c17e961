"""A client that takes what it gets, however slowly, and one that does not."""

from __future__ import annotations

import asyncio

import pytest
from memory_transport import MemoryClient

from delivery.admission.requests import Admission
from delivery.backlog import Backlog
from delivery.endings import Ending
from delivery.fanout import LiveUpdate
from delivery.transport import WRITE_BUFFER_BYTES
from delivery.turns import Turns
from delivery.watcher import MAX_UNSENT_BYTES, STALL_SECONDS, Watcher
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import Position

STREAM = StreamRef("pump", "flow")


class SlowClient(MemoryClient):
    """It takes as many bytes as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = False
        self.taken = 0

    def unsent_bytes(self) -> int:
        return super().unsent_bytes() - self.taken


@pytest.fixture
def client() -> SlowClient:
    return SlowClient()


@pytest.fixture
def watcher(client: SlowClient) -> Watcher:
    admission = Admission(STREAM, 1, None, 1, False, 7, 0, "token", b"")
    return Watcher(client, admission, Backlog(10**9), Turns())


def offer(watcher: Watcher, size: int) -> None:
    watcher.offer(LiveUpdate(STREAM, LastUpdate(1, b"x" * size), 1, Position(0, 0), None))


def test_one_that_takes_a_byte_now_and_then_stays(watcher: Watcher, client: SlowClient) -> None:
    offer(watcher, 1000)
    for step in range(100):
        watcher.check_progress(step * (STALL_SECONDS - 1))
        client.taken += 1

    assert not client.is_cut_off


def test_one_that_is_given_more_than_it_takes_but_takes_stays(
    watcher: Watcher, client: SlowClient
) -> None:
    """What waits for it grows; it is the other limit that ends that."""
    for step in range(100):
        offer(watcher, 10)
        client.taken += 1
        watcher.check_progress(step * STALL_SECONDS)

    assert not client.is_cut_off


def test_one_that_takes_nothing_is_cut_in_time_and_not_before(
    watcher: Watcher, client: SlowClient
) -> None:
    for now in (0.0, 1.0, STALL_SECONDS - 0.5):
        offer(watcher, 10)
        watcher.check_progress(now)
    assert not client.is_cut_off

    watcher.check_progress(STALL_SECONDS)

    assert client.is_cut_off


def test_one_that_is_given_nothing_may_be_silent_for_ever(
    watcher: Watcher, client: SlowClient
) -> None:
    for step in range(100):
        watcher.check_progress(step * STALL_SECONDS)

    assert not client.is_cut_off


def test_exactly_so_much_may_be_unsent_and_not_a_byte_more(
    watcher: Watcher, client: SlowClient
) -> None:
    async def run() -> None:
        offer(watcher, MAX_UNSENT_BYTES)
        offer(watcher, 1)
        await asyncio.sleep(0)
        assert client.ending is None

        offer(watcher, 1)
        await asyncio.sleep(0)

        assert client.ending is Ending.READS_TOO_SLOWLY
        assert client.unsent_bytes() == MAX_UNSENT_BYTES + 1

    asyncio.run(run())


def test_what_is_unsent_counts_as_kept(watcher: Watcher, client: SlowClient) -> None:
    offer(watcher, 100)
    offer(watcher, 50)
    client.taken += 30

    assert watcher.kept_bytes() == 120


@pytest.mark.parametrize(
    ("unsent", "is_cut_off"), [(WRITE_BUFFER_BYTES, False), (WRITE_BUFFER_BYTES + 1, True)]
)
def test_one_that_is_dropped_is_told_or_cut_off_where_too_much_is_unsent(
    watcher: Watcher, client: SlowClient, unsent: int, is_cut_off: bool
) -> None:
    async def run() -> None:
        offer(watcher, unsent)
        watcher.drop()
        await asyncio.sleep(0)

        assert (client.ending, client.is_cut_off) == (Ending.OVER_BUDGET, is_cut_off)

    asyncio.run(run())


def test_only_the_first_reason_to_close_is_told(watcher: Watcher, client: SlowClient) -> None:
    async def run() -> None:
        watcher.close(Ending.FAILED)
        watcher.close(Ending.OVER_BUDGET)
        offer(watcher, 1)
        await asyncio.sleep(0)

        assert client.ending is Ending.FAILED
        assert not client.unsent

    asyncio.run(run())
