"""Nobody waits for what takes long, but who has to do with it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import orjson
import pytest
from memory import MemoryPlatform
from memory.partition_store import MemoryPartitionStore
from new_service_objects import new_service_object
from oracle import Composite, Object
from put_off_runs import CODE, Runs, Whims, append
from serial_order import define, functions
from waiting import until

from pipeline.batching.means import STORING_THREADS, Means
from pipeline.batching.slots import threads_for
from pipeline.engine import Engine
from pipeline.limits import BACKLOG
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.pressing import Pressing
from pipeline.task import Task
from pipeline.work import Row
from sandbox import ProcessorSeconds, TookTooLong, argument_names
from sandbox.trees import Call, Grown
from servioticy.domain.model import ServiceObject, ServiceObjectKey
from servioticy.domain.records import TickRecord, write
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch


class Held:
    """An evaluator that holds tenants' calls until they are let go."""

    def __init__(self, evaluator) -> None:
        self._evaluator = evaluator
        self.gates: dict[str, Event] = {}
        self.asked: set[str] = set()
        self.errors: dict[str, list[Exception]] = {}

    def hold(self, *tenants: int) -> None:
        for each in tenants:
            self.gates[str(each)] = Event()

    def let_go(self) -> None:
        for each in self.gates.values():
            each.set()

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        self.asked.add(tenant)
        if tenant in self.gates:
            assert self.gates[tenant].wait(60)
        if self.errors.get(tenant):
            raise self.errors[tenant].pop()
        return self._evaluator.evaluate(tenant, calls, within)

    def is_ready(self, _tenant: str) -> bool:
        return True

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        return self._evaluator.processor_seconds(tenant)


class World:
    """Three tenants with an object each."""

    NAMES = ("a", "b", "c")

    def __init__(self, askers: ThreadPoolExecutor, storing: ThreadPoolExecutor) -> None:
        self.platform = MemoryPlatform()
        self.state = self.platform.state
        self.tenants = {
            name: self.platform.tenants.tenant_of(self.platform.tenants.create_tenant(name))
            for name in self.NAMES
        }
        things = [
            Object(name, ("d0",), (Composite("c", ("d0",), lambda values: values[0]),))
            for name in self.NAMES
        ]
        for thing in things:
            define(thing, {(thing.id, "c"): CODE}, self.tenants[thing.id], self.platform)
        self.shares = Whims([])
        self.held = Held(functions(things))
        engine = Engine({"javascript": self.held}, 1000, 10**6, processors=2)
        self.arrived: list[Row] = []
        means = Means(askers, storing, arrivals=lambda: self.arrived)
        store = self.platform.partition_store(argument_names)
        output = self.platform.output
        self.task = Task(0, store, lambda: output(0), engine, Fairness(self.shares), means=means)
        self.taken = 0
        self.take()

    def rows(self) -> list[Row]:
        """What is new in the log."""
        log = self.state.log[0]
        return [Row(at, log[at]) for at in range(self.taken, len(log))]

    def take(self) -> None:
        """Let the task take what is new in the log."""
        rows = self.rows()
        self.task.take(rows)
        self.taken += len(rows)

    def put(self, *names: str, at: int = 1) -> None:
        append(self.platform, [((name, "d0"), at, at) for name in names])
        self.take()

    def define_anew(self, name: str) -> None:
        """Have the same document take its place as another version."""
        document = orjson.loads(self.state.definitions[name, 1])
        new = new_service_object(self.tenants[name], name, document)
        revision = self.platform.graph.nodes([name])[name].revision
        self.platform.changes.replace(new, revision)
        self.take()

    def stored(self) -> list[str]:
        """Streams with their timestamps."""
        names = {number: ref for ref, number in self.state.streams.items()}
        rows = [row for _partition, row in self.state.updates.values()]
        return sorted(f"{'/'.join(names[row.stream_id])} {row.timestamp}" for row in rows)

    def emitted(self, name: str, stream: str) -> list[int]:
        found = [e for e in self.state.emitted if (e.service_object, e.stream) == (name, stream)]
        return [each.timestamp for each in found]

    @property
    def waits(self) -> list[int]:
        """The offsets of records that are to be computed late."""
        waiting = self.state.put_off.keys() - self.state.taken_up
        return sorted(key.offset for _partition, key in waiting)

    def finish(self) -> None:
        self.held.let_go()
        until(lambda: self.task.take([]) or not (self.waits or self.begun.schedule.is_busy))

    @property
    def begun(self):
        return self.task._begun


