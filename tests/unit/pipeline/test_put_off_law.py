"""What is put off is computed later and once, in its tenant's order, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from memory import MemoryPlatform, partition_store
from oracle import Composite, Object, Oracle
from put_off_runs import CODE, Runs, Whims, append, owner, two_tenants
from serial_order import LAW, define, histories, value_of

from pipeline.batching import defining, late
from pipeline.batching.cutting import ATTEMPTS
from pipeline.limits import NO_LIMITS
from sandbox import TookTooLong
from servioticy.domain.model import ServiceObjectKey


class Slow:
    """An evaluator that takes too long at times, where it may not take what it takes."""

    def __init__(self, evaluators, due: list[str]) -> None:
        self._evaluator, self._due = evaluators["javascript"], due

    def evaluate(self, tenant, calls, within=None):
        kind = self._due.pop() if self._due and within is not None else ""
        if kind:
            raise TookTooLong(1.0, 0.5, kind == "prepared")
        return self._evaluator.evaluate(tenant, calls, within)

    def is_ready(self, _tenant: str) -> bool:
        return True

    def processor_seconds(self, tenant):
        return self._evaluator.processor_seconds(tenant)


@contextmanager
def documents_are_large(are_large: bool) -> Iterator[None]:
    """Each is put off until it is understood, which takes as many turns as it has pauses."""
    if not are_large:
        yield
        return
    with (
        patch.object(partition_store, "UNDERSTOOD_AT_ONCE", 0),
        patch.object(defining, "CONTESTED_DOCUMENTS_BYTES", 0),
        patch.object(late, "CONTESTED_SECONDS", 0.0),
    ):
        yield


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
    with documents_are_large(data.draw(st.booleans())):
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
    assert sorted(key.offset for _partition, key in platform.state.put_off) == [1, 2, 3]
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
    assert sorted(key.offset for _partition, key in platform.state.put_off) == [0, 1]
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
        (partition, key._replace(offset=key.offset - 5)): each._replace(offset=key.offset - 5)
        for (partition, key), each in state.put_off.items()
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

    def is_ready(self, _tenant: str) -> bool:
        return True

    def processor_seconds(self, tenant):
        return self._evaluator.processor_seconds(tenant)


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
