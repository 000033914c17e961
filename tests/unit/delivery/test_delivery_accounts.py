"""What tenants were given is counted, and stored once; who has used up its quota rests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from delivery import accounts as module
from delivery.accounts import Accounts
from delivery.admission import spending as spending_module
from delivery.admission.resting import Resting
from delivery.admission.spending import Spending
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import DELIVERIES, PROCESSOR_SECONDS, Exceeded, Quota, quotas
from servioticy.errors import Unavailable
from servioticy.ports.usage import Given, Spent
from servioticy.settings import Settings

QUOTAS = {
    name: quotas(Settings())[name]._replace(most=most)
    for name, most in ((DELIVERIES, 2), (PROCESSOR_SECONDS, 5_000))
}


class Store:
    """What is stored of all tenants, and who has used up the quota by it."""

    def __init__(self) -> None:
        self.answers = True
        self.stored: Counter[Given] = Counter()
        self.spent: Counter[Spent] = Counter()
        self.more: dict[int, int] = {}
        """What operators say of single tenants."""

    def deliver(self, counted: Mapping[Given, int]) -> None:
        if not self.answers:
            raise Unavailable("away")
        self.stored.update(counted)

    def of_all(self, quota: str) -> dict[int, int]:
        raise NotImplementedError

    def spend(self, spent: Mapping[Spent, int]) -> None:
        if not self.answers:
            raise Unavailable("away")
        self.spent.update(spent)

    def used_up(self, quota: Quota) -> dict[int, Exceeded]:
        if not self.answers:
            raise Unavailable("away")
        each: Counter[int] = Counter()
        if quota.name == DELIVERIES:
            for given, times in self.stored.items():
                each[given.receiver] += times
        else:
            for spent, microseconds in self.spent.items():
                each[spent.tenant] += microseconds
        most = {tenant: self.more.get(tenant, quota.most) for tenant in each}
        return {
            tenant: Exceeded(quota._replace(most=most[tenant]), 60)
            for tenant, times in each.items()
            if times >= most[tenant]
        }


def accounts_of(
    store: Store, resting: Resting | None = None, spending: Spending | None = None
) -> Accounts:
    return Accounts(store, store, QUOTAS, resting or Resting(), spending or Spending())


def a_stream(name: str = "a") -> StreamRef:
    return StreamRef("so", name)


def test_what_could_not_be_stored_is_stored_later() -> None:
    store = Store()
    accounts = accounts_of(store)
    accounts.note(7, 8, a_stream())
    accounts.note(7, 8, a_stream())
    store.answers = False
    asyncio.run(accounts.settle())
    store.answers = True
    accounts.note(8, 8, a_stream())
    asyncio.run(accounts.settle())
    asyncio.run(accounts.settle())

    assert store.stored == {(7, 8, "so", "a"): 2, (8, 8, "so", "a"): 1}


def test_so_much_is_counted_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 2)
    store = Store()
    accounts = accounts_of(store)
    for name in ("a", "b", "c", "a"):
        accounts.note(7, 8, a_stream(name))
    asyncio.run(accounts.settle())

    assert store.stored == {(7, 8, "so", "a"): 2, (7, 8, "so", "b"): 1}


def test_who_has_used_up_the_quota_rests_until_there_is_more() -> None:
    async def run() -> None:
        store, resting = Store(), Resting()
        accounts = accounts_of(store, resting)
        accounts.note(7, 8, a_stream())
        accounts.note(7, 8, a_stream())
        accounts.note(8, 8, a_stream())
        await accounts.settle()
        await accounts.look()
        assert (resting.has(7), resting.has(8), resting.count) == (True, False, 1)
        refusal = resting.refusal(7)
        assert refusal is not None
        assert refusal.status == 429
        assert refusal.headers()["RateLimit"] == '"deliveries";r=0;t=60'

        waiting = asyncio.create_task(resting.over(7))
        await asyncio.wait_for(resting.over(8), 10)
        store.answers = False
        with pytest.raises(Unavailable):
            await accounts.look()
        assert resting.has(7), "what was known stays"
        store.answers, store.more = True, {7: 3}
        await asyncio.sleep(0)
        assert not waiting.done()
        await accounts.look()
        await asyncio.wait_for(waiting, 10)
        assert resting.refusal(7) is None

    asyncio.run(run())


def test_it_is_known_who_rests_before_anybody_is_given_anything() -> None:
    """Else whoever has used up everything gets more of it each time the program begins anew."""

    async def run() -> None:
        store, resting = Store(), Resting()
        store.stored[Given(7, 8, "so", "a")] = 2
        accounts = accounts_of(store, resting)
        await accounts.start()
        assert resting.has(7)
        await accounts.stop()
        store.answers = False
        await accounts_of(store).start()  # it begins without the store, too

    asyncio.run(run())


def test_what_conditions_take_is_charged_and_who_has_used_it_up_may_have_no_more() -> None:
    store, spending = Store(), Spending()
    accounts = accounts_of(store, spending=spending)
    spending.note(7, a_stream(), 3_000)
    spending.note(7, a_stream(), 0)
    store.answers = False
    asyncio.run(accounts.settle())
    store.answers = True
    spending.note(7, a_stream(), 2_000)
    spending.note(8, a_stream("b"), 4_999)
    asyncio.run(accounts.settle())
    asyncio.run(accounts.settle())
    assert spending.refusal(7) is None
    asyncio.run(accounts.look())

    assert store.spent == {(7, "so", "a"): 5_000, (8, "so", "b"): 4_999}
    refusal = spending.refusal(7)
    assert refusal is not None and "5000 seconds of scripts' processor time" in refusal
    assert spending.refusal(8) is None
    store.more = {7: 6_000}
    asyncio.run(accounts.look())
    assert spending.refusal(7) is None


def test_so_many_streams_are_charged_while_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spending_module, "MAX_COUNTED", 2)
    spending = Spending()
    for name in ("a", "b", "c", "a"):
        spending.note(7, a_stream(name), 1)

    assert spending.take() == {(7, "so", "a"): 2, (7, "so", "b"): 1}
