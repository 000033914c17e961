"""What has come over borders by itself: whom it feeds here, once each, and what is sent on."""

from __future__ import annotations

import msgspec
import pytest
from engine_builders import document
from memory import MemoryPlatform
from memory.state import InputRow
from oracle import Composite, Object
from serial_order import define

from pipeline.batching.crossed import Crossed
from pipeline.state import components
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Marked, Root, Row
from sandbox import argument_names
from servioticy.domain.borders import BORDER
from servioticy.domain.model import InputRef, StreamRef
from servioticy.domain.records import (
    BorderRecord,
    BorderUpdate,
    LogRecord,
    NamedReader,
    Source,
    write,
)
from servioticy.ports.batches import Batch
from servioticy.ports.put_off import PutOff, TreeKey

D, E = StreamRef("x", "d"), StreamRef("x", "e")
CODE = "function(%s){return 1}"


class World:
    """Partition 1, to which the streams of `x` come, which is computed in partition 0.

    `a` reads both streams, `b` of the same tenant only the first; so does `c` of a third tenant.
    """

    def __init__(self) -> None:
        self.platform = MemoryPlatform(2)
        tenants = self.platform.tenants
        self.provider, self.first, self.second = (
            tenants.tenant_of(tenants.create_tenant(name)) or 0 for name in ("p", "q", "r")
        )
        define(Object("x", ("d", "e"), ()), {}, self.provider, self.platform)
        self.fed("a", self.first, D, E)
        self.fed("b", self.first, D)
        self.fed("c", self.second, D)
        self.state = self.platform.state
        for kept in self.state.service_objects.values():
            kept.active_version, kept.owner_partition = 1, 1
        self.state.service_objects["x"].owner_partition = 0
        self.sent: list[tuple[int, LogRecord]] = []
        self.begin()

    def fed(self, id_: str, tenant: int, *sources: StreamRef) -> None:
        """A Service Object with a composite of each of these streams, which come to it."""
        groups = {f"g{n}": (tuple(each),) for n, each in enumerate(sources)}
        composites = tuple(Composite(f"c{n}", (f"g{n}",), None) for n in range(len(sources)))
        codes = {(id_, each.name): CODE % each.reads for each in composites}
        define(Object(id_, ("own",), composites, groups), codes, tenant, self.platform)
        for each in sources:
            row = InputRow(tenant, self.provider, kept=False, fed_in=1)
            self.platform.state.inputs_from_outside[id_, each] = row

    def begin(self) -> None:
        """A worker that knows nothing yet."""
        self.state.claims.clear()
        self.partition = Partition(1, self.platform.partition_store(argument_names), 10**6)
        self.crossed = Crossed(self.partition, lambda *sent: self.sent.append(sent))

    def row(self, reader: str, stream: StreamRef = D) -> InputRow:
        return self.state.inputs_from_outside[reader, stream]

    def input(self, reader: str, stream: StreamRef = D) -> InputRef:
        return InputRef(stream, self.state.service_objects[reader].sequence)

    def admit(self, record: BorderRecord, at: int = 5) -> list[LoggedUpdate | PutOff]:
        self.crossed.look_up([record])
        return self.crossed.admit(record, Row(at, write(record)))

    def root(self, reader: str, update: BorderUpdate) -> Root:
        ref = self.input(reader, update.origin)
        path = (*update.path, BORDER + ref.reader)
        return Root(ref, update.timestamp, bytes(update.update), path)


@pytest.fixture
def world() -> World:
    return World()


def an_update(stream: StreamRef = D, at: int = 7, path: tuple[int, ...] = ()) -> BorderUpdate:
    return BorderUpdate(*stream, at, path, msgspec.Raw(document(at)))


def a_record(*updates: BorderUpdate, offset: int = 3, part: int = 0) -> BorderRecord:
    return BorderRecord(Source(0, offset, part), 1, updates or (an_update(),))


def only(found: list[LoggedUpdate | PutOff]) -> LoggedUpdate:
    """The only tree, which is to be computed."""
    (tree,) = found
    assert isinstance(tree, LoggedUpdate)
    return tree


