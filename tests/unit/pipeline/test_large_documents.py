"""While a large document is understood others are computed, and its tenant's updates wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memory import MemoryPlatform, partition_store
from oracle import Composite, Object
from put_off_runs import CODE, Runs, Whims, append
from serial_order import define, functions

from pipeline.batching import defining, late
from sandbox import argument_names
from servioticy.domain.records import DefinitionRecord
from servioticy.ports.effects import Activate
from servioticy.ports.partition_store import UNDERSTOOD_AT_ONCE

STREAMS = 40


class World:
    """A tenant whose document is large, and another one."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform()
        self.state = self.platform.state
        tenants = self.platform.tenants
        self.large, self.small = (
            tenants.tenant_of(tenants.create_tenant(name)) or 0 for name in ("large", "small")
        )
        things = [
            Object("large", ("d0",), tuple(composite(n) for n in range(STREAMS))),
            Object("small", ("d0",), (composite(0),)),
        ]
        codes = {(each.id, c.name): CODE for each in things for c in each.composites}
        for each, tenant in zip(things, (self.large, self.small), strict=True):
            define(each, codes, tenant, self.platform)
        self.shares = Whims([])
        self.runs = Runs(self.platform, {"javascript": functions(things)}, self.shares, {})

    def take(self, first: int, end: int) -> None:
        """Let the task take these rows of the log."""
        self.runs.take(first, end)

    def stored(self, id_: str) -> list[int]:
        names = {number: ref for ref, number in self.state.streams.items()}
        rows = [row for _partition, row in self.state.updates.values()]
        return sorted(row.timestamp for row in rows if names[row.stream_id] == (id_, "c0"))

    def in_force(self) -> set[str]:
        objects = self.state.service_objects
        return {id_ for id_, each in objects.items() if each.active_version is not None}


def composite(number: int) -> Composite:
    return Composite(f"c{number}", ("d0",), lambda values: values[0])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    sizes = {id_: len(text) for (id_, _version), text in made.state.definitions.items()}
    monkeypatch.setattr(partition_store, "UNDERSTOOD_AT_ONCE", sizes["small"])
    monkeypatch.setattr(defining, "CONTESTED_DOCUMENTS_BYTES", sizes["small"])
    monkeypatch.setattr(late, "CONTESTED_SECONDS", 0.0)
    assert sizes["large"] > sizes["small"]
    return made


def test_others_are_computed_while_it_is_understood(world: World) -> None:
    append(world.platform, [((id_, "d0"), at, at) for at in (1, 2) for id_ in ("large", "small")])
    end = len(world.state.log[0])

    world.take(0, end)

    assert world.in_force() == {"small"}
    assert (world.stored("small"), world.stored("large")) == ([1, 2], [])
    append(world.platform, [(("small", "d0"), 3, 3)])
    world.take(end, end + 1)
    assert (world.stored("small"), world.in_force()) == ([1, 2, 3], {"small"})

    world.runs.finish()

    assert world.in_force() == {"small", "large"}
    assert world.stored("large") == [1, 2]
    assert not world.state.dead_letters


def test_it_takes_a_turn_for_each_pause_and_then_effect(world: World) -> None:
    store = world.platform.partition_store(argument_names)
    change = world.state.service_objects["large"].active_change + 1
    pauses = sum(1 for _ in store.understanding(Activate("large", 1, change)) or ())
    world.take(0, 2)

    turns = 0
    while "large" not in world.in_force():
        world.take(2, 2)
        turns += 1

    assert pauses > STREAMS
    assert pauses // 2 < turns <= pauses + 2


def test_where_nobody_else_is_active_it_takes_effect_at_once(world: World) -> None:
    world.shares.contested = False

    world.take(0, 2)

    assert world.in_force() == {"small", "large"}
    assert not world.state.put_off


def test_a_later_version_that_comes_meanwhile_follows_it(world: World) -> None:
    """Both are put off, and each is understood in its turn."""
    world.take(0, 2)
    world.take(2, 2)
    text = world.state.definitions["large", 1]
    world.state.definitions["large", 2] = text + b" " * UNDERSTOOD_AT_ONCE
    world.platform.log.append(0, DefinitionRecord("large", 2, 99))

    world.take(2, 3)
    assert "large" not in world.in_force()
    world.runs.finish()

    assert world.state.service_objects["large"].active_version == 2


def test_what_is_begun_is_begun_anew_after_a_death(world: World) -> None:
    world.take(0, 2)
    world.take(2, 2)

    world.runs.task = world.runs._new()
    world.runs.finish()

    assert world.in_force() == {"small", "large"}


def test_one_that_was_deleted_meanwhile_is_not_understood(world: World) -> None:
    store = world.platform.partition_store(argument_names)

    assert store.understanding(Activate("nothing", 1, 1)) is None
