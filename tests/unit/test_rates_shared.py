"""Processes share a tenant's rates: together they let in what one would, but for a second's."""

from __future__ import annotations

import random

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from memory.rates import Exchange, MemoryRates
from quota_builders import ALL, Clock, Store

from ingest.quotas import LATE_SECONDS, MAX_KNOWN, UNTOLD, SendersQuotas
from ingest.sharing import AWAY_SECONDS, MOST_TOLD, Sharing
from servioticy.domain.quotas import Exceeded
from servioticy.errors import Unavailable
from servioticy.ports.rates import LetIn

QUOTA = 1_000
TICK = 0.05


class Process:
    def __init__(self, exchange: Exchange, clock: Clock, most: int = QUOTA) -> None:
        self.store = Store()
        table = {name: each for name, each in ALL.items() if name != "updates"}
        every = {"updates": ALL["updates"]._replace(most=most), **table}
        self.quotas = SendersQuotas(self.store, every, clock)  # type: ignore[arg-type]
        self.rates = MemoryRates(exchange)
        self.sharing = Sharing(self.rates, self.quotas, clock)

    def send(self, updates: int, tenant: int = 1) -> bool:
        return self.quotas.send(tenant, updates, 1) is None


class World:
    """Processes of one clock, which hear what is told after a while of chance."""

    def __init__(self, count: int, seed: int = 0, most: int = QUOTA) -> None:
        self.clock, self.chance = Clock(), random.Random(seed)
        # A turn comes each TICK, tells each half second, and hears a TICK after it is there.
        late = LATE_SECONDS - 0.5 - 3 * TICK
        self.exchange = Exchange(self.clock, lambda: self.chance.uniform(0, late))
        self.processes = [Process(self.exchange, self.clock, most) for _ in range(count)]
        self.let_in: list[tuple[float, int]] = []
        for _ in range(10):
            self.tick()

    def tick(self) -> None:
        self.clock.now += TICK
        for each in self.chance.sample(self.processes, len(self.processes)):
            each.sharing.turn()

    def send(self, process: int, updates: int) -> bool:
        is_in = self.processes[process].send(updates)
        if is_in:
            self.let_in.append((self.clock.now, updates))
        return is_in

    def most_in(self, seconds: float) -> float:
        """What they may let in within so many seconds."""
        others = len(self.processes) - 1
        burst = max([1.0, *(updates / QUOTA for _, updates in self.let_in)])
        late = LATE_SECONDS + others * (burst + LATE_SECONDS) + UNTOLD if others else 0
        return QUOTA * (seconds + burst + late) * (1 + 1e-9)

    def check(self) -> None:
        at_once = self.most_in(0)
        for first, (begun, _) in enumerate(self.let_in):
            total = 0
            for at, updates in self.let_in[first:]:
                total += updates
                assert total <= at_once + QUOTA * (at - begun)


sizes = st.integers(1, QUOTA) | st.integers(1, 4 * QUOTA)
sends = st.tuples(st.integers(0, 2), sizes, st.integers(0, 4))


@settings(max_examples=examples(100))
@given(st.integers(1, 3), st.integers(0, 99), st.lists(sends, min_size=20, max_size=150))
def test_together_they_let_in_the_quota_whoever_is_asked(
    count: int, seed: int, sent: list[tuple[int, int, int]]
) -> None:
    """Over any window: the quota, a burst, and what others may let in before they know."""
    world = World(count, seed)
    for process, updates, ticks in sent:
        world.send(process % count, updates)
        for _ in range(ticks):
            world.tick()

    world.check()