def test_it_grows_a_tree_for_each_tenant_that_reads_it(world: World) -> None:
    """Its updates enter in their order, at each reader in order of creation, each at its place."""
    updates = an_update(D, 7), an_update(E, 8, (0,)), an_update(D, 9, (0, 2))

    first, second = world.admit(a_record(*updates))

    assert isinstance(first, LoggedUpdate)
    assert isinstance(second, LoggedUpdate)
    d, e, again = updates
    assert [first.tenant, second.tenant] == [world.first, world.second]
    assert [first.key, second.key] == [TreeKey(5, world.first), TreeKey(5, world.second)]
    assert first.is_input
    assert first.roots == [
        world.root("a", d),
        world.root("b", d),
        world.root("a", e),
        world.root("a", again),
        world.root("b", again),
    ]
    assert second.roots == [world.root("c", d), world.root("c", again)]
    assert first.readers == {"a": [0, 1, 2], "b": [0, 2]}
    assert second.readers == {"c": [0, 2]}


def test_what_nobody_reads_grows_nothing(world: World) -> None:
    for key in list(world.state.inputs_from_outside):
        del world.state.inputs_from_outside[key]

    assert world.admit(a_record()) == []
    assert world.sent == []


def test_where_a_stream_may_not_be_read_nothing_of_it_is_computed(world: World) -> None:
    world.row("c").is_open = False

    (first,) = world.admit(a_record())

    assert first.tenant == world.first


def test_it_is_taken_once(world: World) -> None:
    """Each part by itself, and what another partition sends."""
    taken = [
        bool(world.admit(each))
        for each in (
            a_record(),
            a_record(),
            a_record(part=1),
            a_record(offset=2),
            a_record(offset=4),
            msgspec.structs.replace(a_record(), source=Source(7, 3)),
        )
    ]

    assert taken == [True, False, True, False, True, True]
    assert world.crossed.pop_marked(6) == [
        Marked(5, 0, D, (3, 0)),
        Marked(5, 0, D, (3, 1)),
        Marked(5, 0, D, (4, 0)),
        Marked(5, 7, D, (3, 0)),
    ]
    assert world.crossed.pop_marked(6) == []


def test_of_each_stream_it_is_known_by_itself_what_has_come(world: World) -> None:
    """Who begins to read one of them does so at a place of its own."""
    world.state.marks[1, 0, D] = 3, 0

    tree = only(world.admit(a_record(an_update(D), an_update(E))))

    assert [each.origin for each in tree.roots] == [world.input("a", E)]


def test_whoever_takes_over_knows_what_has_come(world: World) -> None:
    world.admit(a_record())
    marks = {(each.source, each.stream): each.place for each in world.crossed.pop_marked(6)}
    world.partition.commit(lambda begun: Batch(1, begun.offset, 6, 0, marks=marks))
    world.begin()

    assert world.admit(a_record()) == []
    assert world.admit(a_record(offset=4)) != []


def test_trees_of_it_that_are_stored_do_not_grow_again(world: World) -> None:
    """Nothing else of the record is noted before its last tree is stored."""
    world.partition.commit(lambda begun: Batch(1, begun.offset, 5, 0, next_tree=world.second))

    tree = only(world.admit(a_record()))

    assert tree.tenant == world.second
    assert world.crossed.pop_marked(5) == []
    assert len(world.crossed.pop_marked(6)) == 1


def test_what_is_for_those_who_have_moved_is_sent_to_where_they_are(world: World) -> None:
    """Only what has not come before; once and in order there, so its place here goes with it."""
    world.state.service_objects["b"].owner_partition = 0
    world.state.marks[1, 0, E] = 3, 0
    record = a_record(an_update(D), an_update(E))

    first, _second = world.admit(record)

    assert isinstance(first, LoggedUpdate)
    assert [each.origin for each in first.roots] == [world.input("a")]
    ((partition, sent),) = world.sent
    assert partition == 0
    assert isinstance(sent, BorderRecord)
    assert sent.readers == (NamedReader("b", (0,)),)
    assert sent.forwarded == (1, 5)
    assert [each.origin for each in sent.updates] == [D]
    assert sent.source == record.source


def test_nothing_is_sent_on_of_what_has_come_before(world: World) -> None:
    world.state.service_objects["b"].owner_partition = 0
    world.admit(a_record())
    world.sent.clear()

    world.admit(a_record())

    assert world.sent == []


def test_what_was_sent_on_is_for_those_it_names(world: World) -> None:
    """Whatever has come here directly: the way on which it came has an order of its own."""
    world.state.marks[1, 0, D] = 9, 0
    world.state.service_objects["c"].owner_partition = 0
    sent = msgspec.structs.replace(
        a_record(), readers=all_of("b", "c", "nobody"), forwarded=(0, 4)
    )

    tree = only(world.admit(sent))

    assert tree.roots == [world.root("b", an_update())]
    assert world.crossed.pop_marked(6) == []
    ((partition, further),) = world.sent
    assert partition == 0
    assert isinstance(further, BorderRecord)
    assert (further.readers, further.forwarded) == (all_of("c"), (1, 5))


