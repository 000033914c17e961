"""What a partition remembers is bounded in bytes; the least recently used goes first."""

from __future__ import annotations

import pytest
from memory import MemoryPlatform
from oracle import Composite, Object
from serial_order import define

from pipeline.state import components
from pipeline.state.last_update_cache import ENTRY_BYTES, OBJECT_BYTES, LastUpdateCache
from pipeline.state.partition import Partition
from pipeline.state.weights import STREAM_BYTES
from sandbox import argument_names
from servioticy.domain.model import LastUpdate, StreamRef

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
