"""Whose documents are looked at quickly."""

from __future__ import annotations

import pytest

from sandbox.host.bursts import BURST_SECONDS, PART, Bursts


class Watch:
    """A clock that is told the time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def bursts(watch: Watch) -> Bursts:
    return Bursts(watch)


def test_a_burst_is_there_until_it_is_used_up(bursts: Bursts) -> None:
    """To the last of it."""
    bursts.charge("tenant", BURST_SECONDS / 2)
    assert bursts.has("tenant")
    bursts.charge("tenant", BURST_SECONDS / 2)

    assert not bursts.has("tenant")


def test_nobody_pays_for_another(bursts: Bursts) -> None:
    bursts.charge("tenant", 10 * BURST_SECONDS)

    assert bursts.has("other")


def test_it_comes_back_by_a_part_of_each_second(bursts: Bursts, watch: Watch) -> None:
    bursts.charge("tenant", BURST_SECONDS + 10 * PART)
    watch.now += 10
    assert not bursts.has("tenant")
    watch.now += 0.01

    assert bursts.has("tenant")


def test_no_more_comes_back_than_a_burst(bursts: Bursts, watch: Watch) -> None:
    bursts.charge("tenant", 0.001)
    watch.now += 86_400
    bursts.charge("tenant", BURST_SECONDS)

    assert not bursts.has("tenant")


def test_nobody_owes_more_than_a_burst(bursts: Bursts, watch: Watch) -> None:
    """What it has used since had been nobody's."""
    for _ in range(100):
        bursts.charge("tenant", BURST_SECONDS)
    watch.now += BURST_SECONDS / PART + 0.01

    assert bursts.has("tenant")
