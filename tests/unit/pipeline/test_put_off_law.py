"""What is put off is computed later and once, in its tenant's order, whatever happens."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from oracle import Composite, Object, Oracle
from test_serial_law import (
    LAW,
    define,
    graphs,
    histories,
    value_of,
)

from pipeline.batching.cutting import ATTEMPTS
from pipeline.engine import Engine
from pipeline.limits import NO_LIMITS
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import TookTooLong, argument_names
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.records import UpdateRecord
from servioticy.memory import MemoryPlatform

CODE = 'd0=>d0.channels.v["current-value"]'


class Crash(BaseException):
    """The worker dies here."""


class Whims:
    """Shares that say at random who is over them; at last nobody is."""

    def __init__(self, answers: list[set[int]]) -> None:
        self._answers = iter(answers)
        self.contested = True
        self.always: set[int] = set()

    def saw(self, _tenants: object) -> None:
        """It does not matter."""

    def charge(self, _seconds: object) -> None:
        """It does not matter."""

    def balance(self, _tenant: int) -> float:
        return 0.0

    def over(self) -> set[int]:
        return next(self._answers, self.always)


class Slow:
    """An evaluator that takes too long at times, where it may not take what it takes."""

    def __init__(self, evaluators, due: list[str]) -> None:
        self._evaluator, self._due = evaluators["javascript"], due

    def evaluate(self, tenant, calls, within=None):
        kind = self._due.pop() if self._due and within is not None else ""
        if kind:
            raise TookTooLong(1.0, 0.5, kind == "prepared")
        return self._evaluator.evaluate(tenant, calls, within)

    def cpu_seconds(self, tenant):
        return self._evaluator.cpu_seconds(tenant)


class Store:
    """The twin, noting which raw updates it has stored in which order, and dying at times."""

    def __init__(self, store, taken: list, deaths: dict[int, str]) -> None:
        self._store = store
        self._taken = taken
        self._deaths = deaths
        self._calls = 0

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def store(self, batch):
        self._calls += 1
        death = self._deaths.pop(self._calls, "")
        if death == "before":
            raise Crash
        replaced = self._store.store(batch)
        self._taken += [(each.offset) for each in batch.updates if each.position == 0]
        if death == "after":
            raise Crash
        return replaced


@st.composite
def two_tenants(draw):
    """Objects of two tenants who read nothing of each other."""
    first, first_codes = draw(graphs(cycles=True))
    second, second_codes = draw(graphs(cycles=True))
    renamed = {each.id: f"other{each.id}" for each in second}
    second = [
        Object(
            renamed[each.id],
            each.simple,
            each.composites,
            {
                name: tuple((renamed[owner], stream) for owner, stream in members)
                for name, members in each.groups.items()
            },
            tenant=1,
        )
        for each in second
    ]
    codes = first_codes | {(renamed[so], name): code for (so, name), code in second_codes.items()}
    return [*first, *second], codes


def append(platform: MemoryPlatform, history) -> None:
    for (owner, name), timestamp, value in history:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        platform.log.append(0, UpdateRecord(owner, name, timestamp, update))


class Runs:
    """Tasks one after the other over one log, each until it dies."""

    def __init__(
        self, platform: MemoryPlatform, evaluators, shares: Whims, deaths, most=10, **means
    ) -> None:
        self.platform, self.shares, self.deaths = platform, shares, deaths
        self.evaluators = evaluators
        self.taken: list[int] = []
        self.most, self.means = most, means
        self.task = self._new()

    def _new(self) -> Task:
        self.platform.state.claims.clear()
        store = Store(self.platform.partition_store(argument_names), self.taken, self.deaths)
        engine = Engine(self.evaluators, self.most, 10**6, **self.means)
        return Task(0, store, lambda: self.platform.output(0), engine, Fairness(self.shares))

    def take(self, first: int, end: int) -> None:
        log = self.platform.state.log[0]
        while True:
            try:
                self.task.take([Row(at, log[at]) for at in range(first, end)])
                return
            except Crash:
                self.task = self._new()

    def finish(self) -> None:
        """Until nothing waits; a component may need some dozens of slices until it is known."""
        end = len(self.platform.state.log[0])
        for _ in range(50 * end + 200):
            self.take(end, end)
            if not self.platform.state.put_off.keys() - self.platform.state.taken_up:
                return
        raise AssertionError(self.platform.state.put_off)


@LAW
@given(data=st.data())
def test_what_is_put_off_is_computed_as_if_it_had_come_later(data, in_sandbox) -> None:
    """The result is the serial one of a log in which late updates stand where they were taken."""
    objects, codes = data.draw(two_tenants())
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=5))
    over = st.sampled_from([set(), {1}, {2}, {1, 2}])
    shares = Whims(data.draw(st.lists(over, max_size=40)))
    death = st.sampled_from(["before", "after"])
    deaths = data.draw(st.dictionaries(st.integers(1, 30), death, max_size=4))
    kinds = st.sampled_from(["", "", "", "prepared", "slow"])
    slow = {"javascript": Slow(in_sandbox, data.draw(st.lists(kinds, max_size=12)))}
    platform = MemoryPlatform()
    tenants = [platform.tenants.tenant_of(platform.tenants.create_tenant(n)) for n in "ab"]
    for each in objects:
        define(each, codes, tenants[each.tenant], platform)
    first = len(platform.state.log[0])
    append(platform, history)

    runs = Runs(platform, slow, shares, deaths, data.draw(st.integers(1, 5)))
    edges = sorted({0, first, len(platform.state.log[0]), *(first + c % 41 for c in cuts)})
    for begin, end in pairwise(each for each in edges if each <= len(platform.state.log[0])):
        runs.take(begin, end)
    runs.finish()

    oracle = Oracle(objects)
    assert sorted(set(runs.taken)) == list(range(first, first + len(history)))
    for offset in runs.taken:
        (ref, timestamp, value) = history[offset - first]
        oracle.take(ref, timestamp, value)
    state = platform.state
    names = {number: ref for ref, number in state.streams.items()}
    stored = {
        (names[row.stream_id], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
    }
    emitted = Counter(
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    )
    assert len(runs.taken) == len(history)
    assert stored == oracle.stored
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    assert verdicts == oracle.verdicts
    missing = {
        key
        # Twice the same update, of one stream, timestamp and value, may come once.
        for key in set(oracle.order) - set(emitted)
        # Of several with one timestamp history has the last, and that is what comes again.
        if oracle.stored[key[0], key[1]] == key[2]
    }
    assert not missing
    for tenant in (0, 1):
        own = [o for o in runs.taken if owner(history[o - first][0], objects) == tenant]
        assert own == sorted(own)


def owner(ref, objects) -> int:
    return next(each.tenant for each in objects if each.id == ref[0])


def test_a_change_waits_behind_what_waits(in_sandbox) -> None:
    """A deletion must not come before updates that stand before it in the log."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    define(Object("so", ("d0",), ()), {}, tenant, platform)
    append(platform, [(("so", "d0"), 1, 1)])
    platform.changes.erase(ServiceObjectKey(tenant, "so"), "d0")
    append(platform, [(("so", "d0"), 2, 2)])
    shares = Whims([])
    runs = Runs(platform, in_sandbox, shares, {})

    runs.take(0, 1)
    shares.always = {tenant}
    runs.take(1, 4)
    assert sorted(offset for _partition, offset in platform.state.put_off) == [1, 2, 3]
    assert not platform.state.updates
    shares.always = set()
    runs.finish()

    assert [row.timestamp for _partition, row in platform.state.updates.values()] == [2]
    assert not platform.state.put_off.keys() - platform.state.taken_up


