"""Who calls with actuations: one process, one call after the other, and not in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from support.memory_actuations import MemoryActuations

from delivery import repeating
from delivery.actuations import couriers
from delivery.actuations.couriers import Couriers
from delivery.callbacks.http_client import AttemptResult
from delivery.callbacks.requests import CallbackForm, Outgoing
from servioticy.domain.actuations import State
from servioticy.domain.feed_slots import SLOTS, of_tenant, slot_of
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import CalledBack
from servioticy.ports.cursors import Claim

LAMP, PUMP = ServiceObjectKey(1, "lamp"), ServiceObjectKey(2, "pump")
T = TypeVar("T")


class World:
    """A store, and receivers that answer as a test says."""

    def __init__(self) -> None:
        self.store = MemoryActuations()
        self.claim = Claim("own", frozenset(range(SLOTS)), frozenset(), SLOTS)
        self.called: list[str] = []
        self.forms: list[CallbackForm] = []
        self.answers: list[int] = []
        """Of the next calls; then 200."""
        self.before_answer: Callable[[], None] = lambda: None
        self.couriers = Couriers(
            self.store, self, self.ask, lambda: self.claim, lambda: 1.0, self.sleep
        )

    def submit(self, key: ServiceObjectKey, *ids: str) -> None:
        for each in ids:
            self.store.submit(key, each, 1_000, 60_000)

    async def attempt(self, tenant: int, form: CallbackForm, sent: Outgoing) -> AttemptResult:
        self.called.append(sent.id)
        self.forms.append(form)
        await asyncio.sleep(0)
        self.before_answer()
        return AttemptResult(self.answers.pop(0) if self.answers else 200, "as told")

    async def ask(self, _tenant: int, call: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return call()

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)

    async def settle(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)

    def states(self) -> list[State]:
        return [each.state for each in self.store.kept.values()]


def run(work: Callable[[World], Any]) -> None:
    async def inside() -> None:
        world = World()
        await work(world)
        await world.couriers.stop()

    asyncio.run(inside())


def test_who_stands_by_calls_nobody() -> None:
    async def work(world: World) -> None:
        world.submit(LAMP, "1")
        world.submit(PUMP, "2")
        every = world.claim
        world.claim = every._replace(slots=frozenset({slot_of(of_tenant(PUMP.tenant), SLOTS)}))
        world.couriers.wake([LAMP])
        await world.couriers.look()
        await world.settle()
        assert world.called == ["2"], "of its tenants alone"

        world.claim = every
        await world.couriers.look()
        await world.settle()
        assert world.called == ["2", "1"]

    run(work)


def test_between_attempts_a_tenant_may_go_to_another_process() -> None:
    """Which calls with what waits; when it comes back, it goes on here."""

    async def work(world: World) -> None:
        every = world.claim

        def lose() -> None:
            world.claim = every._replace(slots=frozenset())

        world.submit(LAMP, "1")
        world.answers, world.before_answer = [503], lose
        world.couriers.wake([LAMP])
        await world.settle()
        assert world.called == ["1"]
        assert not world.couriers._running

        world.claim, world.before_answer = every, lambda: None
        await world.couriers.look()
        await world.settle()
        assert world.called == ["1", "1"]
        assert world.states() == [State.DELIVERED]

    run(work)


def test_what_comes_while_the_last_one_is_called_with_is_not_forgotten() -> None:
    async def work(world: World) -> None:
        world.submit(LAMP, "1")

        def more() -> None:
            if len(world.store.kept) < 5:
                world.submit(LAMP, f"{len(world.store.kept) + 1}")
                world.couriers.wake([LAMP])

        world.before_answer = more
        world.couriers.wake([LAMP])
        await world.settle()

        assert world.called == ["1", "2", "3", "4", "5"]
        assert set(world.states()) == {State.DELIVERED}

    run(work)


def test_what_another_way_has_delivered_is_not_called_with_again() -> None:
    async def work(world: World) -> None:
        world.submit(LAMP, "1", "2")
        world.answers = [503]
        world.before_answer = lambda: world.store.report("1", "done", 1_000)
        world.couriers.wake([LAMP])
        await world.settle()

        assert world.called == ["1", "2"]
        assert world.states()[0] is State.DONE

    run(work)


def test_between_attempts_the_document_is_asked_where_to_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A receiver that has moved, or has another secret, is not called in vain to the end."""

    async def work(world: World) -> None:
        told = [
            CalledBack({"destination": "http://old/"}, [{"secret": "one"}]),
            CalledBack({"destination": "http://new/"}, [{"secret": "one"}]),
            CalledBack({"destination": "http://new/"}, [{"secret": "two"}]),
        ]
        monkeypatch.setattr(world.store, "callback", lambda _key: told[min(len(world.called), 2)])
        world.submit(LAMP, "1")
        world.answers = [503, 503]
        world.couriers.wake([LAMP])
        await world.settle()

        urls = [each.url for each in world.forms]
        secrets = [each["secret"] for form in world.forms for each in form.secrets]
        assert (urls, secrets) == (
            ["http://old/", "http://new/", "http://new/"],
            ["one", "one", "two"],
        )

    run(work)


def test_who_names_nobody_any_more_is_not_called_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(world: World) -> None:
        names = [CalledBack({"destination": "http://old/"}, [])]
        monkeypatch.setattr(world.store, "callback", lambda _key: names[0] if names else None)
        world.submit(LAMP, "1")
        world.answers = [503]
        world.before_answer = names.clear
        world.couriers.wake([LAMP])
        await world.settle()

        assert world.called == ["1"]
        assert world.states() == [State.SENT]  # who is connected may get it still

    run(work)


def test_a_store_that_is_away_is_asked_again() -> None:
    async def work(world: World) -> None:
        world.submit(LAMP, "1")
        world.submit(PUMP, "2")
        world.store.is_away = True
        world.couriers.wake([LAMP, PUMP])
        await world.settle()
        assert not world.called

        world.store.is_away = False
        await world.settle()
        assert sorted(world.called) == ["1", "2"]

    run(work)


def test_a_look_that_fails_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it meets: what waits from before is found by nothing else."""
    monkeypatch.setattr(couriers, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.0)

    async def work(world: World) -> None:
        world.submit(LAMP, "1")
        calling, failures = world.store.calling, [ValueError("a bug"), KeyError("another")]

        def failing(now: int) -> Any:
            if failures:
                raise failures.pop()
            return calling(now)

        monkeypatch.setattr(world.store, "calling", failing)
        world.couriers.start()
        await world.settle()

        assert world.called == ["1"]

    run(work)
    assert [each.message for each in caplog.records] == ["actuations_failed"] * 2
