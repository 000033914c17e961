"""Few calls at once, and an owner with many waits for its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from delivery.admission.fair_executor import FairExecutor
from delivery.admission.owner_semaphore import SemaphoreFull


class Store:
    """Answers one question at a time, when told to, and notes in which order."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.may_answer = threading.Semaphore(0)

    def question(self, name: str) -> Callable[[], str]:
        def ask() -> str:
            self.may_answer.acquire()
            self.answered.append(name)
            return name

        return ask


async def settle() -> None:
    """Let every task get as far as it can by itself."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_one_question_waits_for_one_of_a_flood_not_for_all() -> None:
    async def run() -> list[str]:
        store, executor = Store(), FairExecutor("test", 1)
        flood = [asyncio.create_task(executor.run("a", store.question("a"))) for _ in range(50)]
        await settle()
        honest = asyncio.create_task(executor.run("b", store.question("b")))
        await settle()
        store.may_answer.release(51)
        await asyncio.gather(honest, *flood)
        return store.answered

    assert asyncio.run(run()).index("b") <= 2


def test_never_more_at_once_than_allowed() -> None:
    async def run() -> int:
        most, now, lock = 0, 0, threading.Lock()
        executor = FairExecutor("test", 3)

        def question() -> None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            with lock:
                now -= 1

        await asyncio.gather(*(executor.run(each % 4, question) for each in range(200)))
        return most

    assert 1 <= asyncio.run(run()) <= 3


def test_the_queue_is_bounded_for_each_and_in_all() -> None:
    """One is asked, so many wait; the next is told so at once."""

    async def run() -> tuple[bool, bool]:
        store, executor = Store(), FairExecutor("test", 1, max_waiting=3, max_waiting_each=2)
        tasks = [asyncio.create_task(executor.run("a", store.question("a"))) for _ in range(3)]
        await settle()
        with pytest.raises(SemaphoreFull) as own:
            await executor.run("a", store.question("a"))
        tasks.append(asyncio.create_task(executor.run("b", store.question("b"))))
        await settle()
        with pytest.raises(SemaphoreFull) as everybody:
            await executor.run("b", store.question("b"))
        store.may_answer.release(4)
        await asyncio.gather(*tasks)
        return own.value.own, everybody.value.own

    assert asyncio.run(run()) == (True, False)


def test_who_does_not_wait_any_longer_frees_its_place_but_not_the_thread() -> None:
    """A store that hangs must not get ever more questions from those who gave up."""

    async def run() -> list[str]:
        store, executor = Store(), FairExecutor("test", 1, max_waiting=1)
        asked = asyncio.create_task(executor.run("a", store.question("asked")))
        waiting = asyncio.create_task(executor.run("a", store.question("waiting")))
        await settle()
        asked.cancel()
        waiting.cancel()
        await settle()
        later = asyncio.create_task(executor.run("b", store.question("later")))
        await settle()

        assert not later.done()  # the thread still works on what nobody waits for
        store.may_answer.release(2)
        await later
        return store.answered

    assert asyncio.run(run()) == ["asked", "later"]


def test_a_turn_that_comes_while_its_asker_goes_is_passed_on() -> None:
    async def run() -> str:
        executor = FairExecutor("test", 1)
        go = threading.Event()
        first = asyncio.create_task(executor.run("a", go.wait))
        second = asyncio.create_task(executor.run("a", lambda: "second"))
        third = asyncio.create_task(executor.run("b", lambda: "third"))
        await settle()
        first.add_done_callback(lambda _: second.cancel())
        go.set()
        return await asyncio.wait_for(third, 10)

    assert asyncio.run(run()) == "third"


def test_an_error_is_the_askers_and_ends_the_turn() -> None:
    async def run() -> int:
        executor = FairExecutor("test", 1)
        with pytest.raises(ZeroDivisionError):
            await executor.run("a", lambda: 1 // 0)
        return await executor.run("a", lambda: 7)

    assert asyncio.run(run()) == 7