@pytest.fixture
def world() -> Iterator[World]:
    with (
        ThreadPoolExecutor(threads_for(2)) as askers,
        ThreadPoolExecutor(STORING_THREADS) as storing,
    ):
        made = World(askers, storing)
        yield made
        made.held.let_go()


def both(name: str, at: int = 1) -> list[str]:
    return [f"{name}/c {at}", f"{name}/d0 {at}"]


def test_others_are_stored_meanwhile(world: World) -> None:
    """Though nobody knew that it was slow: it was never met."""
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    assert world.stored() == both("b")
    assert world.state.progress[0].next_offset == world.taken

    world.put("b", at=2)
    assert world.stored() == sorted([*both("b"), *both("b", 2)])
    world.finish()
    assert world.stored() == sorted([*both("a"), *both("b"), *both("b", 2)])
    assert not world.waits


def test_slow_ones_of_several_tenants_are_under_way_at_once(world: World) -> None:
    world.held.hold(world.tenants["a"], world.tenants["b"])
    world.put("a", "b", "c")

    assert world.stored() == both("c")
    assert world.held.asked == {str(each) for each in world.tenants.values()}
    world.finish()
    assert world.stored() == sorted([*both("a"), *both("b"), *both("c")])


def test_who_presses_is_told(world: World) -> None:
    """Who is over its share, and who has records put off though it is not."""
    a, b, _c = world.tenants.values()
    assert world.task.pressing() == []
    world.held.hold(a)
    world.put("a", "b")
    world.put("a", at=2)
    world.shares.always = {b}

    assert sorted(world.task.pressing()) == [Pressing(a, 2, 0.0), Pressing(b, 0, 0.5)]
    world.shares.always = set()
    world.finish()
    assert world.task.pressing() == []
    world.shares.always = {b}
    world.task.release()
    assert world.task.pressing() == []


