"""Garbage is looked for between batches, and everything seldom."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.spark.garbage import FAR_TOO_MANY, OLD, PART, YOUNG, Garbage


class Ground:
    """What Python counts, what was looked through, and a clock."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0]
        self.looked: list[int] = []
        self.now = 100.0
        self.given_back = 0
        self.garbage = Garbage(
            lambda: tuple(self.counts), self.collect, lambda: self.now, self.trim
        )

    def trim(self) -> None:
        self.given_back += 1

    def collect(self, generation: int) -> None:
        self.looked.append(generation)
        self.now += 0.5
        self.counts[: generation + 1] = [0] * (generation + 1)
        if generation < 2:
            self.counts[generation + 1] += 1

    def look(self, young: int, *, computing: bool = False) -> list[int]:
        """How far it was looked, with so many objects more than before."""
        self.looked.clear()
        self.counts[0] = young
        self.garbage.look(computing=computing)
        return list(self.looked)


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_it_is_looked_for_when_many_have_come_to_stay(ground: Ground) -> None:
    assert ground.look(YOUNG - 1) == []
    assert ground.look(YOUNG) == [1], "who stays is old from then on"


def test_what_is_being_computed_is_not_looked_through(ground: Ground) -> None:
    assert ground.look(FAR_TOO_MANY - 1, computing=True) == []
    assert ground.look(FAR_TOO_MANY, computing=True) == [1]


def test_older_ones_are_looked_through_seldom_and_all_in_a_hundredth_of_the_time(
    ground: Ground,
) -> None:
    found = [each for _ in range(2 * (OLD + 1)) for each in ground.look(YOUNG)]
    assert found.count(2) == 1, "the second time would be too soon"
    assert found[: OLD + 1] == [1] * OLD + [2]

    ground.now += 0.5 / PART
    ground.counts[2] = OLD
    assert ground.look(YOUNG) == [2]


CYCLES = """
import gc
from pipeline.spark.garbage import Garbage

class Held:
    alive = 0
    def __init__(self):
        Held.alive += 1
        self.me = self
    def __del__(self):
        Held.alive -= 1

garbage = Garbage()
garbage.begin()
assert not gc.isenabled()
most = 0
for _ in range(200_000):
    Held()
    garbage.look(computing=False)
    most = max(most, Held.alive)
print(most)
"""


def test_cycles_do_not_stay_for_ever() -> None:
    found = subprocess.run(
        [sys.executable, "-c", CYCLES], capture_output=True, text=True, check=True
    )
    assert 1000 < int(found.stdout) <= YOUNG


def test_memory_of_what_was_forgotten_is_given_back_for_a_part_of_the_time(ground: Ground) -> None:
    """What is forgotten too soon after the last time goes with the next."""
    ground.garbage.give_back(0)
    assert ground.looked == []

    ground.garbage.give_back(5)
    assert (ground.looked, ground.given_back) == ([2], 1)

    ground.garbage.give_back(5)
    assert ground.given_back == 1
    ground.now += 0.5 / PART
    ground.garbage.give_back(0)
    assert (ground.looked, ground.given_back) == ([2, 2], 2)


def test_what_was_freed_goes_back_to_the_system() -> None:
    """In a process of its own: the memory of one that tests is not its own alone."""
    code = (
        "from servioticy.garbage import memory_given_back, resident_bytes\n"
        "kept = [bytes(100_000) for _ in range(1_000)]\n"
        "last, kept = kept[-1], None\n"
        "before = resident_bytes(); memory_given_back()\n"
        "print(before - resident_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) > 50_000_000
