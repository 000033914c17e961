"""Whose process is ended where there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sandbox.host.exclusion import Exclusion
from sandbox.host.usage import ProcessorSeconds, Usage
from sandbox.host.workers import MAX_TENANTS, TOGETHER_SECONDS, Workers

IDLE_SECONDS = 60.0


@dataclass
class Client:
    """Stands for a process."""

    last_used: float

    def alive(self) -> bool:
        return True

    def full(self) -> bool:
        return False

    def kill(self) -> None:
        pass

    def take_used(self) -> ProcessorSeconds:
        return ProcessorSeconds()


@dataclass
class World:
    """Two places for processes, and a clock."""

    now: float = 1000.0
    exclusion: Exclusion = field(default_factory=Exclusion)
    started: int = 0

    def __post_init__(self) -> None:
        self.workers = Workers(
            cast(Any, self), Usage(), self.exclusion, 2, IDLE_SECONDS, lambda: self.now
        )

    def take(self) -> Client:
        self.started += 1
        return Client(self.now)

    def come(self, *tenants: str, after: float = 1.0) -> set[str]:
        """Each in turn has its process used; whose there are then."""
        with self.exclusion:
            for tenant in tenants:
                self.now += after
                self.workers.of(tenant).last_used = self.now
        return set(self.workers)


@pytest.fixture
def world() -> World:
    return World()


def test_who_comes_often_keeps_its_process(world: World) -> None:
    world.come("often", "often")
    for number in range(10):
        assert world.come(f"once {number}") == {"often", f"once {number}"}


def test_who_has_come_often_but_long_ago_gives_way(world: World) -> None:
    world.come("before", "before", "now", "now")

    assert world.come("new") == {"now", "new"}


def test_of_those_who_came_once_the_longest_unused_gives_way(world: World) -> None:
    assert world.come("a", "b", "c") == {"b", "c"}


@pytest.mark.parametrize(("apart", "stays"), [(0.9, "b"), (1.1, "a")])
def test_several_frames_of_one_piece_are_one_use(world: World, apart: float, stays: str) -> None:
    world.come("a", "a", after=apart * TOGETHER_SECONDS)

    assert world.come("b", "c") == {stays, "c"}


def test_it_is_known_of_whose_process_has_been_ended_when_they_came(world: World) -> None:
    world.come("often", "often", "more", "more", "often 2", "often 2")
    assert world.come("often") == {"often 2", "often"}


def test_who_is_idle_gives_way_first_however_often_it_came(world: World) -> None:
    world.come("often", "often", "often")
    world.come("once", after=IDLE_SECONDS + 1)

    assert world.come("new") == {"once", "new"}
    assert world.started == 3


def test_what_idle_ones_were_told_is_forgotten_though_nobody_comes(world: World) -> None:
    world.come("a", "b")
    world.now += IDLE_SECONDS - 0.5  # "b" came a second after "a"

    assert world.workers.end_idle() == 1
    assert set(world.workers) == {"b"}
    with world.exclusion, world.exclusion.of("b"):
        world.now += IDLE_SECONDS
        assert world.workers.end_idle() == 0
    assert world.workers.end_idle() == 1
    assert not world.workers


def test_whose_turn_it_is_is_not_ended(world: World) -> None:
    world.come("a", "b")
    with world.exclusion, world.exclusion.of("a"):
        world.now += 1
        world.workers.of("c")

    assert set(world.workers) == {"a", "c"}


def test_of_so_many_it_is_known_when_they_came(world: World) -> None:
    world.come(*(str(number) for number in range(MAX_TENANTS + 10)))

    assert len(world.workers._uses) == MAX_TENANTS
