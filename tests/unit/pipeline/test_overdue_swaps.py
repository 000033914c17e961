"""A backfill that takes its place does not stay half done, nor in the way of its own tenant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from memory import MemoryPlatform
from memory.partition_store import MemoryPartitionStore
from oracle import Composite, Object
from put_off_runs import CODE, Runs, Whims, append
from serial_order import define, functions

from pipeline.batching import late
from pipeline.changes import slices
from pipeline.state.decided import Decided
from servioticy.domain.records import BackfillRecord

SLICES = 20


class World:
    """A tenant whose backfill takes a turn for each slice, and is over its share from then on."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform()
        tenants = self.platform.tenants
        self.tenant = tenants.tenant_of(tenants.create_tenant("one")) or 0
        thing = Object("so", ("d0",), (Composite("c0", ("d0",), lambda values: values[0]),))
        define(thing, {("so", "c0"): CODE}, self.tenant, self.platform)
        self.shares = Whims([])
        self.runs = Runs(self.platform, {"javascript": functions([thing])}, self.shares, {})
        self.begun = self.done = self.given_up = 0

    def swapped(self, _store: Any, _job: str, *, at_once: bool) -> Iterator[None]:
        if self.done:
            return
        self.begun += 1
        try:
            for _ in range(SLICES):
                yield
        except GeneratorExit:
            self.given_up += 1
            raise
        self.done += 1

    def take(self) -> None:
        """Let the task take what is new, and have a turn of its own."""
        progress = self.platform.state.progress.get(0)
        self.runs.take(progress.next_offset if progress else 0, len(self.platform.state.log[0]))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(late, "CONTESTED_SECONDS", 0.0)
    monkeypatch.setattr(
        MemoryPartitionStore, "swapped", lambda store, job, **how: made.swapped(store, job, **how)
    )
    made.take()
    made.platform.log.append(0, BackfillRecord("so", "job"))
    while not made.begun:
        made.take()
    made.shares.always = {made.tenant}
    return made


def test_one_that_is_open_for_too_long_has_each_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tenant's share is used up, and stays so."""
    for _ in range(3 * SLICES):
        world.take()
    assert (world.begun, world.done) == (1, 0)

    monkeypatch.setattr(slices, "OVERDUE_SECONDS", 0.0)
    for _ in range(SLICES):
        world.take()

    assert (world.begun, world.done, world.given_up) == (1, 1, 0)
    assert not world.platform.state.dead_letters


def test_what_subscribers_know_already_has_it_begin_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is not put off behind it, and what is stored of it would wait for its rows."""
    answers = iter([True])
    monkeypatch.setattr(Decided, "begins", lambda _self, _offset: True)
    monkeypatch.setattr(Decided, "covers", lambda _self, *_place: next(answers, False))
    append(world.platform, [(("so", "d0"), 1, 1)])
    world.take()

    assert (world.begun, world.given_up) == (1, 1)
    world.shares.always = set()
    world.runs.finish()
    assert (world.begun, world.done) == (2, 1)
    rows = [row.timestamp for _partition, row in world.platform.state.updates.values()]
    assert set(rows) == {1}
