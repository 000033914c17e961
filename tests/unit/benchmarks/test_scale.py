"""The model of many partitions, where it can be known what comes out."""

from __future__ import annotations

import random

import pytest

from benchmarks.scale.model import (
    Costs,
    Figures,
    Site,
    Told,
    drained,
    placed,
    poisson,
    steady,
    zipf,
)

FIGURES = Figures(Costs(0.001, 0.0001), Costs(0.0005, 0.00002), Costs(0.0, 0.00001))


def test_one_partition_drains_its_backlog_at_what_a_batch_takes() -> None:
    a_batch = FIGURES.worker.of(1000) + FIGURES.postgres.of(1000)

    assert drained([10_000], Site(4, 4), FIGURES) == pytest.approx(1000 / a_batch)


def test_partitions_add_up_until_the_cores_are_taken() -> None:
    one = drained([20_000], Site(8, 8), FIGURES)

    assert drained([20_000] * 4, Site(8, 8), FIGURES) == pytest.approx(4 * one)
    shared = drained([20_000] * 4, Site(2, None), FIGURES)
    work = FIGURES.worker.of(1000) + FIGURES.postgres.of(1000) + FIGURES.beside.of(1000)
    assert shared == pytest.approx(2 * 1000 / work, rel=0.05)


def test_a_full_postgres_is_the_bound() -> None:
    slow = FIGURES._replace(postgres=Costs(0.0, 0.001))

    assert drained([5_000] * 10, Site(10, 2), slow) == pytest.approx(2_000, rel=0.1)


def test_what_is_sent_is_taken_where_there_is_room_and_waits_a_batch_or_two() -> None:
    told = steady([500.0] * 3, Site(3, 3), FIGURES, 10.0, seed=1)

    assert sum(each.taken for each in told) == pytest.approx(3 * 5_000, rel=0.05)
    for each in told:
        assert FIGURES.worker.of(1) < each.percentile(0.5) <= each.percentile(0.99) < 0.05


def test_who_gets_more_than_it_can_take_falls_behind() -> None:
    most = 1000 / (FIGURES.worker.of(1000) + FIGURES.postgres.of(1000))
    (told,) = steady([2 * most], Site(1, 1), FIGURES, 5.0, seed=1)

    assert told.taken == pytest.approx(5 * most, rel=0.05)
    assert told.percentile(0.99) > 1.0


def test_skewed_tenants_send_what_all_send() -> None:
    rates = zipf(100, 1.1, 5_000.0)

    assert sum(rates) == pytest.approx(5_000.0)
    assert rates[0] == pytest.approx(2**1.1 * rates[1])
    assert sum(placed(rates, 10, 7, seed=1)) == pytest.approx(5_000.0)
    assert zipf(4, 0.0, 8.0) == [2.0] * 4


@pytest.mark.parametrize("mean", [0.0, 3.0, 400.0])
def test_so_many_come_on_average(mean: float) -> None:
    chance = random.Random(1)
    found = [poisson(mean, chance) for _ in range(2_000)]

    assert sum(found) / len(found) == pytest.approx(mean, rel=0.05)


def test_percentiles_are_of_updates_and_not_of_batches() -> None:
    told = Told(latencies=[1.0, 2.0, 3.0], weights=[1.0, 98.0, 1.0])

    assert (told.percentile(0.005), told.percentile(0.5), told.percentile(1.0)) == (1.0, 2.0, 3.0)
