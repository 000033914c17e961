"""Batches come into the log no faster than it is worked on: others stand behind them there."""

from __future__ import annotations

import time
from collections.abc import Collection

import msgspec
import pytest
from memory import MemoryPlatform
from support.delivery_stores import Catalog
from support.played_ingest import PlayedIngest

from api.http.read_after_write import HEADER, ReadAfterWrite
from ingest.pacing import (
    ACTIVE_SECONDS,
    AT_ONCE,
    LEAST,
    MAX_TENANTS,
    SLICE_SECONDS,
    Pacing,
)
from ingest.updates import Offered, Sent, Taken
from servioticy.domain.batches.items import Item
from servioticy.domain.model import SensorUpdate, StreamRef, Timestamp
from servioticy.domain.records import UpdateRecord
from servioticy.ports.addresses import Address

FLOW = StreamRef("pump", "flow")
UPDATE = b'{"channels":{"v":{"current-value":1}},"lastUpdate":%d}'


def an_address(tenant: int = 1, partition: int = 0) -> Address:
    return Address(tenant, "pump", tenant, False, 1, partition, 1)


OTHER = 99


class Waits:
    """Notes when it is waited; somebody else sends to these partitions."""

    def __init__(self, *shared: int) -> None:
        self.asked: list[list[int]] = []
        self.now = 100.0
        self.takes = 0.0
        """seconds until all is worked on"""
        self.pacing = Pacing(self.wait, lambda: self.now)
        self.pacing.saw(shared, OTHER)

    def wait(self, addresses: Collection[Address]) -> None:
        self.asked.append([each.partition for each in addresses])
        self.now += self.takes


def test_who_sends_little_waits_for_nothing_and_every_thousand_are_waited_for() -> None:
    """However they are cut into batches."""
    waits = Waits(0, 3)
    for _ in range(AT_ONCE - 1):
        waits.pacing.appended([an_address()], 1)
    assert waits.asked == []

    waits.pacing.appended([an_address(), an_address(partition=3)], 1)
    assert waits.asked == [[0, 3]]
    waits.pacing.appended([an_address()], AT_ONCE - 1)
    assert len(waits.asked) == 1


def test_what_comes_at_once_takes_a_slice_of_time() -> None:
    """Fewer where a thousand took longer, and more again where they do not."""
    waits = Waits(0)
    one = [an_address()]
    assert waits.pacing.at_once(one) == AT_ONCE
    waits.takes = 4 * SLICE_SECONDS
    waits.pacing.appended(one, AT_ONCE)
    assert waits.pacing.at_once(one) == AT_ONCE / 4
    assert waits.pacing.at_once([an_address(2)]) == AT_ONCE
    waits.pacing.appended(one, AT_ONCE // 4 - 1)
    assert len(waits.asked) == 1
    waits.takes = SLICE_SECONDS
    waits.pacing.appended(one, 1)
    assert waits.pacing.at_once(one) == AT_ONCE / 4, "that is what fits"
    waits.takes = 0
    waits.pacing.appended(one, AT_ONCE // 4)
    assert waits.pacing.at_once(one) == AT_ONCE / 2
    waits.takes = 1.0
    waits.pacing.appended(one, AT_ONCE // 2)
    assert waits.pacing.at_once(one) == LEAST
    waits.now += ACTIVE_SECONDS
    assert waits.pacing.at_once(one) == AT_ONCE, "it is alone"


def test_each_tenant_waits_for_its_own() -> None:
    waits = Waits(0)
    for tenant in (1, 2):
        waits.pacing.appended([an_address(tenant)], AT_ONCE - 1)
    waits.pacing.appended([], AT_ONCE)
    assert waits.asked == []

    waits.pacing.appended([an_address(2)], 1)
    assert len(waits.asked) == 1


def test_of_many_tenants_those_are_forgotten_that_have_sent_nothing_for_longest() -> None:
    waits = Waits(0)
    for tenant in range(MAX_TENANTS + 1):
        waits.pacing.appended([an_address(tenant)], AT_ONCE - 1)
    waits.pacing.appended([an_address(0)], 1)
    assert waits.asked == []

    waits.pacing.appended([an_address(MAX_TENANTS)], 1)
    assert len(waits.asked) == 1


def test_who_is_alone_in_a_partition_waits_for_nothing() -> None:
    """Time that nobody else wants is free, and what only one sends stands in nobody's way."""
    waits = Waits(3)
    waits.pacing.appended([an_address(), an_address(partition=5)], AT_ONCE)
    assert waits.asked == []

    waits.pacing.saw([0], OTHER)
    waits.pacing.appended([an_address(), an_address(partition=5)], AT_ONCE)
    assert waits.asked == [[0]]


def test_others_are_there_for_a_while_and_however_often_the_tenant_sends() -> None:
    waits = Waits(0)
    for _ in range(3):
        waits.pacing.appended([an_address()], AT_ONCE)
    assert len(waits.asked) == 3

    waits.now += ACTIVE_SECONDS
    waits.pacing.appended([an_address()], AT_ONCE)
    assert len(waits.asked) == 4
    waits.now += 0.1
    waits.pacing.appended([an_address()], AT_ONCE)
    assert len(waits.asked) == 4


def test_whoever_sends_by_whichever_way_is_seen() -> None:
    """A PUT is enough: what is sent so stands behind batches."""
    asked: list[int] = []
    way = PlayedIngest(Catalog(), Pacing(lambda addresses: asked.append(len(addresses))))
    (outcome,) = way.ingest.take([Sent("token-1", [Offered(FLOW, UPDATE % 1)])], patient=True)[0]
    assert isinstance(outcome, Taken)
    address = outcome.address
    way.ingest._pacing.appended([address], AT_ONCE)
    assert asked == []

    way.ingest._pacing.appended([address._replace(caller=OTHER, owner=OTHER)], AT_ONCE)
    assert asked == [1]


def test_a_long_batch_comes_in_parts_and_each_waits_for_the_one_before() -> None:
    """A body holds many thousands: appended at once all others would stand behind them."""
    there: list[int] = []
    pacing = Pacing(lambda _addresses: there.append(len(way.log.came)))
    way = PlayedIngest(Catalog(), pacing)
    pacing.saw([0], OTHER)
    number = 2 * AT_ONCE + 1

    def item(at: int) -> Item:
        update = SensorUpdate(FLOW, Timestamp(at), UPDATE % at)
        return Item(at, FLOW, lambda _reader: update)

    found = way.ingest.take_batch([item(at) for at in range(number)], {FLOW: an_address()})

    assert there == [AT_ONCE, 2 * AT_ONCE]
    assert [each.body for each in way.log.came] == [UPDATE % at for at in range(number)]
    assert len(found.accepted) == number


def test_it_is_waited_until_all_is_worked_on_and_not_for_long() -> None:
    """Where nothing is worked on it is taken all the same."""
    platform = MemoryPlatform()
    waiting = ReadAfterWrite(platform.history, platform.log, 0.1)
    assert waiting.hold([an_address()]) == {}

    platform.log.append(0, UpdateRecord(*FLOW, Timestamp(1), msgspec.Raw(UPDATE % 1)))
    began = time.monotonic()
    assert waiting.hold([an_address()]) == {HEADER: "1"}
    assert time.monotonic() - began == pytest.approx(0.1, abs=0.09)