def test_what_comes_before_the_end_of_a_move_is_held(world: World) -> None:
    """For all of its tenant, so that what it gets of others keeps one order; for nobody else."""
    world.row("b").awaits = (0, 2)
    world.begin()

    held, other = world.admit(a_record())

    assert isinstance(held, PutOff)
    assert held.held
    assert (held.key, held.tenant) == (TreeKey(5, world.first), world.first)
    assert isinstance(other, LoggedUpdate)
    again = late(world, held)
    assert again == held, "it is looked at too early"

    world.row("b").awaits = None
    world.partition.count_waiting()
    later = late(world, held)

    assert isinstance(later, LoggedUpdate)
    assert (later.key, later.tenant) == (held.key, world.first)
    assert later.readers == {"a": [0], "b": [0]}


def test_later_it_is_for_those_who_are_fed_then(world: World) -> None:
    """What its tenant had waiting may have changed what they read."""
    first, _second = world.admit(a_record())
    assert isinstance(first, LoggedUpdate)
    del world.state.inputs_from_outside["b", D]
    world.partition.channels.forget_all()

    again = late(world, first.as_put_off())

    assert isinstance(again, LoggedUpdate)
    assert again.readers == {"a": [0]}


def test_it_waits_while_a_reader_s_component_is_loaded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.partition.service_object("c")
    monkeypatch.setattr(components, "LOADING_SECONDS", 0)
    world.partition.trim()

    waits, tree = world.admit(a_record())

    assert isinstance(waits, PutOff)
    assert not waits.held
    assert isinstance(tree, LoggedUpdate)
    assert tree.tenant == world.second


def all_of(*names: str) -> tuple[NamedReader, ...]:
    """These, with the only update of a record."""
    return tuple(NamedReader(name, (0,)) for name in names)


def late(world: World, put_off: PutOff) -> LoggedUpdate | PutOff | None:
    record = msgspec.json.decode(put_off.record, type=BorderRecord)
    return world.crossed.admit_late(record, put_off, at_once=False)


def test_what_was_put_off_grows_the_same_tree_later(world: World) -> None:
    first, _second = world.admit(a_record(an_update(D), an_update(E)))
    assert isinstance(first, LoggedUpdate)
    put_off = first.as_put_off()

    again = late(world, put_off)

    assert again == first._replace(record=put_off.record)
    assert (put_off.key, put_off.service_object) == (first.key, "a")
    assert isinstance(again, LoggedUpdate)
    assert again.as_put_off() == put_off


def test_of_what_is_put_off_only_what_the_tenant_reads_is_kept(world: World) -> None:
    _first, second = world.admit(a_record(an_update(D), an_update(E)))
    assert isinstance(second, LoggedUpdate)

    kept = msgspec.json.decode(second.as_put_off().record, type=BorderRecord)

    assert [each.origin for each in kept.updates] == [D]
    assert kept.readers == all_of("c")


def test_later_it_is_for_those_who_are_there_then(world: World) -> None:
    """A tree names nobody who is gone: its component could not be lent."""
    first, _second = world.admit(a_record())
    assert isinstance(first, LoggedUpdate)
    world.state.service_objects["b"].active_version = None
    world.partition.forget(["a", "b"])

    again = late(world, first.as_put_off())

    assert isinstance(again, LoggedUpdate)
    assert again.roots == [world.root("a", an_update())]
    assert again.readers == {"a": [0]}

    world.state.service_objects["a"].active_version = None
    world.partition.forget(["a"])
    assert late(world, first.as_put_off()) is None


def test_a_record_asks_for_all_its_readers_at_once(world: World) -> None:
    record, on_its_way = a_record(), msgspec.structs.replace(a_record(), readers=all_of("b"))
    world.state.service_objects["b"].owner_partition = 0
    world.crossed.look_up([record, None, on_its_way])

    assert list(world.crossed.readers([record, None, on_its_way])) == ["a", "c", "b"]


def test_a_reader_that_has_left_its_component_reads_on(world: World) -> None:
    """What it knows is loaded anew with its component: the same input, by the same name."""
    before = only(world.admit(a_record(an_update(E))))
    world.partition.forget(["a"])
    known = world.partition.service_object("a")
    assert known is not None

    after = only(world.admit(a_record(an_update(E), offset=4)))

    assert after.roots == before.roots
