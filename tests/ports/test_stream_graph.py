"""What every StreamGraph promises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from port_builders import Storage, a_service_object

from servioticy.domain.access import Granted
from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.ports.stream_graph import GraphNode, GroupReader


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    return tenant


def reads(storage: Storage, tenant: int, id_: str, *sources: str) -> None:
    """A Service Object with a group over the streams `a` of the sources."""
    storage.create(tenant, id_, tuple(("g", StreamRef(source, "a")) for source in sources))


def related(storage: Storage, *ids: str, upstream: bool = False, most: int = 99) -> list[str]:
    return [each.id for each in storage.graph.related(ids, upstream=upstream, most=most).found]


def test_a_node_tells_what_a_group_needs_to_know(storage: Storage, tenant: int) -> None:
    found = storage.graph.nodes(["so1", "nothing"])

    streams = found["so1"].streams
    assert found == {"so1": GraphNode("so1", tenant, Granted(tenant, ()), 1, "so1", 0, streams)}
    assert sorted(streams) == ["a", "b"]


def test_a_node_has_the_streams_of_the_version_in_force(storage: Storage, tenant: int) -> None:
    """What it lacks keeps its number, and with it its history."""
    b = storage.stream_id("so1", "b")
    new = replace(a_service_object(tenant, "so1"), streams=("c", "a"))
    storage.change_store.replace(new, 1)
    assert sorted(storage.node("so1").streams) == ["a", "c"]

    storage.change_store.replace(a_service_object(tenant, "so1"), 2, version=1)

    assert sorted(storage.node("so1").streams) == ["a", "b"]
    assert storage.node("so1").revision == 3
    assert storage.stream_id("so1", "b") == b


def test_what_is_deleted_is_no_node(storage: Storage, tenant: int) -> None:
    storage.change_store.delete(ServiceObjectKey(tenant, "so1"), None, 2000)

    assert storage.graph.nodes(["so1"]) == {}
    assert related(storage, "so1", upstream=True) == []


def test_readers_follow_the_version_in_force(storage: Storage, tenant: int) -> None:
    groups = (("g", StreamRef("so1", "a")), ("h", StreamRef("so1", "b")))
    storage.create(tenant, "so2", groups)
    assert storage.graph.readers("so1", ["a", "b"]) == [
        GroupReader("so2", tenant, "a"),
        GroupReader("so2", tenant, "b"),
    ]

    storage.change_store.replace(a_service_object(tenant, "so2", groups[1:]), 1)

    assert storage.graph.readers("so1", ["a"]) == []
    assert storage.graph.readers("so1", ["b"]) == [GroupReader("so2", tenant, "b")]
    assert storage.graph.readers("so1", []) == []


def test_ones_own_readers_come_first_and_no_more_than_are_wanted(
    storage: Storage, tenant: int
) -> None:
    other = storage.tenant("other")
    storage.change_store.replace(a_service_object(tenant, "so1", public=True), 1)
    for owner, id_ in ((other, "so2"), (tenant, "so3"), (other, "so4"), (tenant, "so5")):
        reads(storage, owner, id_, "so1")

    def ids(**wanted: int) -> list[str]:
        return [each.id for each in storage.graph.readers("so1", ["a"], **wanted)]

    assert ids() == ["so2", "so3", "so4", "so5"]
    assert ids(first=tenant) == ["so3", "so5", "so2", "so4"]
    assert ids(first=tenant, most=3) == ["so3", "so5", "so2"]


def test_a_stream_may_be_in_two_groups_and_twice_in_one(storage: Storage, tenant: int) -> None:
    ref = StreamRef("so1", "a")
    storage.create(tenant, "so2", (("g", ref), ("g", ref), ("h", ref)))

    assert set(storage.graph.readers("so1", ["a"])) == {GroupReader("so2", tenant, "a")}


def test_who_may_not_read_any_more_holds_nothing_back(storage: Storage, tenant: int) -> None:
    """A group of another tenant names a stream that has become private: it reads nothing."""
    other = storage.tenant("other")
    public = a_service_object(tenant, "so1", public=True)
    storage.change_store.replace(public, 1)
    reads(storage, other, "so2", "so1")
    assert storage.graph.readers("so1", ["a"]) == [GroupReader("so2", other, "a")]

    storage.change_store.replace(a_service_object(tenant, "so1"), 2)

    assert storage.graph.readers("so1", ["a"]) == []


def test_related_follows_groups_both_ways(storage: Storage, tenant: int) -> None:
    reads(storage, tenant, "so2", "so1")
    reads(storage, tenant, "so3", "so2")
    storage.create(tenant, "so4")

    assert set(related(storage, "so2", upstream=True)) == {"so1", "so2"}
    assert set(related(storage, "so2")) == {"so2", "so3"}
    assert set(related(storage, "so1")) == {"so1", "so2", "so3"}
    assert related(storage, "so1", "so4", most=2) == ["so1", "so4"]
    assert related(storage, "nothing", upstream=True) == []
    (so4,) = storage.graph.related(["so4"], upstream=True, most=1).found
    assert (so4.tenant, so4.version) == (tenant, 1)


def test_related_are_nearest_first(storage: Storage, tenant: int) -> None:
    """Where there are too many, those that are looked at are the nearest."""
    reads(storage, tenant, "so3", "so1")
    reads(storage, tenant, "so2", "so3")
    reads(storage, tenant, "so0", "so2")

    assert related(storage, "so1") == ["so1", "so3", "so2", "so0"]
    assert related(storage, "so0", upstream=True) == ["so0", "so2", "so3", "so1"]


@pytest.mark.parametrize("most", [1, 3, 4, 5, 6, 99])
def test_a_short_way_counts_before_a_long_one(storage: Storage, tenant: int, most: int) -> None:
    """Two ways lead to `near`, and a cycle back to `so1`; created last, it is still near."""
    reads(storage, tenant, "far1", "so1")
    reads(storage, tenant, "far2", "far1")
    reads(storage, tenant, "far3", "far2")
    reads(storage, tenant, "near", "far3", "so1")
    reads(storage, tenant, "end", "far3")
    groups = (("g", StreamRef("end", "a")),)
    storage.change_store.replace(a_service_object(tenant, "so1", groups), 1)

    nearest = ["so1", "far1", "near", "far2", "far3", "end"]
    assert related(storage, "so1", most=most) == nearest[:most]


def test_those_of_one_distance_come_in_order_of_creation(storage: Storage, tenant: int) -> None:
    for id_ in ("so9", "so2", "so5"):
        reads(storage, tenant, id_, "so1")

    assert related(storage, "so1") == ["so1", "so9", "so2", "so5"]


@pytest.mark.parametrize(("most", "complete"), [(2, False), (3, False), (4, True)])
def test_it_is_told_whether_these_are_all(
    storage: Storage, tenant: int, most: int, complete: bool
) -> None:
    """With as many as are wanted there may be more: to know would cost another question."""
    reads(storage, tenant, "so2", "so1")
    reads(storage, tenant, "so3", "so2")

    assert storage.graph.related(["so1"], upstream=False, most=most).complete is complete
