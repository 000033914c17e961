"""What every ChangeStore promises of who reads streams of other tenants: what the log is told."""

from __future__ import annotations

import pytest
from port_builders import PARTITIONS, Storage, a_service_object

from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import Change, Reading
from servioticy.ports.effects import Activate, BeginInputs, EndInputs
from servioticy.storage import change_store

X, Y, Z = (StreamRef(each, "a") for each in "xyz")


class World:
    """Two providers: `x` (partition 0) and `y` (1) are one's, `z` (0) another's; and a reader."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.one, self.another, self.reader = map(storage.tenant, ("one", "another", "reader"))
        for tenant, id_ in ((self.one, "x"), (self.one, "y"), (self.another, "z")):
            storage.change_store.create(a_service_object(tenant, id_, (), True), PARTITIONS)
        self._offsets = [0] * PARTITIONS
        for partition in range(PARTITIONS):
            storage.store.begin(partition)

    def create(self, id_: str, *reads: StreamRef) -> Change:
        new = a_service_object(self.reader, id_, tuple(("g", each) for each in reads))
        return self.storage.change_store.create(new, PARTITIONS)

    def replace(self, id_: str, *reads: StreamRef) -> Change:
        new = a_service_object(self.reader, id_, tuple(("g", each) for each in reads))
        change = self.storage.change_store.replace(new, self.storage.node(id_).revision)
        assert change is not None
        return change

    def finish(self) -> None:
        for number, change in self.storage.change_store.pending():
            self.storage.change_store.finish({number: change})

    def store(self, effect: Activate | BeginInputs | EndInputs, partition: int) -> None:
        first = self._offsets[partition]
        self._offsets[partition] = first + 1
        self.storage.store.store(Batch(partition, first, first + 1, 0, effect=effect))

    def activate(self, id_: str, change: int, *reads: StreamRef) -> None:
        self.store(Activate(id_, 1, change, reads), self.storage.node(id_).partition)

    def begin(self, id_: str, offset: int, partition: int, moved_from: int | None = None) -> None:
        lasts = ((X, None, None),)
        place = (0, offset)
        effect = BeginInputs(self.reader, (id_,), self.one, lasts, place, moved_from)
        self.store(effect, partition)

    def reading(
        self, id_: str, to: int, provider: int, partition: int, *sources: StreamRef
    ) -> Reading:
        named = tuple((each.service_object, each.stream) for each in sources)
        return Reading(id_, self.reader, to, provider, partition, named)


@pytest.fixture
def world(storage: Storage) -> World:
    return World(storage)


def test_what_is_read_of_others_joins_nothing(world: World) -> None:
    """And is told to each provider in each partition that it has something in."""
    change = world.create("r", X, Y, Z)

    assert (change.partition, change.moves) == (1, ())
    assert world.storage.node("r").component == "r"
    assert world.storage.node("x").component == "x"
    assert change.readings == (
        world.reading("r", 1, world.one, 0, X),
        world.reading("r", 1, world.another, 0, Z),
        world.reading("r", 1, world.one, 1, Y),
    )
    assert world.storage.change_store.pending()[-1][1] == change


def test_streams_of_a_provider_are_told_together(world: World) -> None:
    other = StreamRef("x", "b")

    change = world.create("r", X, other, X)

    assert change.readings == (world.reading("r", 1, world.one, 0, X, other),)


def test_who_reads_ones_own_tells_nobody(world: World) -> None:
    world.create("r")
    change = world.create("s", StreamRef("r", "a"))

    assert change.readings == ()
    assert world.storage.node("s").component == "r"
    assert world.replace("s").readings == ()


def test_another_document_tells_what_is_read_no_more(world: World) -> None:
    world.create("r", X, Y, Z)

    change = world.replace("r", Z)

    assert change.readings == (
        world.reading("r", 1, world.one, 0),
        world.reading("r", 1, world.another, 0, Z),
        world.reading("r", 1, world.one, 1),
    )
    assert world.replace("r").readings == (world.reading("r", 1, world.another, 0),)


def test_who_is_deleted_reads_nothing(world: World) -> None:
    world.create("r", X, Z)
    change = world.storage.change_store.delete(ServiceObjectKey(world.reader, "r"), None, 2000)

    assert change is not None
    assert change.readings == (
        world.reading("r", 1, world.one, 0),
        world.reading("r", 1, world.another, 0),
    )
    assert world.storage.change_store.overdue(3000, 9) == [(world.reader, change)]


def test_who_is_deleted_is_told_nothing(world: World) -> None:
    """Its readers go with it."""
    world.create("r", X, Y)
    world.storage.change_store.delete(ServiceObjectKey(world.one, "x"), None, 2000)

    assert world.replace("r", Y).readings == (world.reading("r", 1, world.one, 1, Y),)


# Moves.


@pytest.fixture
def moving(world: World) -> World:
    """`r` reads `x` and is to move from partition 1 to 0, to a larger component."""
    world.create("r", X)  # in partition 1
    world.create("s")  # in partition 0
    world.create("t", StreamRef("s", "a"))
    world.finish()
    return world


JOINING = (StreamRef("r", "a"), StreamRef("s", "a"))


def test_what_has_not_come_into_force_is_not_moved(moving: World) -> None:
    with pytest.raises(Unavailable, match="still moving"):
        moving.create("u", *JOINING)

    assert moving.storage.change_store.pending() == []
    assert moving.storage.node("r").component == "r"


def test_what_is_not_fed_is_not_moved(moving: World) -> None:
    moving.activate("r", 9, X)
    with pytest.raises(Unavailable):
        moving.create("u", *JOINING)
    with pytest.raises(Unavailable):
        moving.replace("t", *JOINING)

    moving.begin("r", 3, 1)

    assert moving.create("u", *JOINING).moves == ((1, ("r",)),)


def test_nobody_leaves_where_something_of_their_tenant_is_held(moving: World) -> None:
    """Another of its tenant's has come there, and not all that is sent on to it: what others send
    the tenant there is held, for the one that is to move, too."""
    moving.create("v", X)
    moving.finish()
    assert moving.storage.node("v").partition == moving.storage.node("r").partition == 1
    for number, each in enumerate(("r", "v")):
        moving.activate(each, 8 + number, X)
    moving.begin("r", 3, 1)
    moving.begin("v", 4, 0)
    with pytest.raises(Unavailable, match="still moving"):
        moving.create("u", *JOINING)
    moving.begin("v", 5, 1, moved_from=0)
    with pytest.raises(Unavailable, match="still moving"):
        moving.create("u", *JOINING)

    moving.store(EndInputs(moving.reader, ("v",), (X,), (0, 5), arrived=True), 1)

    assert moving.create("u", *JOINING).moves == ((1, ("r",)),)


def test_what_may_not_be_read_moves(moving: World) -> None:
    """Whoever ends a grant keeps nobody where they are."""
    moving.activate("r", 9, X)
    moving.store(EndInputs(moving.reader, ("r",), (X,), (0, 3)), 1)

    assert moving.create("u", *JOINING).moves == ((1, ("r",)),)


def test_what_moves_tells_where_it_reads_from_now_on(moving: World) -> None:
    moving.activate("r", 9, X)
    moving.begin("r", 3, 1)

    change = moving.create("u", *JOINING, Z)

    assert change.partition == 0
    assert change.readings == (
        moving.reading("u", 0, moving.another, 0, Z),
        moving.reading("r", 0, moving.one, 0, X),
    )


def test_a_reader_that_moves_by_a_document_of_its_own_tells_once(moving: World) -> None:
    moving.activate("r", 9, X)
    moving.begin("r", 3, 1)

    change = moving.replace("r", Z, StreamRef("s", "a"))

    assert change.moves == ((1, ("r",)),)
    assert change.readings == (
        moving.reading("r", 0, moving.one, 0),
        moving.reading("r", 0, moving.another, 0, Z),
    )


def test_what_has_moved_is_not_moved_again_before_all_has_come(moving: World) -> None:
    moving.activate("r", 9, X)
    moving.begin("r", 3, 1)
    moving.create("u", *JOINING)
    moving.finish()
    assert moving.create("v0").partition == 1
    for number in range(1, 6):  # larger than that of `r`
        moving.create(f"v{number}", StreamRef("v0", "a"))
    joining = (StreamRef("v0", "a"), StreamRef("u", "a"))

    def is_refused() -> bool:
        try:
            moving.replace("v0", *joining)
        except Unavailable:
            return True
        return False

    assert is_refused()
    moving.begin("r", 7, 0, moved_from=1)
    assert is_refused()
    moving.store(EndInputs(moving.reader, ("r",), (X,), (0, 7), arrived=True), 0)
    assert not is_refused()


def test_changes_of_an_earlier_release_are_still_read() -> None:
    """They may be pending when a store is upgraded."""
    text = (
        b'{"service_object":"r","version":2,"partition":1,"moves":[[0,["s"]]],'
        b'"kind":"definition","stream":"","grant":""}'
    )
    assert change_store._change.decode(text) == Change("r", 2, 1, ((0, ("s",)),))
