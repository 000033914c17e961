"""Whenever what is answered, what comes of it equals one thing after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import MemoryPlatform
from put_off_runs import Runs, Store, Whims, append
from serial_order import LAW, Generous, define, functions, histories, mixtures, value_of
from whenever import Whenever

from pipeline.batching import beside, flow, schedule, slots
from pipeline.batching.means import Means
from pipeline.engine import Engine
from pipeline.limits import Limits
from pipeline.sharing.fairness import Fairness
from pipeline.stages import emit
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.ports.effects import ActivateAll

LIMITS = Limits(8, 1000)


@pytest.fixture(autouse=True, scope="module")
def _nobody_waits() -> Iterator[None]:
    """Whatever is not answered at once is slow, two records are a backlog, what needs a last
    update gives way before and behind its question, and of what comes late one is sent at a time.
    """
    with (
        mock.patch.object(flow, "QUICK_SECONDS", 0.0),
        mock.patch.object(flow, "MET_SECONDS", 0.0),
        mock.patch.object(slots, "POLL_SECONDS", 0.0),
        mock.patch.object(schedule, "Beside", Beside),
        mock.patch("pipeline.engine.BACKLOG", 2),
        mock.patch("pipeline.process.LONG", 0),
        mock.patch.object(emit, "MANY_LATE", 1),
        mock.patch.object(emit, "LATE_AT_ONCE", 1),
        mock.patch.object(emit, "LATE_PAUSE_SECONDS", 0.0),
    ):
        yield


class Stopping:
    """An evaluator, a store, or an output, whose calls are done bit by bit."""

    def __init__(self, inner, executor: Whenever) -> None:
        vars(self).update(_inner=inner, _executor=executor)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._inner, name, value)

    def __getattr__(self, name: str):
        found = getattr(self._inner, name)
        if name not in ("evaluate", "store", "last_updates", "emit", "flush"):
            return found

        def call(*arguments, **named):
            self._executor.stop()
            try:
                return found(*arguments, **named)
            finally:
                self._executor.stop()

        return call


class Noting:
    """A store that notes in which order the records of the log have taken effect."""

    def __init__(self, store, order: list[int]) -> None:
        self._store, self._order = store, order

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def store(self, batch):
        replaced = self._store.store(batch)
        self._order += [each.offset for each in batch.updates if each.position == 0]
        if isinstance(batch.effect, ActivateAll):
            self._order += range(batch.first_offset, batch.next_offset)
        elif batch.effect is not None:
            self._order += [key.offset for key in batch.taken_up] or [batch.next_offset - 1]
        return replaced


class Awaited(Future):
    """What an executor makes true whenever it likes: who asks for it lets that go on."""

    def __init__(self, executor: Whenever, act) -> None:
        super().__init__()
        self._executor, self._act = executor, act

    def done(self) -> bool:
        is_asked = not self._executor.is_here  # and not by whoever makes it true
        if is_asked and not super().done() and self._executor.wants:
            self._executor.doing(self._act).step()
        return super().done()

    def exception(self, timeout=None):
        while not super().done():
            self._executor.doing(self._act).step()
        return super().exception(timeout)


class Beside(beside.Beside):
    """Stores and sends whenever its executor likes."""

    def store(self, *arguments):
        storing = super().store(*arguments)
        storing.stored = Awaited(self._executor, self._run)
        storing.sent = Awaited(self._executor, self._run)
        return storing


class Flowing(Runs):
    """Tasks of which each is given executors, and may be survived by what it has begun."""

    def __init__(self, executor: Whenever, *arguments) -> None:
        self.executor = executor
        self.order: list[int] = []
        super().__init__(*arguments)

    def _new(self) -> Task:
        self.platform.state.claims.clear()
        store = Noting(self.platform.partition_store(argument_names), self.order)
        store = Stopping(Store(store, self.taken, self.deaths), self.executor)
        evaluators = {"javascript": Stopping(self.evaluators["javascript"], self.executor)}
        engine = Engine(evaluators, self.most, 10**6, LIMITS, processors=2)
        fairness = Fairness(self.shares)
        means = Means(self.executor, self.executor)

        def output():
            return Stopping(self.platform.output(0), self.executor)

        return Task(0, store, output, engine, fairness, means=means)

    def haunt(self) -> None:
        """Let what a dead task has begun come to an end: nothing of it is to be stored."""
        mine = self.task._begun and self.task._begun.schedule
        futures = set()
        if mine is not None:
            futures |= {each.future for each in mine._flow._slots._running}
            for beside_ in mine._late._beside.values():
                futures |= {each for each in self.executor.left if each.does(beside_._run)}
        for each in [each for each in self.executor.left if each not in futures]:
            before = len(self.order)
            each.do()
            assert len(self.order) == before


def written(objects, codes, parts, middle: int) -> MemoryPlatform:
    """A platform whose log has some definitions, some updates, and then others of both."""
    platform = MemoryPlatform()
    for some, history in zip((objects[:middle], objects[middle:]), parts, strict=True):
        for each in some:
            token = platform.tenants.create_tenant(f"t{each.tenant}")
            define(each, codes, platform.tenants.tenant_of(token), platform)
        append(platform, history)
    return platform


@LAW
@given(data=st.data())
def test_whatever_is_late_it_equals_one_after_the_other(data) -> None:
    """Whenever it is done, whoever dies, and whatever joins the components meanwhile."""
    objects, codes, _others = data.draw(mixtures(cycles=data.draw(st.booleans()), options=True))
    middle = data.draw(st.integers(1, len(objects)))
    parts = data.draw(histories(objects[:middle])), data.draw(histories(objects))
    platform = written(objects, codes, parts, middle)
    booleans = st.lists(st.booleans(), max_size=60)
    over = st.lists(st.sampled_from([set(), set(), {1}, {2}]), max_size=10)
    deaths = st.dictionaries(st.integers(1, 30), st.sampled_from(["before", "after"]), max_size=3)
    separate = len({each.tenant for each in objects}) == 1
    runs = Flowing(
        Whenever(data.draw(booleans)),
        platform,
        {"javascript": functions(objects)},
        # Of whose composites others' updates wake nobody is over a share: that is another law.
        Whims(data.draw(over) if separate else []),
        data.draw(deaths),
        data.draw(st.integers(1, 5)),
    )
    end = len(platform.state.log[0])
    cuts = data.draw(st.lists(st.integers(0, end), max_size=20))
    for begin, until in pairwise(sorted({0, *cuts, end})):
        runs.shares.contested = not runs.shares.contested or data.draw(st.booleans())
        runs.take(begin, until)
        if data.draw(st.booleans()):
            runs.haunt()
    runs.finish()
    while runs.task._begun is None or runs.task._begun.schedule.is_busy:
        runs.take(end, end)
    runs.haunt()

    assert sorted(runs.order) == list(range(end))
    again = written(objects, codes, parts, middle)
    again.state.log[0] = [again.state.log[0][offset] for offset in runs.order]
    store = again.partition_store(argument_names)
    engine = Engine({"javascript": functions(objects)}, 1000, 10**6, LIMITS)
    Task(0, store, lambda: again.output(0), engine, Fairness(Generous(1.0))).take(
        [Row(at, each) for at, each in enumerate(again.state.log[0])]
    )
    assert outcome(platform) == outcome(again)
    tenants = {each.id: each.tenant for each in objects}
    for tenant in set(tenants.values()):
        own = [o for o in runs.order if tenant_of(platform, o, tenants) == tenant]
        assert own == sorted(own)


def tenant_of(platform: MemoryPlatform, offset: int, tenants: dict[str, int]) -> int:
    """Whose record it is."""
    record = platform.state.log[0][offset]
    return next(tenant for id_, tenant in tenants.items() if f'"{id_}"'.encode() in record)


def outcome(platform: MemoryPlatform) -> tuple[object, ...]:
    """What is stored, what was emitted at least, and how computations ended."""
    state = platform.state
    names = {number: ref for ref, number in state.streams.items()}
    stored = {
        (names[row.stream_id], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
    }
    emitted = {
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    }
    missing = {key for key, value in stored.items() if (*key, value) not in emitted}
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    return stored, missing, verdicts
