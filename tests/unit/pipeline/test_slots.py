"""Who is quick finds a place, however many are slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from waiting import until

from pipeline.batching.slots import QUICK_SECONDS, Slots, threads_for

PROCESSORS = 2


class World:
    """Jobs that end when they are let go, and a clock that is set."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.now = 0.0
        self.running: list[str] = []
        self.gates: dict[str, Event] = {}
        self.woken = 0
        self.slots = Slots[str](executor, PROCESSORS, lambda: self.now, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def give(self, name: str, *, slow: bool = False) -> None:
        gate = self.gates[name] = Event()
        self.slots.give(name, self._job(name, gate), is_slow=slow)

    def _job(self, name: str, gate: Event) -> Callable[[], str]:
        def job() -> str:
            self.running.append(name)
            assert gate.wait(60)
            self.running.remove(name)
            return name

        return job

    def run(self, *names: str) -> None:
        """These run, and no others."""
        until(lambda: set(self.running) == set(names))
        self.slots.wait(0.01)
        assert set(self.running) == set(names)

    def end(self, name: str) -> None:
        self.gates[name].set()
        until(lambda: name not in self.running)
        found: list[str] = []
        until(lambda: bool(found.extend(o for o, _f in self.slots.ended())) or name in found)


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(threads_for(PROCESSORS)) as executor:
        made = World(executor)
        yield made
        for each in made.gates.values():
            each.set()


def test_as_many_at_once_as_there_are_processors(world: World) -> None:
    for name in ("a", "b", "c"):
        world.give(name)
    world.run("a", "b")
    world.end("a")
    world.run("b", "c")


def test_what_goes_on_for_longer_leaves_its_place_to_others(world: World) -> None:
    for name in ("a", "b", "c", "d"):
        world.give(name)
    world.run("a", "b")
    world.now = QUICK_SECONDS
    world.slots.ended()
    world.run("a", "b", "c", "d")


def test_what_is_known_to_be_slow_has_places_of_its_own(world: World) -> None:
    """One less than there are processors: who is quick has one at once."""
    for name in ("a", "b"):
        world.give(name, slow=True)
    world.run("a")
    world.give("quick")
    world.run("a", "quick")
    world.end("a")
    world.run("b", "quick")


def test_there_is_an_end_to_what_turned_out_to_be_slow(world: World) -> None:
    names = [f"n{number}" for number in range(threads_for(PROCESSORS) + 2)]
    for name in names:
        world.give(name)
        world.now += QUICK_SECONDS
        world.slots.ended()
    world.run(*names[: threads_for(PROCESSORS)])
    world.end(names[0])
    world.run(*names[1 : threads_for(PROCESSORS) + 1])


def test_who_waits_here_is_told_here_and_else_elsewhere(world: World) -> None:
    world.give("a")
    world.run("a")
    world.gates["a"].set()
    until(lambda: not world.running)
    world.slots.wait(60.0)
    assert [owner for owner, _future in world.slots.ended()] == ["a"]

    before = world.woken
    world.give("b")
    world.end("b")
    until(lambda: world.woken > before)


def test_nothing_comes_of_what_is_dropped(world: World) -> None:
    for name in ("a", "b", "c"):
        world.give(name)
    world.run("a", "b")
    for name in ("a", "c"):
        world.slots.drop(name)
    world.gates["a"].set()
    world.end("b")
    assert world.slots.ended() == []
