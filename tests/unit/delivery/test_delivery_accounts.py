"""What tenants were given is counted, and stored once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest

from delivery import accounts as module
from delivery.accounts import Accounts
from servioticy.domain.records import EmittedRecord
from servioticy.errors import Unavailable
from servioticy.ports.usage import Given


class Store:
    def __init__(self) -> None:
        self.answers = True
        self.stored: Counter[Given] = Counter()

    def deliver(self, counted: Mapping[Given, int]) -> None:
        if not self.answers:
            raise Unavailable("away")
        self.stored.update(counted)


def a_record(stream: str = "a") -> EmittedRecord:
    return EmittedRecord("so", stream, 8, 1, 1, msgspec.Raw(b"{}"))


def test_what_could_not_be_stored_is_stored_later() -> None:
    store = Store()
    accounts = Accounts(store)
    accounts.note(7, a_record())
    accounts.note(7, a_record())
    store.answers = False
    asyncio.run(accounts.settle())
    store.answers = True
    accounts.note(8, a_record())
    asyncio.run(accounts.settle())
    asyncio.run(accounts.settle())

    assert store.stored == {(7, 8, "so", "a"): 2, (8, 8, "so", "a"): 1}


def test_so_much_is_counted_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 2)
    store = Store()
    accounts = Accounts(store)
    for name in ("a", "b", "c", "a"):
        accounts.note(7, a_record(name))
    asyncio.run(accounts.settle())

    assert store.stored == {(7, 8, "so", "a"): 2, (7, 8, "so", "b"): 1}