def test_nothing_is_loaded_in_a_batch_of_who_is_over_its_share(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its update is put off in any case; its component took others' time whatever its share."""
    read: list[str] = []
    service_objects = MemoryPartitionStore.service_objects

    def noted(self: MemoryPartitionStore, ids: Sequence[str]) -> Iterable[ServiceObject]:
        read.extend(ids)
        return service_objects(self, ids)

    monkeypatch.setattr(MemoryPartitionStore, "service_objects", noted)
    world.shares.always = {world.tenants["a"]}
    world.begun.partition.forget(["a", "b"])
    world.put("a", "b")

    assert world.stored() == both("b")
    assert set(read) == {"b"}
    world.shares.always = set()
    world.finish()
    assert world.stored() == sorted([*both("a"), *both("b")])


def test_its_own_updates_wait_and_come_in_order(world: World) -> None:
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.put("a", at=2)
    world.put("a", at=3)
    assert len(world.waits) == 3

    world.finish()
    assert world.emitted("a", "d0") == world.emitted("a", "c") == [1, 2, 3]


def test_a_change_of_another_tenant_does_not_wait(world: World) -> None:
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.platform.changes.erase(ServiceObjectKey(world.tenants["b"], "b"), "d0")
    world.take()

    assert len(world.waits) == 1
    assert world.stored() == ["b/c 1"]


def test_a_change_of_its_own_waits_behind_it(world: World) -> None:
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.platform.changes.erase(ServiceObjectKey(world.tenants["a"], "a"), "d0")
    world.put("a", at=2)

    assert len(world.waits) == 3
    world.finish()
    assert world.emitted("a", "d0") == world.emitted("a", "c") == [1, 2]
    assert [row.timestamp for _at, row in world.state.updates.values()].count(2) == 2


def test_others_go_on_while_a_definition_that_was_put_off_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That waits for the disk, of which a third of a second is not rare on a full machine."""
    gate, storing = Event(), Event()
    store = MemoryPartitionStore.store

    def slowly(self: MemoryPartitionStore, batch: Batch) -> Mapping[int, int]:
        if batch.effect is not None:
            storing.set()
            assert gate.wait(60)
        return store(self, batch)

    monkeypatch.setattr(MemoryPartitionStore, "store", slowly)
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.define_anew("a")
    world.put("a", at=2)
    world.held.let_go()
    until(lambda: world.task.take([]) or storing.is_set())

    world.put("b", at=2)
    world.put("b", at=3)
    assert world.stored() == sorted([*both("a"), *both("b"), *both("b", 2), *both("b", 3)])
    assert world.state.service_objects["a"].active_version == 1

    gate.set()
    world.finish()
    assert world.state.service_objects["a"].active_version == 2
    assert world.emitted("a", "d0") == world.emitted("a", "c") == [1, 2]
    assert {each.version for each in world.state.emitted if each.timestamp == 2} == {1, 2}


def test_a_definition_that_cannot_be_stored_is_a_dead_letter_and_its_tenant_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryPartitionStore.store

    def refusing(self: MemoryPartitionStore, batch: Batch) -> Mapping[int, int]:
        if batch.effect is not None:
            raise ValueError("a fault of ours")
        return store(self, batch)

    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.define_anew("a")
    monkeypatch.setattr(MemoryPartitionStore, "store", refusing)
    world.put("a", at=2)
    world.finish()

    assert len(world.state.dead_letters) == 1
    assert world.state.service_objects["a"].active_version == 1
    assert world.emitted("a", "c") == [1, 2]


def test_who_is_alone_is_waited_for(world: World) -> None:
    """To put it off would cost it, and help nobody."""
    world.shares.contested = False
    world.held.hold(world.tenants["a"])
    with ThreadPoolExecutor(1) as elsewhere:
        taking = elsewhere.submit(world.put, "a")
        until(lambda: str(world.tenants["a"]) in world.held.asked)
        with pytest.raises(TimeoutError):
            taking.result(0.1)
        world.held.let_go()
        taking.result()
    assert not world.state.put_off
    assert world.stored() == both("a")


def test_until_somebody_else_comes(world: World) -> None:
    world.shares.contested = False
    world.held.hold(world.tenants["a"])
    with ThreadPoolExecutor(1) as elsewhere:
        taking = elsewhere.submit(world.put, "a")
        until(lambda: str(world.tenants["a"]) in world.held.asked)
        append(world.platform, [(("a", "d0"), 2, 2)])
        own = len(world.state.log[0]) - 1
        world.arrived = [Row(own, world.state.log[0][own])]
        with pytest.raises(TimeoutError):
            taking.result(0.1)
        append(world.platform, [(("b", "d0"), 1, 1)])
        world.arrived = [*world.arrived, Row(own + 1, world.state.log[0][own + 1])]
        taking.result()
    world.take()
    assert world.stored() == both("b")
    world.finish()
    assert world.stored() == sorted([*both("a"), *both("a", 2), *both("b")])


def test_a_time_of_its_own_is_nobody_elses(world: World) -> None:
    """Else an operator's clock would have all put off that its own tenant sends."""
    world.shares.contested = False
    world.held.hold(world.tenants["a"])
    with ThreadPoolExecutor(1) as elsewhere:
        taking = elsewhere.submit(world.put, "a")
        until(lambda: str(world.tenants["a"]) in world.held.asked)
        tick = write(TickRecord("a", "c", 5, (b"key",)))
        world.arrived = [Row(len(world.state.log[0]), tick)]
        with pytest.raises(TimeoutError):
            taking.result(0.2)
        world.held.let_go()
        taking.result()

    assert not world.state.put_off


def test_a_device_that_nobody_has_met_is_somebody_else_only_if_it_is_another_tenants(
    world: World,
) -> None:
    """Else a fleet that begins to send would be put off, and all that it sends behind that."""
    tenant = world.tenants["a"]
    define(Object("more", ("d0",), ()), {}, tenant, world.platform)
    world.take()
    world.task._begun.schedule._partition.forget(["more"])  # type: ignore[union-attr]
    world.shares.contested = False
    world.held.hold(tenant)
    with ThreadPoolExecutor(1) as elsewhere:
        taking = elsewhere.submit(world.put, "a")
        until(lambda: str(tenant) in world.held.asked)
        append(world.platform, [(("more", "d0"), 2, 2)])
        world.arrived = [Row(len(world.state.log[0]) - 1, world.state.log[0][-1])]
        with pytest.raises(TimeoutError):
            taking.result(0.2)
        world.held.let_go()
        taking.result()

    assert not world.state.put_off
    assert world.stored() == both("a")


def test_what_a_worker_has_begun_is_not_stored_once_it_has_let_go(world: World) -> None:
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.task.release()
    world.held.let_go()
    assert world.stored() == both("b")

    runs = Runs(world.platform, {"javascript": world.held}, Whims([]), {})
    runs.finish()
    assert world.stored() == sorted([*both("a"), *both("b")])


def test_what_is_too_much_of_one_is_put_off_and_cut(world: World) -> None:
    """The others' is stored meanwhile."""
    world.held.errors[str(world.tenants["a"])] = [TookTooLong(1.0, 0.5)] * 2
    append(world.platform, [(("a", "d0"), at, at) for at in (1, 2, 3)])
    world.put("b")
    assert world.stored() == both("b")
    assert len(world.waits) == 3

    world.finish()
    assert world.emitted("a", "c") == [1, 2, 3]
    assert not world.state.dead_letters


def test_a_bug_that_one_meets_is_no_affair_of_others(world: World) -> None:
    broken = world.tenants["a"]
    world.held.errors[str(broken)] = [ZeroDivisionError()] * 2
    world.put("a", "b")
    assert world.stored() == both("b")

    world.finish()
    assert [each.offset for each in world.state.dead_letters] == [3]
    assert world.stored() == both("b")
    world.put("a", at=2)
    assert world.stored() == sorted([*both("a", 2), *both("b")])


def test_a_move_waits_for_its_own_tenant_only(world: World) -> None:
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    schedule = world.begun.schedule
    schedule._late.finish(world.tenants["b"], 100)

    assert schedule._late.tenants == {world.tenants["a"]}


def test_of_a_backlog_a_slice_is_a_batch(world: World) -> None:
    """Nobody is served quickly there, and to put it off would be dearer for all."""
    world.shares.each = lambda _tenant: 0.005
    updates = [(("a", "d0"), at, at) for at in range(BACKLOG)]
    append(world.platform, updates)
    world.take()

    assert not world.state.put_off
    assert len(world.stored()) == 2 * BACKLOG


def test_who_comes_with_a_burst_is_seen_before_it_is_computed(world: World) -> None:
    """Else the first batch of a newcomer would be as long as if it were alone."""
    happened: list[object] = []
    world.shares.saw = lambda tenants: happened.append(set(tenants))
    run = world.begun.schedule._batches.run
    world.begun.schedule._batches.run = lambda work: happened.append("run") or run(work)
    append(world.platform, [(("a", "d0"), 1, 1), (("b", "d0"), 1, 1)])
    world.take()

    both_tenants = {world.tenants["a"], world.tenants["b"]}
    assert happened.index(both_tenants) < happened.index("run")


@pytest.mark.parametrize(("contested", "late"), [(True, 27), (False, 0)])
def test_the_rest_of_a_burst_is_put_off(world: World, *, contested: bool, late: int) -> None:
    """Trees of 8 ms are not slow, but thirty of them would hold up others batch after batch."""
    world.shares.each = lambda _tenant: 0.008
    world.shares.contested = contested
    world.shares.always = {world.tenants["c"]}
    world.begun.partition.waiting[world.tenants["c"]] = 0
    append(world.platform, [(("a", "d0"), at, at) for at in range(30)])
    append(world.platform, [(("b", "d0"), 1, 1)])
    schedule = world.begun.schedule
    schedule.go_on = lambda: None
    world.take()

    assert len(world.waits) == late
    assert len(world.stored()) == 2 * (31 - late)


def test_while_one_is_active_what_waits_is_computed_until_nothing_waits(world: World) -> None:
    """And then it is not asked for again."""
    world.shares.always = {world.tenants["a"]}
    append(world.platform, [(("a", "d0"), at, at) for at in range(250)])
    world.take()
    world.shares.always, world.shares.contested = set(), False
    world.shares.each = lambda _tenant: 0.002
    asked: list[int] = []
    store = world.begun.partition.store

    def put_off(partition, tenant, *most):
        asked.append(tenant)
        return type(store).put_off(store, partition, tenant, *most)

    store.put_off = put_off
    world.task.take([])

    assert len(world.stored()) == 500
    assert not world.begun.partition.waiting
    assert len(asked) == 3, "a hundred at once"


def test_who_is_quick_does_not_wait_until_all_of_who_is_slow_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though what comes of both is stored late."""
    slow, quick, _ = world.tenants.values()
    gate, begun = Event(), Event()
    store = world.begun.partition.store
    whole = store.store

    def held(batch):
        if batch.claim is not None and any(each.tenant == slow for each in batch.updates):
            begun.set()
            assert gate.wait(60)
        return whole(batch)

    monkeypatch.setattr(store, "store", held)
    pieces = world.begun.schedule._pieces
    monkeypatch.setattr(pieces, "was_slow", lambda flight: flight.tenant == slow)
    world.held.hold(slow, quick)
    world.put("a", "b", "c")
    world.held.gates[str(slow)].set()
    until(lambda: world.task.take([]) or begun.is_set())
    world.held.let_go()
    until(lambda: world.task.take([]) or both("b")[0] in world.stored())

    assert world.stored() == sorted([*both("b"), *both("c")])
    gate.set()
    world.finish()
    assert world.stored() == sorted([*both("a"), *both("b"), *both("c")])


def test_a_piece_whose_updates_cost_much_was_slow(world: World) -> None:
    """Whatever was believed of it before."""
    world.held.hold(*world.tenants.values())
    world.put("a", "b")
    (flight, _other) = [e.flight for e in world.begun.schedule._late._under_way.values()]
    was_slow = world.begun.schedule._pieces.was_slow

    flight.spending.processor = 0.0099
    assert not was_slow(flight)
    flight.spending.processor = 0.01
    assert was_slow(flight)


def test_what_has_failed_holds_nothing_of_its_partition(world: World) -> None:
    """Garbage is looked for between batches only, and this may be tried again for long."""
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    (late,) = world.begun.schedule._late._under_way.values()
    steps = weakref.ref(late.flight.steps)
    late = None
    world.held.errors[str(world.tenants["a"])] = [Unavailable("no process")]
    gc.collect()
    gc.disable()
    try:
        world.held.let_go()
        with pytest.raises(Unavailable, match="no process"):
            world.begun.schedule.settle()
        until(lambda: steps() is None)
    finally:
        gc.enable()


def test_who_waits_for_rows_is_told_whichever_inbox_it_has_by_then(world: World) -> None:
    """A task outlives the query that gives it rows."""
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    woken = Event()
    world.task.means.wake = woken.set
    world.held.let_go()

    assert woken.wait(60)


def test_what_waits_is_not_counted_with_each_piece_that_is_stored(world: World) -> None:
    """It would take all others as long as thousands of one tenant's records wait."""
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.put("a", at=2)
    assert world.begun.partition.waiting == {world.tenants["a"]: 2}
    counted = world.begun.partition.counted
    world.held.let_go()

    world.finish()
    assert world.emitted("a", "c") == [1, 2]
    assert world.begun.partition.counted == counted
    assert not world.begun.partition.waiting


def test_who_is_counted_anew_while_it_is_stored_is_not_forgotten(world: World) -> None:
    """A control record of another tenant's may have all counted."""
    world.held.hold(world.tenants["a"])
    world.put("a", "b")
    world.put("a", at=2)
    gate = Event()
    for _ in range(STORING_THREADS):
        world.task.means.storing.submit(gate.wait, 60)
    world.held.let_go()
    late = world.begun.schedule._late
    until(lambda: late.look() or late._storing)
    gate.set()
    late._storing[0][0].sent.result()
    world.begun.partition.count_waiting()

    world.finish()
    assert world.emitted("a", "c") == [1, 2]
