"""Nobody waits for what is computed beside, but who has to do with it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from unittest import mock

import pytest
from memory import MemoryPlatform
from oracle import Composite, Object
from put_off_runs import CODE, Runs, Whims, append
from serial_order import define, functions
from waiting import until
from whenever import Whenever

from pipeline.engine import Engine
from pipeline.limits import BACKLOG
from pipeline.sharing.costs import Trees
from pipeline.sharing.fairness import Fairness
from pipeline.state import excerpt as excerpts
from pipeline.task import Task
from pipeline.work import Row
from sandbox import ProcessorSeconds, argument_names
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable


class Held:
    """An evaluator that holds one tenant's calls until it is let go."""

    def __init__(self, evaluator, tenant: int) -> None:
        self._evaluator, self._tenant = evaluator, str(tenant)
        self.asked, self.goes_on = Event(), Event()

    def evaluate(self, tenant, calls, within=None):
        if tenant == self._tenant:
            self.asked.set()
            assert self.goes_on.wait(60)
        return self._evaluator.evaluate(tenant, calls, within)

    def processor_seconds(self, tenant):
        return self._evaluator.processor_seconds(tenant)


class World:
    """Two tenants with an object each, of which the first one's scripts take long."""

    def __init__(self, executor: ThreadPoolExecutor | Whenever) -> None:
        self.platform = MemoryPlatform()
        self.tenants = [
            self.platform.tenants.tenant_of(self.platform.tenants.create_tenant(name))
            for name in "ab"
        ]
        things = [
            Object(name, ("d0",), (Composite("c", ("d0",), lambda values: values[0]),))
            for name in ("slow", "quick")
        ]
        for thing, tenant in zip(things, self.tenants, strict=True):
            define(thing, {(thing.id, "c"): CODE}, tenant, self.platform)
        self.shares = Whims([])
        self.shares.contested = False
        self.held = Held(functions(things), self.tenants[0])
        engine = Engine({"javascript": self.held}, 100, 10**6)
        store = self.platform.partition_store(argument_names)
        fairness = Fairness(self.shares)
        output = self.platform.output
        self.task = Task(0, store, lambda: output(0), engine, fairness, executor=executor)
        self.taken = 0
        self.take()

    def take(self) -> None:
        """Let the task take what is new in the log."""
        log = self.platform.state.log[0]
        self.task.take([Row(at, log[at]) for at in range(self.taken, len(log))])
        self.taken = len(log)

    def put(self, name: str, at: int) -> None:
        append(self.platform, [((name, "d0"), at, at)])
        self.take()

    def put_late(self, name: str, at: int) -> None:
        """So that it is computed beside."""
        self.shares.always = {self.tenants[0]}
        self.put(name, at)
        self.shares.always = set()
        self.shares.contested = True
        self.task.take([])
        self.shares.contested = False

    def stored(self) -> list[tuple[str, int]]:
        state = self.platform.state
        names = {number: ref for ref, number in state.streams.items()}
        rows = [row for _partition, row in state.updates.values()]
        return sorted(("/".join(names[row.stream_id]), row.timestamp) for row in rows)

    def finish(self) -> None:
        self.held.goes_on.set()
        until(lambda: self.task.take([]) or not self.task._begun.schedule.is_busy)


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        made = World(executor)
        yield made
        made.held.goes_on.set()


BOTH = [("slow/c", 1), ("slow/d0", 1)]


def test_others_are_computed_meanwhile(world: World) -> None:
    world.put_late("slow", 1)
    assert world.held.asked.wait(60)

    world.put("quick", 1)
    assert world.stored() == [("quick/c", 1), ("quick/d0", 1)]
    assert world.task.patience < 0.1

    world.finish()
    assert world.stored() == [("quick/c", 1), ("quick/d0", 1), *BOTH]
    assert not world.task._begun.partition.lent


def test_its_own_updates_wait_and_come_in_order(world: World) -> None:
    world.put_late("slow", 1)
    world.put("slow", 2)
    assert world.stored() == []

    world.finish()
    until(lambda: world.task.take([]) or len(world.stored()) == 4)
    emitted = [each.timestamp for each in world.platform.state.emitted if each.stream == "d0"]
    assert emitted == [1, 2]


def test_a_change_of_what_is_not_lent_does_not_wait(world: World) -> None:
    world.put_late("slow", 1)
    assert world.held.asked.wait(60)
    world.platform.changes.erase(ServiceObjectKey(world.tenants[1], "quick"), "d0")
    world.take()

    assert world.task._begun.schedule.is_busy
    assert world.platform.state.progress[0].next_offset == world.taken


def test_what_the_partition_forgets_meanwhile_is_computed_all_the_same() -> None:
    """It loads a component anew where a change may concern it."""
    world = World(Whenever([False]))
    world.held.goes_on.set()
    world.put_late("slow", 1)
    partition = world.task._begun.partition
    partition.forget({"slow"}, last_updates=True)

    world.finish()
    assert world.stored() == BOTH
    assert not world.platform.state.dead_letters


