"""Moving what hangs together to another partition, and what has come apart from it not."""

from __future__ import annotations

import pytest
from port_builders import Storage, a_service_object

from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate

SO1 = (("g", StreamRef("so1", "a")),)
MOST = 100


class World:
    """A tenant with `so1`, which `so2` reads, and `so3` beside; what is told comes into force."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.tenant = storage.tenant()
        self._offset = 0
        storage.store.begin(0)
        storage.create(self.tenant, "so1")
        storage.create(self.tenant, "so2", SO1)

    def replace(self, id_: str, revision: int, groups: tuple[tuple[str, StreamRef], ...]) -> None:
        new = a_service_object(self.tenant, id_, groups)
        assert self.storage.change_store.replace(new, revision) is not None

    def settle(self) -> None:
        """Let all that is pending come into force, and be routed."""
        for number, each in self.storage.change_store.pending():
            self.storage.change_store.finish({number: each})
            effect = Activate(each.service_object, each.version, number)
            batch = Batch(0, self._offset, self._offset + 1, 0, effect=effect)
            self.storage.store.store(batch)
            self._offset += 1

    def move(self, id_: str, partition: int, most: int = MOST) -> list[str] | None:
        """Who moves; None: nothing."""
        key = ServiceObjectKey(self.tenant, id_)
        change = self.storage.change_store.move(key, partition, most)
        if change is None:
            return None
        assert (change.kind, change.partition) == ("move", partition)
        return [each for _, ids in change.moves for each in ids]

    def route(self, id_: str) -> int:
        return self.storage.node(id_).partition


@pytest.fixture
def world(storage: Storage) -> World:
    return World(storage)


def test_a_component_moves_as_one(world: World) -> None:
    """It is routed there once the log knows."""
    world.settle()

    assert world.move("so2", 1) == ["so1", "so2"]
    assert (world.route("so1"), world.route("so2")) == (0, 0)
    ((number, change),) = world.storage.change_store.pending()
    world.storage.change_store.leave(change)
    world.storage.change_store.leave(change)  # whoever said it first was killed
    assert (world.route("so1"), world.route("so2")) == (0, 0)
    world.storage.change_store.finish({number: change})
    assert (world.route("so1"), world.route("so2")) == (1, 1)
    assert world.move("so1", 1) is None


def test_what_has_come_apart_stays(world: World) -> None:
    """And is a component of its own from then on."""
    world.settle()
    world.replace("so2", 1, ())
    world.settle()
    assert world.storage.node("so1").component == world.storage.node("so2").component

    assert world.move("so2", 1) == ["so2"]
    assert (world.storage.node("so1").component, world.storage.node("so2").component) == (
        "so1",
        "so2",
    )


def test_what_is_not_in_force_yet_does_not_come_apart(world: World) -> None:
    """To the pipeline so2 reads so1 until it comes to the change; nor though an earlier change
    put the same version in force, with one between them that joins what it parts."""
    world.settle()
    world.replace("so2", 1, ())
    with pytest.raises(Unavailable):
        world.move("so2", 1)

    world.settle()
    assert world.storage.change_store.replace(
        a_service_object(world.tenant, "so2", SO1), 2, version=1
    )
    assert world.storage.change_store.replace(a_service_object(world.tenant, "so2"), 3, version=2)
    with pytest.raises(Unavailable):
        world.move("so2", 1)
    assert world.storage.node("so1").component == world.storage.node("so2").component


def test_no_more_moves_than_one_record_names(world: World) -> None:
    world.settle()

    assert world.move("so1", 1, most=1) is None
    assert world.move("so1", 1, most=2) == ["so1", "so2"]


def test_of_others_and_of_what_is_not_there_nothing_moves(world: World) -> None:
    world.settle()
    other = ServiceObjectKey(world.tenant + 1, "so1")

    assert world.storage.change_store.move(other, 1, MOST) is None
    assert world.move("nothing", 1) is None
