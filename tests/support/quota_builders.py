"""Quotas with a clock of their own, over what an operator and the accounts say."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from api_builders import Served
from werkzeug.test import TestResponse

from api.http.quotas import STATEMENTS, Quotas
from servioticy.domain.quotas import Kind, quotas
from servioticy.settings import Settings
from servioticy.storage.quotas import PostgresQuotas

ALL = quotas(Settings())
METERED = [each.name for each in ALL.values() if each.kind is Kind.METERED]
COUNTED = [each.name for each in ALL.values() if each.kind is Kind.COUNTED]


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


class Store:
    """What an operator has said, what is metered, and what is counted."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.used = dict.fromkeys(METERED, 0)
        self.counts = dict.fromkeys(COUNTED, 0)
        self.hour_left = 1200
        self.asked = 0
        self.held = 0
        self.is_adding = False

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def rows(self, name: str, /, **values: Any) -> list[Any]:
        self.asked += 1
        if name == "known":
            told = dict(self.limits), self.hour_left, *self.used.values()
            return [(tenant, *told) for tenant in values["tenants"]]
        if name in ("hold", "let_go"):
            self.held += 1 if name == "hold" else -1
            return [("",)]
        assert self.held or not self.is_adding, "others may add while it is counted"
        quota = next((each for each, asked in STATEMENTS.items() if asked == name), name)
        return [(self.counts[quota],)]


class Ground:
    def __init__(self, **defaults: int) -> None:
        self.store, self.clock = Store(), Clock()
        named = {name.replace("_", "-"): most for name, most in defaults.items()}
        every = {
            name: each._replace(most=named.get(name, each.most)) for name, each in ALL.items()
        }
        self.quotas = Quotas(self.store, every, self.clock)  # type: ignore[arg-type]

    def add(self, **more: int) -> str | None:
        self.store.is_adding = True
        with self.quotas.adding(1, **more) as exceeded:
            found = exceeded and exceeded.quota.name
        self.store.is_adding = False
        assert self.store.held == 0
        return found

    def send(self, size: int, tenant: int = 1, number: int = 1) -> str | None:
        exceeded = self.quotas.send(tenant, number, size)
        return exceeded and exceeded.quota.name


@pytest.fixture
def given(served: Served) -> PostgresQuotas:
    """What an operator says, which is known to an API that has not asked yet."""
    return PostgresQuotas(served.platform.database)


def told(answer: TestResponse) -> tuple[str, str, str]:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    name: str = answer.get_json()["quota"]["name"]
    return name, answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]