def test_a_change_of_what_is_lent_is_put_off(world: World) -> None:
    """Whosesoever it is: nobody else waits for it."""
    world.put_late("slow", 1)
    assert world.held.asked.wait(60)
    world.task._begun.partition.waiting.clear()
    world.platform.changes.erase(ServiceObjectKey(world.tenants[0], "slow"), "d0")
    world.take()

    assert world.task._begun.schedule.is_busy
    assert world.platform.state.progress[0].next_offset == world.taken
    assert len(world.platform.state.put_off) == 2


def test_what_a_worker_has_begun_is_not_stored_once_it_has_let_go(world: World) -> None:
    world.put_late("slow", 1)
    assert world.held.asked.wait(60)
    excerpt = world.task._begun.schedule._beside._piece.excerpt
    with ThreadPoolExecutor(1) as elsewhere:
        release = elsewhere.submit(world.task.release)
        until(lambda: excerpt._is_withdrawn)
        world.held.goes_on.set()
        release.result()
    assert world.stored() == []

    runs = Runs(world.platform, {"javascript": world.held}, Whims([]), {})
    runs.finish()
    assert world.stored() == BOTH


def test_who_is_met_for_the_first_time_is_computed_beside(world: World) -> None:
    """Nobody knows how long it takes."""
    world.shares.contested = True
    world.put("slow", 1)
    assert world.held.asked.wait(60)

    world.put("quick", 1)
    assert world.stored() == []
    assert len(world.platform.state.put_off) == 2
    world.finish()
    until(lambda: world.task.take([]) or len(world.stored()) == 4)


def test_of_a_backlog_one_is_met_at_once(world: World) -> None:
    world.shares.contested = True
    updates = [(("quick", "d0"), at, at) for at in range(BACKLOG)]
    append(world.platform, [updates[0], (("slow", "d0"), 1, 1), *updates[1:]])
    world.take()

    assert len(world.platform.state.put_off) == 1, "the other's"
    assert len(world.stored()) == 2 * BACKLOG


@pytest.mark.parametrize(("contested", "late"), [(True, 23), (False, 0)])
def test_the_rest_of_a_burst_that_fills_a_batch_is_put_off(*, contested: bool, late: int) -> None:
    """Trees of 8 ms are not slow, but thirty of them would hold up others batch after batch."""
    world = World(Whenever([False] * 1000))
    world.held.goes_on.set()
    pace = world.task._begun.schedule._pace
    pace.learn(dict.fromkeys(world.tenants, Trees(1, 0.008, 0.008)))
    world.shares.contested = contested
    append(world.platform, [(("quick", "d0"), at, at) for at in range(30)])
    append(world.platform, [(("slow", "d0"), 1, 1)])
    world.take()

    assert len(world.platform.state.put_off) == late
    assert len(world.stored()) == 2 * (31 - late)


def test_while_one_is_active_what_waits_is_computed_until_nothing_waits(world: World) -> None:
    """And then it is not asked for again."""
    world.held.goes_on.set()
    world.shares.always = {world.tenants[0]}
    append(world.platform, [(("slow", "d0"), at, at) for at in range(250)])
    world.take()
    world.shares.always = set()
    asked: list[int] = []
    store = world.task._begun.partition.store

    def put_off(partition, tenant, *most):
        asked.append(tenant)
        return type(store).put_off(store, partition, tenant, *most)

    store.put_off = put_off
    world.task.take([])

    assert len(world.stored()) == 500
    assert not world.task._begun.partition.waiting
    assert len(asked) == 4, "20 of one that nobody knows, then a hundred at once"


def test_what_is_given_back_is_lent_until_the_end(world: World) -> None:
    """Others of its component would be computed with what is known by half."""
    world.put_late("slow", 1)
    begun = world.task._begun
    world.held.goes_on.set()
    until(lambda: begun.schedule._beside.has_ended)
    lent = []
    with mock.patch.object(excerpts, "AT_ONCE", 1):
        while not begun.schedule._beside.advance():
            lent.append(begun.partition.lent)

    assert lent == [{"slow"}] * 2, "two streams have changed"
    assert not begun.partition.lent


class Failing:
    """An evaluator that cannot say anything, as its process is gone."""

    def evaluate(self, tenant, calls, within=None):
        raise Unavailable("no process")

    def processor_seconds(self, tenant):
        return ProcessorSeconds()


def test_what_has_failed_holds_nothing_of_its_partition(world: World) -> None:
    """Garbage is looked for between batches only, and this may be tried again for long."""
    world.put_late("slow", 1)
    assert world.held.asked.wait(60)
    piece = world.task._begun.schedule._beside._piece
    excerpt = weakref.ref(piece.excerpt)
    world.held._evaluator = Failing()
    gc.collect()
    gc.disable()
    try:
        world.held.goes_on.set()
        until(piece.future.done)
        with pytest.raises(Unavailable, match="no process"):
            world.task._begun.schedule.settle()
        piece = None
        world.task._forget()
        until(lambda: excerpt() is None)
    finally:
        gc.enable()
