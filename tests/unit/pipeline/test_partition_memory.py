"""What a partition remembers is bounded in bytes; the least recently used goes first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from memory import MemoryPlatform
from oracle import Composite, Object
from serial_order import define

from pipeline.state import components
from pipeline.state.last_update_cache import ENTRY_BYTES, OBJECT_BYTES, LastUpdateCache
from pipeline.state.partition import Partition
from pipeline.state.weights import STREAM_BYTES
from sandbox import argument_names
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef

A, B, C = (StreamRef(name, "d") for name in "abc")
OTHER = StreamRef("a", "e")


def last(size: int) -> LastUpdate:
    return LastUpdate(1, b"x" * size)


def test_what_was_used_least_recently_goes_first() -> None:
    known = LastUpdateCache(2 * (OBJECT_BYTES + ENTRY_BYTES + 10))
    for ref in (A, B, C):
        known.keep([(ref, last(10))])
    known.use([A])
    known.trim()

    assert [known.knows(ref) for ref in (A, B, C)] == [True, False, True]
    assert known.of([C, A]) == {C: last(10), A: last(10)}


def test_streams_of_a_service_object_go_together() -> None:
    """What one of its trees needs is mostly all of it."""
    known = LastUpdateCache(OBJECT_BYTES + 2 * ENTRY_BYTES + 5)
    known.keep([(A, last(5)), (OTHER, None)])
    known.trim()
    assert (known.knows(A), known.knows(OTHER)) == (True, True)

    known.keep([(B, None)])
    known.trim()

    assert (known.knows(A), known.knows(OTHER)) == (False, False)
    assert known.bytes == OBJECT_BYTES + ENTRY_BYTES


@pytest.mark.parametrize(("size", "kept"), [(10, True), (11, False)])
def test_the_room_is_counted_in_bytes(size: int, kept: bool) -> None:
    known = LastUpdateCache(OBJECT_BYTES + ENTRY_BYTES + 10)
    known.keep([(A, last(size))])
    known.trim()

    assert known.knows(A) == kept


def test_what_is_kept_anew_or_forgotten_is_not_counted_twice() -> None:
    known = LastUpdateCache(10**6)
    known.keep([(A, last(1000))])
    known.keep([(A, None)])
    known.keep([(OTHER, last(5))])
    known.forget([OTHER, C])

    assert known.bytes == OBJECT_BYTES + ENTRY_BYTES
    assert known.use([A, OTHER]) == [OTHER]
    known.forget_all(["a", "b"])
    assert known.bytes == 0


ONE = 2 * STREAM_BYTES
"""A Service Object of one simple stream, as it is counted."""


@pytest.fixture
def partition() -> Partition:
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    for name in ("a", "b", "c"):
        define(Object(name, ("d0",), ()), {}, tenant, platform)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    return Partition(0, platform.partition_store(argument_names), 10**6)


def test_what_devices_share_counts_while_there_is_one_of_them() -> None:
    """Whoever it was first made for: else large documents would take memory that nobody counts."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    for each in "ab":
        long = Composite("c", ("d",), None)
        code = "(d) => 1 // " + "1" * 10_000
        define(Object(each, ("d",), (long,)), {(each, "c"): code}, tenant, platform)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    parts = components.Components(0, platform.partition_store(argument_names))
    parts.get("a", at_once=True)
    alone = parts._weight
    parts.get("b", at_once=True)
    assert parts._weight < alone * 1.5, "they are alike"

    parts.forget(["a"])
    assert parts._weight == pytest.approx(alone)

    parts.forget(["b"])
    assert parts._weight == 0
    assert not parts._copies


@pytest.fixture
def now() -> list[float]:
    return [1_000.0]


