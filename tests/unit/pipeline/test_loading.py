"""A component is loaded in slices: others come first meanwhile, and nobody's order changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Object, Oracle
from put_off_runs import Runs, Whims, append, owner, two_tenants
from serial_order import LAW, define, value_of

from pipeline.state import components, loading
from pipeline.state.components import Components, StillLoading
from sandbox import argument_names
from servioticy.domain import cutting, graph, regions
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.domain.model import ServiceObject

PARTS = 5


class SlowStore:
    """A store that takes a second for each Service Object, by a clock of its own."""

    def __init__(self, platform: MemoryPlatform) -> None:
        self._store = platform.partition_store(argument_names)
        self.now = 0.0
        self.read: list[str] = []
        self.component = self._store.component
        self.components = self._store.components

    def service_objects(self, ids: Sequence[str]) -> Iterator[ServiceObject]:
        for each in self._store.service_objects(ids):
            self.now += 1.0
            self.read.append(each.id)
            yield each

    def clock(self) -> float:
        return self.now


@pytest.fixture
def platform() -> MemoryPlatform:
    """A component of several Service Objects, and one alone of another tenant."""
    found = MemoryPlatform()
    tenants = [found.tenants.tenant_of(found.tenants.create_tenant(n)) or 0 for n in "ab"]
    define(Object("so0", ("d",), ()), {}, tenants[0], found)
    for number in range(1, PARTS):
        group = {"g": (("so0", "d"),)}
        define(Object(f"so{number}", ("d",), (), group), {}, tenants[0], found)
    define(Object("alone", ("d",), ()), {}, tenants[1], found)
    for kept in found.state.service_objects.values():
        kept.active_version = 1
    return found


@pytest.fixture
def store(platform: MemoryPlatform) -> SlowStore:
    return SlowStore(platform)


@pytest.fixture
def known(store: SlowStore, monkeypatch: pytest.MonkeyPatch) -> Components:
    """With time for two Service Objects between two batches."""
    monkeypatch.setattr(components, "LOADING_SECONDS", 1.5)
    return Components(0, store, store.clock)  # type: ignore[arg-type]


def tenant_of(platform: MemoryPlatform, id_: str) -> int:
    return platform.state.service_objects[id_].tenant


def test_a_component_is_loaded_in_slices_each_of_its_members_once(
    platform: MemoryPlatform, store: SlowStore, known: Components
) -> None:
    loaded = []
    while isinstance(found := known.get("so3"), StillLoading):
        assert found.tenant == tenant_of(platform, "so3")
        assert known.get("so1") == StillLoading(tenant_of(platform, "so1"))
        loaded.append(len(store.read))
        known.trim()

    assert isinstance(found, ServiceObject)
    assert loaded == [2, 4]
    assert store.read == [f"so{number}" for number in range(PARTS)]
    assert set(known.known) == set(store.read)


def test_what_it_took_is_charged_to_its_tenant(
    platform: MemoryPlatform, known: Components
) -> None:
    for each in ("so0", "alone"):
        known.get(each, at_once=True)

    spent = known.pop_spent()

    assert spent[tenant_of(platform, "so0")] == pytest.approx(PARTS)
    assert spent[tenant_of(platform, "alone")] == pytest.approx(1.0)
    assert known.pop_spent() == {}


def test_where_the_time_is_used_up_another_component_waits_for_the_next(
    platform: MemoryPlatform, store: SlowStore, known: Components
) -> None:
    """Whatever is asked for between two batches takes no longer than a slice, all together."""
    known.get("so0")
    assert known.get("alone") == StillLoading(tenant_of(platform, "alone"))
    assert "alone" not in store.read
    known.trim()

    assert isinstance(known.get("alone"), ServiceObject)


def test_small_components_are_loaded_together_as_far_as_there_is_time(
    platform: MemoryPlatform, store: SlowStore, known: Components
) -> None:
    """What does not fit goes on with the next batches, wherever it stopped."""
    known.prepare(["alone", "so3", "nobody", "so1"])

    assert store.read == ["so0", "so1"]
    assert known.get("alone") == StillLoading(tenant_of(platform, "alone"))
    while "alone" not in known.known or "so3" not in known.known:
        known.trim()
        known.prepare(["alone", "so3"])
    assert sorted(store.read) == sorted(known.known)


def test_what_there_is_no_time_for_is_not_asked_for_one_by_one(
    platform: MemoryPlatform, store: SlowStore, known: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of devices may begin to send at once."""
    monkeypatch.setattr(store, "component", None)
    known.prepare(["so3", "alone"])

    assert known.get("alone") == StillLoading(tenant_of(platform, "alone"))


