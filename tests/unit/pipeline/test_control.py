"""Control records by themselves: what each brings about, in the store and in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from engine_builders import document
from memory import MemoryPlatform
from memory.state import ProgressRow
from oracle import Object
from serial_order import define

from pipeline.changes.control import Control
from pipeline.state.partition import Partition
from sandbox import argument_names
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    ReleaseRecord,
)
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, Delete, Effect, Erase, Release
from servioticy.ports.put_off import PutOff, TreeKey

REF = StreamRef("so", "d")


class World:
    """A partition that knows the Service Object `so`, and notes what happens in which order."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform(2)
        self.happened: list[Any] = []
        tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t")) or 0
        define(Object("so", ("d",), ()), {}, tenant, self.platform)
        for kept in self.platform.state.service_objects.values():
            kept.active_version, kept.active_change = 1, 1
        store = self.platform.partition_store(argument_names)
        inner = store.store

        def noted(batch: Batch) -> Mapping[int, int]:
            self.happened.append(batch)
            return inner(batch)

        store.store = noted  # type: ignore[method-assign]
        self.output = self.platform.output(0)
        self.output.flush = lambda: self.happened.append("flush")  # type: ignore[method-assign]
        self.partition = Partition(0, store, 10**6)
        self.partition.service_object("so")
        stream = self.partition.graph.stream(REF)
        self.partition.remember({stream: LastUpdate(1, document(1))})
        self.control = Control(self.partition, self.output, self.sleep)

    def sleep(self, _seconds: float) -> None:
        """What the partition waits for comes to pass."""
        self.happened.append("sleep")
        self.platform.state.progress[1] = ProgressRow(8)

    @property
    def knows(self) -> tuple[bool, bool]:
        """Whether it still knows the Service Object, and its last update."""
        knows_last = self.partition._last_updates.knows(REF)
        return self.partition.known(REF.service_object) is not None, knows_last


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("record", "effect", "before", "knows"),
    [
        (DefinitionRecord("so", 1, 9), Activate("so", 1, 9), [], (False, False)),
        (DeletionRecord("so"), Delete("so"), ["flush"], (False, False)),
        (ErasureRecord("so", "d", 9), Erase("so", "d", 9), ["flush"], (False, False)),
        (ReleaseRecord(("so",), 1), Release(("so",), 1), ["flush"], (False, False)),
        (AcquireRecord(("so",), 1, 7), None, ["sleep"], (False, False)),
    ],
    ids=["definition", "deletion", "erasure", "release", "acquire"],
)
def test_a_record_is_a_transaction_of_its_own_with_the_progress_past_it(
    world: World,
    record: ControlRecord,
    effect: Effect | None,
    before: list[str],
    knows: tuple[bool, bool],
) -> None:
    """What has to come before comes before, and what is not so any more is forgotten."""
    world.platform.state.progress[1] = ProgressRow(7)

    world.control.apply(record, 0)

    *earlier, batch = world.happened
    assert earlier == before
    assert batch.effect == effect
    assert (batch.first_offset, batch.next_offset) == (0, 1)
    assert not batch.updates
    assert world.partition.progress == TreeKey(1)
    assert world.knows == knows


@pytest.mark.parametrize(
    ("record", "to_purge"),
    [
        (DeletionRecord("so"), True),
        (ErasureRecord("so", "d", 9), True),
        (DefinitionRecord("so", 1, 9), False),
    ],
)
def test_what_is_deleted_or_erased_is_to_be_purged(
    world: World, record: ControlRecord, to_purge: bool
) -> None:
    world.partition.to_purge = False

    world.control.apply(record, 0)

    assert world.partition.to_purge == to_purge


def test_an_acquired_component_waits_only_where_its_release_is_not_stored(world: World) -> None:
    world.platform.state.progress[1] = ProgressRow(8)

    world.control.apply(AcquireRecord(("so",), 1, 7), 0)

    assert "sleep" not in world.happened


def test_a_record_that_had_been_put_off_moves_no_progress(world: World) -> None:
    world.partition.commit(lambda begun: Batch(0, begun.offset, 5, 0))

    late = PutOff(3, 1, "so", b"")
    world.control.apply_late(world.control.change_of(DeletionRecord("so"), late), late)

    batch = world.happened[-1]
    assert (batch.first_offset, batch.next_offset) == (5, 5)
    assert list(batch.taken_up) == [TreeKey(3)]
    assert batch.effect == Delete("so")


def test_nothing_is_forgotten_where_nothing_was_stored(world: World) -> None:
    world.platform.state.progress[0] = ProgressRow(99)

    with pytest.raises(Exception, match="no longer at offset"):
        world.control.apply(ErasureRecord("so", "d", 9), 0)

    assert world.knows == (True, True)


def test_a_definition_loads_its_component_anew_as_it_is_then(world: World) -> None:
    """The new document may have joined it to others that are known already."""
    tenant = world.platform.state.service_objects["so"].tenant
    group = Object("more", ("x",), (), {"g": (("so", "d"),)})
    define(group, {}, tenant, world.platform)

    world.control.apply(DefinitionRecord("more", 1, 2), 0)

    assert world.knows == (False, True), "its last updates are as before"
    found = world.partition.service_object("more")
    assert not isinstance(found, int)
    assert found is not None
