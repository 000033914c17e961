"""What every PartitionStore promises of what is in force, and who computes it."""

from __future__ import annotations

import pytest
from port_builders import PARTITIONS, Storage, a_service_object

from servioticy.domain.model import StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.effects import Activate, ActivateAll, Release
from servioticy.ports.partition_store import UNDERSTOOD_AT_ONCE, ComponentMember


def test_a_definition_is_in_force_once_the_log_said_so(storage: Storage) -> None:
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    (before,) = storage.store.component("so1")

    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so1", 1, 1)))
    (after,) = storage.store.component("so1")
    (found,) = storage.store.service_objects(["so1"])

    assert before == ComponentMember("so1", tenant, 0, None)
    assert after._replace(size=0) == ComponentMember("so1", tenant, 0, 1)
    assert (before.size, after.size > 20) == (0, True)
    assert [each.ref.stream for each in found.definition.streams] == ["b", "a"]
    assert (found.tenant, found.version) == (tenant, 1)
    assert found.stream_ids == {name: storage.stream_id("so1", name) for name in "ab"}


def test_a_definition_that_is_not_understood_any_more_keeps_its_streams(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    """A stricter release must not stop the partition at what an earlier one accepted."""
    tenant = storage.tenant()
    text = b'{"streams":{"a":{"channels":{"x":{"type":"numeric"}}},"b":{}}}'
    storage.change_store.create(a_service_object(tenant, "so1", document=text), PARTITIONS)
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so1", 1, 1)))
    with caplog.at_level("ERROR", "servioticy"):
        found = [next(storage.store.service_objects(["so1"])) for _ in range(2)]

    assert found[0] == found[1]
    assert set(found[0].stream_ids) == {"a", "b"}
    assert all(each.composite is None for each in found[0].definition.streams)
    told = [(each.message, each.reason) for each in caplog.records]  # type: ignore[attr-defined]
    assert told == [("definition_not_understood", "Channel x with incorrect type: numeric")]


def test_many_are_in_force_at_once_each_unless_a_later_change_was_made_already(
    storage: Storage,
) -> None:
    tenant = storage.tenant()
    for id_ in ("so1", "so2", "so3"):
        storage.create(tenant, id_)
    storage.store.begin(0)
    storage.store.store(Batch(0, 0, 1, 0, effect=Activate("so2", 1, 9)))
    changes = tuple(Activate(id_, 1, 5) for id_ in ("so1", "so2", "so3", "nothing"))

    made = storage.store.changed(changes)
    storage.store.store(Batch(0, 1, 5, 1, effect=ActivateAll(changes)))
    storage.store.store(Batch(0, 5, 6, 5, effect=ActivateAll((Activate("so1", 7, 4),))))

    assert list(made) == ["so1", "so3"]
    assert {(each.id, each.tenant, each.version) for each in made.values()} == {
        ("so1", tenant, 1),
        ("so3", tenant, 1),
    }
    assert storage.store.changed(changes) == {}
    assert [storage.store.component(id_)[0].version for id_ in ("so1", "so2", "so3")] == [1, 1, 1]


def large(tenant: int, id_: str, size: int) -> NewServiceObject:
    text = b'{"streams":{"a":{"channels":{"x":{"type":"number"}}},"b":%b},"customFields":"%b"}'
    text %= b'{"channels":{"x":{"type":"number"}}}', size * b"x"
    return a_service_object(tenant, id_, document=text)


def test_of_many_that_are_large_those_are_looked_at_that_fit(storage: Storage) -> None:
    """A document may have a megabyte, and a thousand of them change."""
    tenant = storage.tenant()
    for id_ in ("so1", "so2", "so3"):
        storage.change_store.create(large(tenant, id_, 500_000), PARTITIONS)
    storage.store.begin(0)
    changes = [Activate(id_, 1, 1) for id_ in ("so3", "so1", "so2")]

    assert list(storage.store.changed(changes, 1_100_000)) == ["so3", "so1"]
    assert list(storage.store.changed(changes, 400_000)) == []
    assert list(storage.store.changed(changes)) == ["so3", "so1", "so2"]


def test_a_large_document_is_understood_with_pauses_before_it_is_in_force(
    storage: Storage,
) -> None:
    tenant = storage.tenant()
    for id_, size in (("small", 1), ("large", UNDERSTOOD_AT_ONCE)):
        storage.change_store.create(large(tenant, id_, size), PARTITIONS)
    storage.store.begin(0)

    assert storage.store.understanding(Activate("nothing", 1, 1)) is None
    assert storage.store.understanding(Activate("small", 1, 1)) is None
    work = storage.store.understanding(Activate("large", 1, 1))
    assert work is not None
    assert len(list(work)) > 2  # how many there are: tests/unit/test_pauses_of_documents.py
    assert storage.store.understanding(Activate("large", 1, 1)) is None
    assert set(storage.store.changed([Activate("large", 1, 1)])) == {"large"}


def test_a_component_is_in_order_of_creation(storage: Storage) -> None:
    tenant = storage.tenant()
    for id_ in ("so2", "other", "so1"):
        storage.create(tenant, id_, (("g", StreamRef("so2", "a")),) if id_ == "so1" else ())

    assert [each.id for each in storage.store.component("so1")] == ["so2", "so1"]
    assert storage.store.component("nothing") == []


def test_of_some_service_objects_those_are_found_that_have_a_version_in_force(
    storage: Storage,
) -> None:
    tenant = storage.tenant()
    for id_ in ("so2", "so3", "so1"):
        storage.create(tenant, id_)
    storage.store.begin(0)
    for offset, id_ in enumerate(("so1", "so2")):
        storage.store.store(Batch(0, offset, offset + 1, 0, effect=Activate(id_, 1, 1)))

    found = list(storage.store.service_objects(["so1", "so2", "so3", "nothing"]))

    assert [each.id for each in found] == ["so2", "so1"]
    assert list(storage.store.service_objects([])) == []


def test_only_the_owner_can_release(storage: Storage) -> None:
    tenant = storage.tenant()
    storage.create(tenant, "so1")  # in partition 0
    storage.create(tenant, "so2")  # in partition 1
    storage.store.begin(0)

    storage.store.store(Batch(0, 0, 1, 0, effect=Release(("so1", "so2", "nothing"), 5)))

    assert storage.store.component("so1")[0].owner_partition == 5
    assert storage.store.component("so2")[0].owner_partition == 1
