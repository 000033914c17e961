"""What every ChangeStore promises, and what a PartitionStore then computes by."""

from __future__ import annotations

import threading

import pytest
from port_builders import PARTITIONS, Storage, a_service_object

from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import Change
from servioticy.ports.effects import Activate


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so1", 1, 1)))
    return tenant


# Creating, and where it is computed.


def test_an_id_is_taken_once(storage: Storage) -> None:
    """All or nothing: what failed leaves no pending change."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")

    with pytest.raises(Exception, match=r"so1|duplicate"):
        storage.create(tenant, "so1")
    assert len(storage.change_store.pending()) == 1


def test_new_components_go_to_the_least_loaded_partition(storage: Storage) -> None:
    tenant = storage.tenant()
    partitions = [storage.create(tenant, f"so{n}").partition for n in range(4)]

    assert partitions == [0, 1, 0, 1]


def test_the_deleted_no_longer_count_where_components_go(storage: Storage, tenant: int) -> None:
    for number in range(2, 4):
        storage.create(tenant, f"so{number}")  # in partitions 1 and 0
    storage.change_store.delete(ServiceObjectKey(tenant, "so2"), None, 2000)

    assert storage.create(tenant, "so4").partition == 1
    assert PARTITIONS == 2


def test_a_composite_joins_its_source(storage: Storage) -> None:
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.create(tenant, "so2")

    change = storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    assert change == Change("so3", 1, 1)
    assert (storage.node("so3").component, storage.node("so3").partition) == ("so2", 1)


def test_the_smaller_component_moves_to_the_larger(storage: Storage) -> None:
    """And is routed there only when the log knows."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.create(tenant, "so2")
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    sources = (("g", StreamRef("so1", "a")), ("g", StreamRef("so2", "a")))
    change = storage.create(tenant, "so4", sources)

    assert change == Change("so4", 1, 1, ((0, ("so1",)),))
    assert storage.node("so1").component == storage.node("so4").component == "so2"
    assert storage.node("so1").partition == 0

    for number, each in storage.change_store.pending():
        storage.change_store.finish({number: each})

    assert storage.node("so1").partition == 1
    assert storage.change_store.pending() == []


# The right to change, and what is pending.


def test_changes_are_pending_until_finished(storage: Storage) -> None:
    tenant = storage.tenant()
    changes = [storage.create(tenant, "so1"), storage.create(tenant, "so2")]

    pending = storage.change_store.pending()
    assert [change for _, change in pending] == changes

    storage.change_store.finish(dict(pending[:1]))
    assert storage.change_store.pending() == pending[1:]


def test_what_is_saved_is_not_in_force_and_has_a_number_of_its_own(
    storage: Storage, tenant: int
) -> None:
    before, pending = storage.store.component("so1"), storage.change_store.pending()

    first = storage.change_store.save(a_service_object(tenant, "so1"))
    second = storage.change_store.save(a_service_object(tenant, "so1"))

    assert (first, second) == (2, 3)
    assert storage.store.component("so1") == before
    assert storage.change_store.pending() == pending
    assert storage.change_store.save(a_service_object(tenant, "nothing")) is None
    assert storage.change_store.save(a_service_object(tenant + 1, "so1")) is None
    change = storage.change_store.replace(a_service_object(tenant, "so1"), 1)
    assert change is not None
    assert change.version == 4


def test_one_at_a_time_changes_the_graph(storage: Storage) -> None:
    entered = threading.Event()

    def other() -> None:
        with storage.change_store.changing():
            entered.set()

    thread = threading.Thread(target=other)
    with storage.change_store.changing():
        thread.start()
        assert not entered.wait(0.2)

    assert entered.wait(5)
    thread.join()


def test_the_right_to_change_is_given_back_after_an_error(storage: Storage) -> None:
    with pytest.raises(LookupError), storage.change_store.changing():
        raise LookupError

    thread = threading.Thread(target=lambda: storage.change_store.changing().__enter__())
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


def test_a_change_does_not_wait_for_ever_for_another(storage: Storage) -> None:
    """Who changes the graph holds a thread of the API; a stuck one must not hold them all."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with storage.change_store.changing():
            held.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    with (
        pytest.raises(Unavailable, match="others are changing"),
        storage.change_store.changing(),
    ):
        pass
    done.set()
    other.join()

    with storage.change_store.changing():
        pass