@settings(max_examples=examples(100))
@given(st.integers(2, 3), st.integers(0, 99), st.lists(st.integers(0, 2), max_size=100))
def test_who_sends_half_of_the_quota_is_never_refused(
    count: int, seed: int, asked: list[int]
) -> None:
    world = World(count, seed)

    for process in asked:
        assert world.send(process % count, QUOTA // 10)
        for _ in range(4):
            world.tick()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_flood_over_all_of_them_gets_its_quota_and_not_a_multiple(count: int) -> None:
    world = World(count)

    for _ in range(round(20 / TICK)):
        for process in range(count):
            for _ in range(QUOTA // 50):
                world.send(process, 10)
        world.tick()

    total = sum(updates for _, updates in world.let_in)
    assert 20 * QUOTA * 0.95 <= total <= world.most_in(20)
    world.check()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_batches_larger_than_the_quota_are_let_in_once_by_all_of_them(count: int) -> None:
    """Each is a debt of many seconds, which the others have to make up for as well."""
    world = World(count)

    for _ in range(round(120 / TICK)):
        for process in range(count):
            world.send(process, 8 * QUOTA)
        world.tick()

    total = sum(updates for _, updates in world.let_in)
    assert 96 * QUOTA <= total <= world.most_in(120)
    world.check()


def test_who_is_alone_asks_and_tells_nothing() -> None:
    world = World(1)
    (alone,) = world.processes
    assert (alone.rates.countings, alone.rates.tellings) == (1, 0)

    for _ in range(100):
        world.send(0, QUOTA)
        world.tick()

    assert (alone.rates.countings, alone.rates.tellings) == (1, 0)
    assert alone.quotas.to_tell(10) == []


def test_nothing_is_told_of_who_sends_little() -> None:
    world = World(2)
    for _ in range(20):
        assert world.send(0, QUOTA // 100)
        world.tick()

    assert world.processes[0].rates.tellings == 0
    assert world.send(0, QUOTA // 10)
    for _ in range(11):
        world.tick()
    assert world.processes[0].rates.tellings == 1, "and all of it, once it is much"
    assert world.processes[0].quotas.to_tell(10) == []


def test_the_share_of_one_that_is_killed_comes_back() -> None:
    world = World(2)
    killed, other = world.processes
    assert killed.send(QUOTA)
    for _ in range(20):
        killed.send(QUOTA // 20)
        world.tick()
    assert not other.send(QUOTA // 2)

    killed.rates.die()
    world.processes.remove(killed)
    for _ in range(round(6 / TICK)):
        world.tick()
        other.send(QUOTA // 20)
    tellings = other.rates.tellings
    for _ in range(100):
        world.tick()
        assert other.send(QUOTA // 20)

    assert other.rates.tellings == tellings, "it is alone again"


def test_while_the_store_is_away_each_goes_on_with_what_it_knows() -> None:
    world = World(2)
    one, other = world.processes
    world.exchange.is_away = True
    for each in world.processes:
        with pytest.raises(Unavailable):
            each.sharing.turn()
    assert one.send(QUOTA)
    assert other.send(QUOTA)
    assert not one.send(1)

    world.exchange.is_away = False
    for _ in range(40):
        world.tick()
    assert one.rates.tellings == 0, "what nobody could be told is over"

    assert one.send(QUOTA)
    for _ in range(40):
        world.tick()
    assert one.rates.tellings == 1, "and from then on all is told again"


def test_what_did_not_come_is_given_back_by_all() -> None:
    world = World(2)
    one, other = world.processes
    assert one.send(QUOTA)
    told = one.quotas.to_tell(10)
    one.quotas.give_back(1, QUOTA, 1)
    other.quotas.hear(told)
    assert not other.send(1)

    other.quotas.hear(one.quotas.to_tell(10))

    assert one.send(QUOTA)
    assert other.send(QUOTA)


def test_a_tenant_that_is_not_known_yet_has_used_what_others_told() -> None:
    """In parts of its own quota, which the hearer learns later."""
    world = World(2)
    one, other = world.processes
    for each in (one, other):
        each.store.limits["updates"] = 10
    assert one.send(10, tenant=7)

    other.quotas.hear(one.quotas.to_tell(10))

    assert not other.send(1, tenant=7)


def test_who_is_in_debt_is_told_when_there_is_some_again() -> None:
    one = World(2).processes[0].quotas
    one.hear([LetIn(1, (3.25, 0.0))])
    assert one.beyond(1) is None, "nothing is known of what it may have"

    exceeded = one.send(1, QUOTA, 1)

    assert isinstance(exceeded, Exceeded)
    assert exceeded.retry_after == 4, "two seconds and a quarter, and one until it is full"
    assert one.beyond(1) is not None


def test_a_debt_is_no_more_than_was_let_in_when_the_quota_is_raised() -> None:
    world = World(1)
    (alone,) = world.processes
    alone.store.limits["updates"] = 10
    assert alone.send(1_000), "a batch may come when the bucket is full"
    world.clock.now += 6
    assert not alone.send(1)

    alone.store.limits["updates"] = QUOTA
    world.clock.now += 6

    assert alone.send(QUOTA)


def test_what_came_late_is_taken_from_what_came_meanwhile() -> None:
    """Who sends half of the quota at one is not refused at another that had no time to hear."""
    world = World(2)
    one, other = world.processes
    assert other.send(1)
    for _ in range(round(AWAY_SECONDS / TICK) - 2):
        assert one.send(QUOTA // 40)
        world.clock.now += TICK
        one.sharing.turn()

    for _ in range(20):
        assert one.send(QUOTA // 40)
        world.tick()
        assert other.send(QUOTA // 40)


def test_a_process_that_was_stopped_begins_anew() -> None:
    """What others have told meanwhile is not held against who sends to it now."""
    world = World(2)
    one, stopped = world.processes
    for _ in range(round(60 / TICK)):
        assert one.send(QUOTA // 40)
        world.clock.now += TICK
        one.sharing.turn()

    for _ in range(2):
        stopped.sharing.turn()

    assert stopped.send(QUOTA)
    world.tick()
    one.send(QUOTA)
    for _ in range(20):
        world.tick()
    assert not stopped.send(QUOTA), "it hears again"


def test_who_others_have_told_of_is_asked_about_until_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = World(2).processes[0]
    one.quotas.hear([LetIn(1, (0.5, 0.0))])

    def away(*_: object, **__: object) -> None:
        raise Unavailable("Postgres is away")

    with monkeypatch.context() as patch:
        patch.setattr(one.store, "rows", away)
        for _ in range(2):
            with pytest.raises(Unavailable):
                one.send(1)

    one.store.limits["updates"] = 0
    assert not one.send(1)


def test_a_count_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1)
    late = Process(world.exchange, world.clock)

    def away() -> int:
        raise Unavailable("Postgres is away")

    with monkeypatch.context() as patch:
        patch.setattr(late.rates, "processes", away)
        with pytest.raises(Unavailable):
            late.sharing.turn()

    late.sharing.turn()

    assert late.send(QUOTA)
    assert len(late.quotas.to_tell(10)) == 1


def test_of_many_tenants_the_nearest_to_their_quotas_are_told_first_and_all_in_the_end() -> None:
    world = World(2)
    (one, _) = world.processes
    near = range(MOST_TOLD, MOST_TOLD + 10)
    one.quotas.learn(range(MOST_TOLD + 10))
    for tenant in range(MOST_TOLD + 10):
        assert one.send(QUOTA if tenant in near else QUOTA // 2, tenant)

    first = [each.tenant for each in one.quotas.to_tell(MOST_TOLD)]
    second = [each.tenant for each in one.quotas.to_tell(MOST_TOLD)]

    assert set(first[:10]) == set(near)
    assert len(first) == MOST_TOLD
    assert sorted(first + second) == list(range(MOST_TOLD + 10))


def test_tenants_that_are_heard_of_are_forgotten_as_others_are() -> None:
    world = World(2)
    quotas = world.processes[0].quotas

    quotas.hear([LetIn(tenant, (0.5, 0.5)) for tenant in range(MAX_KNOWN + 5)])

    assert len(quotas._known) == MAX_KNOWN


def test_rates_of_another_release_are_left_out() -> None:
    quotas = World(2).processes[0].quotas

    quotas.hear([LetIn(1, (1.0,)), LetIn(1, (1.0, 1.0, 1.0))])

    assert quotas.send(1, QUOTA, 1) is None
