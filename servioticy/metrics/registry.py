"""The metrics of one process: the only importer of prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.parser import text_string_to_metric_families

from servioticy.metrics.names import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]
Found = float | Mapping[Labels, float]
Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels of a sample."""


class Registry:
    """What one process measures. Each metric is made once; any thread may count and read."""

    def __init__(self, *, with_process: bool = True) -> None:
        """`with_process`: the process's own memory, processor time and open files, too."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        if with_process:
            ProcessCollector(registry=self._registry)

    def counter(self, metric: Metric) -> Counter:
        """Return a number that only grows."""
        return Counter(metric.name, metric.doc, metric.labels, registry=self._registry)

    def gauge(self, metric: Metric) -> Gauge:
        """Return a number that goes up and down."""
        return Gauge(metric.name, metric.doc, metric.labels, registry=self._registry)

    def histogram(self, metric: Metric) -> Histogram:
        """Return how often values were within which bounds."""
        return Histogram(
            metric.name,
            metric.doc,
            metric.labels,
            registry=self._registry,
            buckets=metric.buckets,
        )

    def observe(self, metric: Metric, read: Callable[[], Found]) -> None:
        """Call `read` for the value, or the values by labels, whenever the metric is read.

        That is in another thread. It must not wait for anything.
        """
        self._registry.register(_Observed(metric, read))

    def add(self, others: Callable[[], Iterable[bytes]]) -> None:
        """Call `others` for the texts of other processes whenever this is read, and add up."""
        self._registry.register(_Added(others))

    def text(self) -> bytes:
        """Return all of it, as Prometheus reads it."""
        return generate_latest(self._registry)


class _Observed:
    """A metric whose value is kept elsewhere."""

    def __init__(self, metric: Metric, read: Callable[[], Found]) -> None:
        self._metric = metric
        self._read = read

    def collect(self) -> Iterator[Family]:
        metric, found = self._metric, self._read()
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.name, metric.doc, labels=metric.labels)
        for labels, value in (found if isinstance(found, Mapping) else {(): found}).items():
            family.add_metric(labels, value)
        yield family


class _Added:
    """The sums of what several processes tell."""

    def __init__(self, others: Callable[[], Iterable[bytes]]) -> None:
        self._others = others

    def collect(self) -> Iterable[Family]:
        return added(self._others())


def added(texts: Iterable[bytes], kinds: frozenset[str] | None = None) -> list[Family]:
    """Return each sample's sum over the texts; of these kinds of metrics only, if any are named.

    Raises ValueError for what Prometheus could not read.
    """
    families: dict[str, Family] = {}
    sums: dict[str, dict[Key, float]] = {}
    for text in texts:
        for each in text_string_to_metric_families(text.decode()):
            if kinds is not None and each.type not in kinds:
                continue
            families.setdefault(each.name, Family(each.name, each.documentation, each.type))
            of_family = sums.setdefault(each.name, {})
            for sample in each.samples:
                key = sample.name, tuple(sample.labels.items())
                of_family[key] = of_family.get(key, 0.0) + sample.value
    for name, family in families.items():
        for (sample_name, labels), value in sums[name].items():
            family.add_sample(sample_name, dict(labels), value)
    return list(families.values())


def written(families: Iterable[Family]) -> bytes:
    """Return the families as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(_Kept(list(families)))
    return generate_latest(registry)


class _Kept:
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> list[Family]:
        return self._families