def test_updates_wait_for_the_document_that_declares_their_stream(in_sandbox) -> None:
    """It may have been put off itself; what was accepted must not become a dead letter."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    define(Object("so", ("d0",), ()), {}, tenant, platform)
    append(platform, [(("so", "d0"), 1, 1)])
    shares = Whims([])
    runs = Runs(platform, in_sandbox, shares, {})
    shares.always = {tenant}

    runs.take(0, 2)
    assert sorted(offset for _partition, offset in platform.state.put_off) == [0, 1]
    shares.always = set()
    runs.finish()

    assert [row.timestamp for _partition, row in platform.state.updates.values()] == [1]
    assert not platform.state.dead_letters


def test_what_waits_of_a_log_that_is_lost_is_computed_once(in_sandbox) -> None:
    """Its offsets are below zero then (log_identity.py); also where it is taken in pieces."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    code = 'function(d0){return d0.channels.v["current-value"]+1}'
    plus_one = Composite("c", ("d0",), lambda values: values[0] + 1)
    define(Object("so", ("d0",), (plus_one,)), {("so", "c"): code}, tenant, platform)
    shares = Whims([])
    runs = Runs(platform, {"javascript": Slow(in_sandbox, ["slow"])}, shares, {})
    runs.take(0, 1)
    append(platform, [(("so", "d0"), at, at) for at in range(4)])
    shares.always = {tenant}
    runs.take(1, 5)
    state = platform.state
    state.put_off = {
        (partition, offset - 5): each._replace(offset=offset - 5)
        for (partition, offset), each in state.put_off.items()
    }
    shares.always = set()
    runs.take(5, 5)
    assert runs.taken == [-4], "it was slow: others come first"
    runs.finish()

    rows = sorted(
        (row.offset, row.position, value_of(row.document))
        for _partition, row in state.updates.values()
    )
    assert rows == [(at - 4, place, at + place) for at in range(4) for place in range(2)]
    assert runs.taken == [-4, -3, -2, -1]


class AlwaysSlow:
    """An evaluator by which nothing is done in time, where there is a time."""

    def __init__(self, evaluators) -> None:
        self._evaluator = evaluators["javascript"]
        self.refused = 0

    def evaluate(self, tenant, calls, within=None):
        if within is not None:
            self.refused += 1
            raise TookTooLong(1.0, 0.5, prepared=False)
        return self._evaluator.evaluate(tenant, calls, within)

    def cpu_seconds(self, tenant):
        return self._evaluator.cpu_seconds(tenant)


def test_after_a_slow_tree_others_of_its_tenant_are_cut_at_once(in_sandbox) -> None:
    """The first is tried again, as the machine may have been busy; a row of them is not."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    thing = Object("so", ("d0",), (Composite("c", ("d0",), lambda values: values[0]),))
    define(thing, {("so", "c"): CODE}, tenant, platform)
    append(platform, [(("so", "d0"), 1, 1)])
    slow = AlwaysSlow(in_sandbox)
    limits = NO_LIMITS._replace(tree_seconds=1e-9)
    shares = Whims([])
    shares.contested = False
    runs = Runs(platform, {"javascript": slow}, shares, {}, limits=limits)
    end = len(platform.state.log[0])

    runs.take(0, end)
    assert slow.refused == ATTEMPTS
    append(platform, [(("so", "d0"), 2, 2)])
    runs.take(end, end + 1)

    assert slow.refused == ATTEMPTS
    assert len(platform.state.updates) == 4
