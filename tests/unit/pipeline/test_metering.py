"""Processor time goes to the streams whose code used it, each bit once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.accounts import Accounts
from pipeline.metering import SECONDS, Meter
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Charge

ROWS = {StreamRef("so", "a"): 1, StreamRef("so", "x/y@z"): 2}


class Ground:
    """A partition with two streams, its store, and a clock."""

    def __init__(self) -> None:
        self.known = dict(ROWS)
        self.used: dict[str, float] = {}
        self.charges: list[Charge] = []
        self.store = self
        self.accounts = Accounts()
        self.answers = True
        self.now = 0.0
        self.meter = Meter(lambda: self.used, lambda: self.now)

    def find_row(self, ref: StreamRef) -> Any:
        return (SimpleNamespace(tenant=7), self.known[ref]) if ref in self.known else None

    def charge(self, charges: list[Charge]) -> None:
        if not self.answers:
            raise Unavailable("away")
        self.charges += charges

    def charged(self) -> list[tuple[int, int]]:
        """What is charged now: (stream, microseconds)."""
        self.charges.clear()
        self.meter.charge(self)  # type: ignore[arg-type]
        assert all(each.tenant == 7 for each in self.charges)
        return [(each.stream_id, each.microseconds) for each in self.charges]


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_only_what_is_new_is_charged(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5, "so/x/y@z@3": 0.25}
    assert ground.charged() == [(1, 500_000), (2, 250_000)]
    assert ground.charged() == []
    ground.used["so/a@1"] = 0.75
    assert ground.charged() == [(1, 250_000)]


def test_versions_of_a_stream_are_one_account(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5, "so/a@2": 0.25}
    assert ground.charged() == [(1, 750_000)]


def test_what_the_sandbox_forgot_counts_from_zero(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5}
    ground.charged()
    ground.used = {"so/a@1": 0.125}
    assert ground.charged() == [(1, 125_000)]


def test_nothing_is_lost_while_the_store_is_away_or_the_stream_unknown(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5}
    ground.answers = False
    with pytest.raises(Unavailable):
        ground.charged()
    ground.answers = True
    ground.known.clear()
    assert ground.charged() == []
    ground.known.update(ROWS)
    assert ground.charged() == [(1, 500_000)]


def test_it_is_due_now_and_then(ground: Ground) -> None:
    assert not ground.meter.due
    ground.now = SECONDS
    assert ground.meter.due
    ground.charged()
    assert not ground.meter.due
