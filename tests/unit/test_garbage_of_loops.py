"""What clients hold is looked through seldom, and garbage goes all the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from servioticy.garbage import GROWN_BYTES, PART, PART_WHEN_GROWN, PAUSE_SECONDS, Garbage

TOOK = 0.5


class Ground:
    """How often everything was looked through, memory, and a clock."""

    def __init__(self) -> None:
        self.looked = 0
        self.used = 0
        self.now = 100.0
        self.garbage = Garbage(self.collect, lambda: self.used, lambda: self.now)

    def collect(self) -> None:
        self.looked += 1
        self.now += TOOK

    def after(self, seconds: float) -> int:
        self.now += seconds
        self.garbage.look()
        return self.looked


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_everything_is_looked_through_in_a_thousandth_of_the_time(ground: Ground) -> None:
    assert ground.after(PAUSE_SECONDS - 1) == 0
    assert ground.after(1) == 1
    assert ground.after(TOOK / PART - 1) == 1
    assert ground.after(1) == 2


def test_it_is_sooner_where_much_more_memory_is_used_and_not_on_and_on(ground: Ground) -> None:
    ground.used = GROWN_BYTES
    assert ground.after(1) == 0
    ground.used += 1
    assert ground.after(1) == 1

    ground.used *= 3
    assert ground.after(TOOK / PART_WHEN_GROWN - 1) == 1
    assert ground.after(1) == 2


PROGRAM = """
import asyncio, gc
from servioticy import garbage

class Held:
    alive = 0
    def __init__(self):
        Held.alive += 1
        self.me = self
    def __del__(self):
        Held.alive -= 1

through_all = []

def looks(phase, told):
    if told["generation"] == 2:
        through_all.append(phase)

gc.callbacks.append(looks)

async def run():
    garbage.Garbage().start()
    through_all.clear()
    kept = []
    for number in range(300_000):
        kept.append([Held(), {number: []}])
        if number % 3 == 0:
            kept.pop()
    assert not through_all, "in the middle of what is done"
    assert Held.alive < 250_000, "what is young goes"
    kept.clear()
    assert Held.alive > 100_000
    await asyncio.sleep(0.1)
    assert Held.alive == 0, Held.alive

garbage.LOOK_SECONDS, garbage.GROWN_BYTES = 0.01, 0
asyncio.run(run())
"""


def test_it_goes_on_looking_where_a_look_has_failed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd of connections takes all files, and its own size cannot be read: until it goes."""
    monkeypatch.setattr("servioticy.garbage.LOOK_SECONDS", 0.001)
    tried = 0

    def memory() -> int:
        nonlocal tried
        tried += 1
        raise OSError("too many open files")

    async def run() -> None:
        ground.garbage._memory = memory
        ground.garbage._later()
        await asyncio.sleep(0.1)

    asyncio.run(run())
    assert tried > 1


def test_a_program_looks_where_it_does_nothing_and_all_goes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