def test_the_graph_of_a_component_is_made_in_slices(
    platform: MemoryPlatform, store: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are computed meanwhile; the component is known when all of it is."""
    for module in (cutting, graph, regions):
        monkeypatch.setattr(module, "PAUSE", 1)
    monkeypatch.setattr(components, "LOADING_SECONDS", 1.5)
    known = Components(0, store, count().__next__)  # type: ignore[arg-type]
    slices = 0
    while isinstance(known.get("so3"), StillLoading):
        assert not known.known
        known.trim()
        slices += len(store.read) == PARTS

    assert slices > PARTS
    assert set(known.known) == set(store.read)


def test_a_large_component_is_not_loaded_together_with_others(
    store: SlowStore, known: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MAX_SMALL", PARTS - 1)
    known.prepare(["so3", "alone"])

    assert store.read == ["alone"]
    assert "alone" in known.known


def test_nothing_is_loaded_of_whom_something_is_put_off(
    platform: MemoryPlatform, store: SlowStore, known: Components
) -> None:
    """Its records wait in any case; loading is part of what it may have when it is its turn."""
    tenant = tenant_of(platform, "so3")
    known.spare(rests={tenant})
    known.prepare(["so3", "alone"])

    assert known.get("so3") == StillLoading(tenant)
    assert store.read == ["alone"]
    known.spare()
    known.get("so3")
    assert len(store.read) > 1


def test_what_subscribers_know_of_is_loaded_whoever_rests(
    platform: MemoryPlatform, known: Components
) -> None:
    known.spare(rests={tenant_of(platform, "so3")})

    assert isinstance(known.get("so3", at_once=True), ServiceObject)


def test_a_slice_ends_with_its_step_where_somebody_waits(
    store: SlowStore, known: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have been two Service Objects long; but one is loaded, or nothing ever was."""
    monkeypatch.setattr(loading, "MAX_SMALL", PARTS - 1)
    known.spare(is_awaited=lambda: True)
    for number in range(1, PARTS):
        assert isinstance(known.get("so3"), StillLoading)
        assert len(store.read) == number
        known.trim()


def test_what_is_gone_when_it_is_read_keeps_nobody_waiting(
    platform: MemoryPlatform, store: SlowStore, known: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "service_objects", lambda _ids: iter(()))
    known.prepare(["alone"])

    assert known.get("alone") is None


def test_a_change_begins_the_loading_anew(
    platform: MemoryPlatform, store: SlowStore, known: Components
) -> None:
    known.get("so0")
    known.trim()
    platform.state.service_objects["so1"].active_version = None
    known.reload("so1")
    found = known.get("so0", at_once=True)

    assert isinstance(found, ServiceObject)
    assert "so1" not in known.known
    assert store.read.count("so0") == 2


def test_no_more_than_there_is_room_for_is_loaded_in_part(
    known: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is hardly begun begins anew; the rest is loaded to its end."""
    known.get("so0")
    monkeypatch.setattr(components, "MAX_DEFINITION_BYTES", 1)
    known.trim()

    assert isinstance(known.get("so0"), StillLoading)
    known.trim()
    assert isinstance(known.get("so0"), ServiceObject)


@contextlib.contextmanager
def slowly() -> Iterator[None]:
    """As little as can be is loaded between two batches, whoever is active."""
    names = ("LOADING_SECONDS", "CONTESTED_SECONDS")
    with mock.patch.multiple(components, **dict.fromkeys(names, 1e-9)):
        yield


def defined(*ids: tuple[str, str]) -> tuple[MemoryPlatform, int]:
    """Service Objects of tenants, each by itself; and where their updates begin, one of each."""
    platform = MemoryPlatform()
    tenants: dict[str, int] = {}
    for name, id_ in ids:
        if name not in tenants:
            tenants[name] = platform.tenants.tenant_of(platform.tenants.create_tenant(name)) or 0
        define(Object(id_, ("d0",), ()), {}, tenants[name], platform)
    first = len(platform.state.log[0])
    append(platform, [((id_, "d0"), 1, 1) for _name, id_ in ids])
    return platform, first


@pytest.mark.parametrize("contested", [False, True])
def test_a_fleet_waits_for_its_components_and_is_not_put_off_for_that(
    in_sandbox: Evaluators, contested: bool
) -> None:
    """Of a fleet that begins to send a device after the other is known, while all wait for that;
    but not while others wait."""
    platform, first = defined(*[("a", f"so{number}") for number in range(5)])
    shares = Whims([])
    shares.contested = contested
    with slowly():
        runs = Runs(platform, in_sandbox, shares, {})
        runs.take(0, first)
        runs.take(first, first + 5)

    assert bool(platform.state.put_off) == contested
    assert contested or sorted(runs.taken) == list(range(first, first + 5))


def test_who_has_sent_something_behind_a_fleet_does_not_wait_until_all_of_it_is_loaded(
    in_sandbox: Evaluators,
) -> None:
    """Though nobody has met it yet."""
    platform, first = defined(("a", "so0"), ("a", "so1"), ("a", "so2"), ("b", "other"))
    shares = Whims([])
    shares.contested = False
    with slowly():
        runs = Runs(platform, in_sandbox, shares, {})
        runs.take(0, first)
        runs.take(first, first + 4)

    assert platform.state.put_off


def test_what_takes_long_to_load_is_put_off_though_nobody_else_is_active(
    in_sandbox: Evaluators, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may be in a moment."""
    monkeypatch.setattr(loading, "MAX_SMALL", 0)
    platform, first = defined(("a", "so0"), ("a", "so1"))
    shares = Whims([])
    shares.contested = False
    with slowly():
        runs = Runs(platform, in_sandbox, shares, {})
        runs.take(0, first)
        runs.take(first, first + 2)

    assert platform.state.put_off


@LAW
@given(data=st.data())
def test_updates_that_wait_for_their_component_are_computed_as_if_they_had_come_later(
    data: st.DataObject, in_sandbox: Evaluators
) -> None:
    """However slowly it is loaded, whoever dies: each once, in its tenant's order."""
    objects, codes = data.draw(two_tenants())
    refs = [(o.id, name) for o in objects for name in o.simple]
    history = data.draw(
        st.lists(
            st.tuples(st.sampled_from(refs), st.integers(0, 25), st.integers(0, 99)),
            min_size=1,
            max_size=20,
        )
    )
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=5))
    death = st.sampled_from(["before", "after"])
    deaths = data.draw(st.dictionaries(st.integers(1, 30), death, max_size=3))
    platform = MemoryPlatform()
    tenants = [platform.tenants.tenant_of(platform.tenants.create_tenant(n)) for n in "ab"]
    for each in objects:
        define(each, codes, tenants[each.tenant], platform)
    first = len(platform.state.log[0])
    append(platform, history)

    shares = Whims([])
    shares.contested = data.draw(st.booleans())
    with slowly():
        runs = Runs(platform, in_sandbox, shares, deaths)
        edges = sorted({0, first, len(platform.state.log[0]), *(first + c % 21 for c in cuts)})
        for begin, end in pairwise(each for each in edges if each <= len(platform.state.log[0])):
            runs.take(begin, end)
        runs.finish()

    oracle = Oracle(objects)
    assert sorted(runs.taken) == list(range(first, first + len(history)))
    for offset in runs.taken:
        oracle.take(*history[offset - first])
    names = {number: ref for ref, number in platform.state.streams.items()}
    stored = {
        (names[row.stream_id], row.timestamp): value_of(row.document)
        for _partition, row in platform.state.updates.values()
    }
    assert stored == oracle.stored
    assert not platform.state.dead_letters
    for tenant in (0, 1):
        own = [o for o in runs.taken if owner(history[o - first][0], objects) == tenant]
        assert own == sorted(own)