@pytest.fixture
def forgetful(now: list[float]) -> Partition:
    """It remembers for 100 s, and looks at what is unused each time it is asked."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    for name in ("a", "b", "c"):
        define(Object(name, ("d0",), ()), {}, tenant, platform)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    store = platform.partition_store(argument_names)
    return Partition(0, store, 10**6, idle_seconds=100.0, clock=lambda: now[0])


def known_in(partition: Partition) -> list[str]:
    return [each for each in ("a", "b", "c") if partition.known(each) is not None]


def test_what_nobody_uses_is_forgotten_after_its_time(
    forgetful: Partition, now: list[float]
) -> None:
    """Not a moment before; and at most a tenth later, as times are remembered so far apart."""
    for name in ("a", "b", "c"):
        forgetful.service_object(name)
    forgetful.trim()
    for now[0] in (1_000.0, 1_050.0, 1_099.9):
        assert forgetful.forget_unused() == 0
    forgetful.service_object("b")
    forgetful.trim()
    now[0] = 1_100.0

    assert forgetful.forget_unused() == 2
    assert known_in(forgetful) == ["b"]
    looks = [forgetful.forget_unused() for now[0] in range(1_101, 1_200)]
    assert sum(looks) == 0
    looks = [forgetful.forget_unused() for now[0] in range(1_200, 1_211)]
    assert sum(looks) == 1
    assert known_in(forgetful) == []
    assert forgetful.service_object("a") is not None


def test_last_updates_go_with_what_is_forgotten(forgetful: Partition, now: list[float]) -> None:
    """They are most of what an idle device takes where its documents are large."""
    forgetful.service_object("a")
    forgetful._last_updates.keep([(StreamRef("a", "d0"), last(1_000))])
    forgetful.forget_unused()
    now[0] += 100.0

    assert forgetful.forget_unused() == 1
    assert forgetful._last_updates.bytes == 0


def test_of_whom_something_is_computed_nothing_is_forgotten(
    forgetful: Partition, now: list[float]
) -> None:
    found = forgetful.service_object("a")
    assert isinstance(found, ServiceObject)
    forgetful.forget_unused()
    now[0] += 100.0
    forgetful.under_way = frozenset({found.tenant})
    assert forgetful.forget_unused() == 0

    forgetful.under_way = frozenset()
    assert forgetful.forget_unused() == 1


def test_so_many_are_looked_at_at_once(
    forgetful: Partition, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition may know a hundred thousand, and who comes meanwhile waits."""
    monkeypatch.setattr(components, "MAX_LOOKED_AT", 2)
    for name in ("a", "b", "c"):
        forgetful.service_object(name)
    forgetful.forget_unused()
    now[0] += 100.0

    assert [forgetful.forget_unused() for _ in range(3)] == [2, 1, 0]


def test_memory_of_what_is_forgotten_goes_back_to_the_system() -> None:
    """Dead objects are not enough: a page of memory is kept for the smallest thing in it. Their
    streams have the same names, as `orjson` keeps two thousand names for good."""
    code = """if True:
        import time
        from memory import MemoryPlatform
        from new_service_objects import new_service_object
        from pipeline.spark.garbage import Garbage
        from pipeline.state.partition import Partition
        from sandbox import argument_names
        from servioticy.garbage import resident_bytes

        def document(number):
            channels = {"v": {"type": "number"}}
            code = "function(d){return d.channels.v['current-value']+%d}"
            computed = {
                f"c{n}": {"channels": {"v": {"type": "number", "current-value": code % each}}}
                for n, each in enumerate(range(number * 10, number * 10 + 10))
            }
            return {"streams": {"d": {"channels": channels}, **computed}}

        platform, ids = MemoryPlatform(), [f"o{n}" for n in range(400)]
        tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
        for number, id_ in enumerate(ids):
            platform.changes.create(new_service_object(tenant, id_, document(number)))
        for each in platform.state.service_objects.values():
            each.active_version = 1
        store = platform.partition_store(argument_names)
        partition = Partition(0, store, 10**6, idle_seconds=0.01)
        garbage = Garbage()
        garbage.begin()
        before = resident_bytes()
        for id_ in ids:
            partition.service_object(id_, at_once=True)
            partition.trim()
        most, forgotten = resident_bytes(), 0
        partition.forget_unused()
        time.sleep(0.02)
        while found := partition.forget_unused():
            forgotten += found
        garbage.give_back(forgotten)
        print(forgotten, most - before, resident_bytes() - before)
    """
    support = str(Path(__file__).parents[2] / "support")
    environment = {**os.environ, "PYTHONPATH": f"{support}:{':'.join(filter(None, sys.path))}"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment, check=True
    )
    forgotten, taken, left = map(int, done.stdout.split())

    assert forgotten == 400
    assert taken > 8_000_000
    assert left < 0.6 * taken


def test_definitions_that_there_is_no_room_for_are_loaded_again(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The component used longest ago goes; what it computes does not change."""
    for name in ("a", "b", "c"):
        partition.service_object(name)
        partition.trim()
    partition.service_object("a")
    monkeypatch.setattr(components, "MAX_DEFINITION_BYTES", 2 * ONE)
    partition.trim()

    assert partition.known("b") is None
    assert partition.known("a") is not None
    found = partition.service_object("b")
    assert found is not None
    assert not isinstance(found, int)
    assert partition.known("b") is not None
