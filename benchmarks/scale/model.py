"""Partitions, their machines and one Postgres, as queues: what a batch takes of each, and waits.

A partition takes what has come since it last began: a batch costs something by itself and
something for each update. Its worker, with the sandbox, needs a core of its machine; the commit
needs one of Postgres'. Both are asked for in turn, so whoever is full is waited for. Batches and
not updates are events, so that a thousand partitions can be looked at.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import simpy

Steps: TypeAlias = Generator[simpy.Event, Any, None]

MOST_IN_A_BATCH = 1000
NEVER = 1e9
MANY = 50
POINTS = 8
"""Updates of a batch whose latency is noted; they have come evenly since the one before."""


class Costs(NamedTuple):
    """Seconds of a processor, of a batch and of each update in it."""

    batch: float
    each: float

    def of(self, updates: int) -> float:
        """Return the seconds of a batch of so many."""
        return self.batch + updates * self.each


class Figures(NamedTuple):
    """What is known by measuring one partition."""

    worker: Costs
    """With the sandbox."""
    postgres: Costs
    beside: Costs
    """Java and the broker, for whom nobody waits but who need a core of those that they share."""


class Site(NamedTuple):
    """What there is to compute on."""

    cores: int
    """For workers, over all machines."""
    postgres_cores: int | None
    """None: Postgres has the workers' cores."""


@dataclass
class Told:
    """What a run of the model tells."""

    taken: int = 0
    latencies: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    postgres_seconds: float = 0.0

    def percentile(self, part: float) -> float:
        """Return the latency below which this part of the updates stayed, in seconds."""
        ordered = sorted(zip(self.latencies, self.weights, strict=True))
        left = part * sum(self.weights)
        for latency, weight in ordered:
            left -= weight
            if left <= 0:
                return latency
        return ordered[-1][0]


def steady(
    rates: Sequence[float], site: Site, figures: Figures, seconds: float, seed: int
) -> list[Told]:
    """Return what each partition has at these rates of updates a second, for so long."""
    environment = simpy.Environment()
    workers, postgres = _pools(environment, site)
    told = []
    for number, rate in enumerate(rates):
        own = Told()
        told.append(own)
        chance = random.Random(f"{seed}/{number}")  # noqa: S311  the same again and again
        environment.process(_partition(environment, rate, workers, postgres, figures, chance, own))
    environment.run(until=seconds)
    return told


def drained(backlogs: Sequence[int], site: Site, figures: Figures) -> float:
    """Return updates a second where each partition has so many that wait, until none is left."""
    environment = simpy.Environment()
    workers, postgres = _pools(environment, site)
    told = Told()
    for backlog in backlogs:
        environment.process(_drain(environment, backlog, workers, postgres, figures, told))
    environment.run()
    return sum(backlogs) / environment.now


def zipf(tenants: int, skew: float, total: float) -> list[float]:
    """Return the rates of tenants, the n-th of which sends as much as the first by n**skew."""
    shares = [number**-skew for number in range(1, tenants + 1)]
    every = sum(shares)
    return [total * each / every for each in shares]


def placed(rates: Sequence[float], components: int, partitions: int, seed: int) -> list[float]:
    """Return the rates of partitions where each tenant has so many components, by chance."""
    chance = random.Random(seed)  # noqa: S311  the same again and again
    found = [0.0] * partitions
    for rate in rates:
        for _component in range(components):
            found[chance.randrange(partitions)] += rate / components
    return found


def poisson(mean: float, chance: random.Random) -> int:
    """Return how many come where so many come on average; of many by the normal distribution."""
    if mean > MANY:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    least, found, product = math.exp(-mean), 0, chance.random()
    while product > least:
        found += 1
        product *= chance.random()
    return found


def _pools(environment: simpy.Environment, site: Site) -> tuple[Any, Any]:
    workers = simpy.Resource(environment, site.cores)
    if site.postgres_cores is None:
        return workers, workers
    return workers, simpy.Resource(environment, site.postgres_cores)


def _partition(
    environment: simpy.Environment,
    rate: float,
    workers: Any,
    postgres: Any,
    figures: Figures,
    chance: random.Random,
    told: Told,
) -> Steps:
    """Take what has come, again and again."""
    waiting, since = 0, environment.now
    while True:
        came = poisson(rate * (environment.now - since), chance)
        first, since, waiting = since, environment.now, waiting + came
        if not waiting:
            yield environment.timeout(chance.expovariate(rate) if rate else NEVER)
            waiting, since, first = 1, environment.now, environment.now
        some = min(waiting, MOST_IN_A_BATCH)
        waiting -= some
        begun = environment.now
        yield from _batch(environment, some, workers, postgres, figures, told)
        # What had to stay behind has come earlier than this; its rate tells how much.
        behind = waiting / rate if rate else 0.0
        for point in range(POINTS):
            age = (begun - first) * (point + 0.5) / POINTS + behind
            told.latencies.append(environment.now - begun + age)
            told.weights.append(some / POINTS)


def _drain(
    environment: simpy.Environment,
    backlog: int,
    workers: Any,
    postgres: Any,
    figures: Figures,
    told: Told,
) -> Steps:
    while backlog:
        some = min(backlog, MOST_IN_A_BATCH)
        yield from _batch(environment, some, workers, postgres, figures, told)
        backlog -= some


def _batch(
    environment: simpy.Environment,
    updates: int,
    workers: Any,
    postgres: Any,
    figures: Figures,
    told: Told,
) -> Steps:
    for pool, costs in ((workers, figures.worker), (postgres, figures.postgres)):
        with pool.request() as core:
            yield core
            yield environment.timeout(costs.of(updates))
    if workers is postgres:
        environment.process(_beside(environment, updates, workers, figures))
    told.taken += updates
    told.postgres_seconds += figures.postgres.of(updates)


def _beside(environment: simpy.Environment, updates: int, workers: Any, figures: Figures) -> Steps:
    with workers.request() as core:
        yield core
        yield environment.timeout(figures.beside.of(updates))
