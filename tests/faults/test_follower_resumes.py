"""Who follows a stream misses nothing and gets nothing twice when connections are cut."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from running_delivery import INNOCENT, RunningDelivery

from servioticy.client import AsyncFollower, Follower
from servioticy.domain.model import StreamRef

STREAM = StreamRef("pump", "flow")
SECONDS = 30.0

Following = Callable[[str, int], "contextmanager[queue.Queue[str]]"]


@contextmanager
def with_a_thread(url: str, after: int) -> Iterator[queue.Queue[str]]:
    frames: queue.Queue[str] = queue.Queue()
    stop = threading.Event()

    def follow() -> None:
        for frame in Follower(url, STREAM, INNOCENT, after).updates(stop):
            frames.put(frame)

    thread = threading.Thread(target=follow)
    thread.start()
    yield frames
    stop.set()
    thread.join(SECONDS)
    assert not thread.is_alive()


@contextmanager
def with_a_task(url: str, after: int) -> Iterator[queue.Queue[str]]:
    frames: queue.Queue[str] = queue.Queue()
    loops: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = queue.Queue()

    async def follow() -> None:
        async for frame in AsyncFollower(url, STREAM, INNOCENT, after).updates():
            frames.put(frame)

    async def run() -> None:
        task = asyncio.create_task(follow())
        loops.put((asyncio.get_running_loop(), task))
        await asyncio.wait([task])
        assert task.cancelled()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    yield frames
    loop, task = loops.get(timeout=SECONDS)
    loop.call_soon_threadsafe(task.cancel)
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize("following", [with_a_thread, with_a_task])
def test_a_stream_is_followed_over_cuts_without_a_gap(following: Following) -> None:
    """What is stored while nobody listens comes when the connection is open again."""
    with RunningDelivery() as running:
        running.history.updates = 3
        with following(f"ws://127.0.0.1:{running.port}", 0) as frames:
            got = [times(frames, 3)]
            for stored in (5, 9):
                running.history.updates = stored
                running.until(lambda: running.sockets == 1)
                running.until(lambda: not running.hub.reception.pending.abort_all())
                got.append(times(frames, stored - sum(map(len, got))))

            assert got == [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
            assert frames.empty()


def times(frames: queue.Queue[str], count: int) -> list[int]:
    return [json.loads(frames.get(timeout=SECONDS))["lastUpdate"] for _ in range(count)]
