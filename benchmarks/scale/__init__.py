"""What many partitions would do, by a model of what one does: skewed tenants, popular streams.

Nothing is run: what a batch and an update cost is given. The defaults lie between what one and two
partitions took (docs/benchmarks.md); what a batch costs by itself is assumed. The model (SimPy)
says what follows for 10 to 1,000 partitions with a core each and one Postgres. First it says what
it makes of the partitions that have been measured on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.scale.model import Costs, Figures, Site, Told, drained, placed, steady, zipf
from servioticy.settings import Settings

CHECKED = (1, 2, 4)
BACKLOG = 30_000
MICRO = 1e-6
SECONDS = 2.0
SEED = 7


def run(_settings: Settings, arguments: Sequence[str]) -> None:
    """Print the check, then a line for every number of partitions and skew, then of readers."""
    parser = argparse.ArgumentParser("servioticy bench scale")
    parser.add_argument("--batch-us", type=float, default=1200, help="worker, of a batch")
    parser.add_argument("--each-us", type=float, default=64, help="worker and sandbox, an update")
    parser.add_argument("--postgres-batch-us", type=float, default=300)
    parser.add_argument("--postgres-each-us", type=float, default=16)
    parser.add_argument("--beside-each-us", type=float, default=19, help="Java and broker")
    parser.add_argument("--partitions", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--skews", type=float, nargs="+", default=[0.0, 0.8, 1.1])
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--components", type=int, default=100, help="of each tenant")
    parser.add_argument("--load", type=float, default=0.5, help="of what all cores could do")
    parser.add_argument("--postgres-cores", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--readers", type=int, nargs="+", default=[0, 1_000, 100_000])
    options = parser.parse_args(arguments)
    figures = Figures(
        Costs(options.batch_us * MICRO, options.each_us * MICRO),
        Costs(options.postgres_batch_us * MICRO, options.postgres_each_us * MICRO),
        Costs(0.0, options.beside_each_us * MICRO),
    )
    _check(figures)
    _skewed(figures, options)
    _read(figures, options)


def _check(figures: Figures) -> None:
    print("a backlog on two cores that all share, by the model")
    for partitions in CHECKED:
        rate = drained([BACKLOG] * partitions, Site(2, None), figures)
        print(f"  {partitions} partitions: {rate:,.0f} updates/s", flush=True)


def _capacity(figures: Figures) -> float:
    """Return updates a second of a core that never waits, in batches of a hundred."""
    return 100 / (figures.worker.of(100) + figures.postgres.of(100))


def _skewed(figures: Figures, options: argparse.Namespace) -> None:
    print("partitions, Postgres' cores, skew | updates/s taken of sent | hottest, of the mean")
    print("  | p50, p99 ms of all; p99 of the hottest | Postgres, cores it used")
    for partitions in options.partitions:
        for cores in options.postgres_cores:
            for skew in options.skews:
                sent = options.load * partitions * _capacity(figures)
                rates = placed(
                    zipf(options.tenants, skew, sent), options.components, partitions, SEED
                )
                _tell(rates, Site(partitions, cores), figures, f"{skew:g}")


def _read(figures: Figures, options: argparse.Namespace) -> None:
    """A public stream of one update a second, read by tenants all over: a computation for each."""
    partitions, cores = max(options.partitions), max(options.postgres_cores)
    sent = options.load * partitions * _capacity(figures)
    print("readers of one public stream, an update a second")
    for readers in options.readers:
        even = [(sent + readers) / partitions] * partitions
        _tell(even, Site(partitions, cores), figures, f"{readers} readers")


def _tell(rates: Sequence[float], site: Site, figures: Figures, name: str) -> None:
    told = steady(rates, site, figures, SECONDS, SEED)
    taken = sum(each.taken for each in told) / SECONDS
    hottest = told[max(range(len(rates)), key=rates.__getitem__)]
    latencies = [each for one in told for each in one.latencies]
    weights = [each for one in told for each in one.weights]
    every = Told(latencies=latencies, weights=weights)
    postgres = sum(each.postgres_seconds for each in told) / SECONDS
    print(
        f"{len(told):5d} {site.postgres_cores or 0:3d} {name:>14} | "
        f"{taken:12,.0f} of {sum(rates):12,.0f} | "
        f"{max(rates) * len(rates) / sum(rates):5.2f} | "
        f"{1e3 * every.percentile(0.5):8.1f} {1e3 * every.percentile(0.99):8.1f} "
        f"{1e3 * hottest.percentile(0.99):8.1f} | {postgres:6.1f}",
        flush=True,
    )
