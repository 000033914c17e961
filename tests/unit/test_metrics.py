"""What is counted, how it is read, and that the operations page tells all of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from scraped import samples

from servioticy.metrics import Registry
from servioticy.metrics.names import (
    BATCH_UPDATES,
    LAG,
    METRICS,
    PROGRAM_STARTS,
    PROGRAM_UP,
    SANDBOX_FRAMES,
    SANDBOX_KILLS,
    Metric,
)
from servioticy.metrics.registry import added, written

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "operations.md"


def test_no_two_metrics_have_one_name() -> None:
    assert [name for name, n in Counter(each.name for each in METRICS).items() if n > 1] == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: each.name)
def test_names_tell_what_is_counted(metric: Metric) -> None:
    """As Prometheus wants them: counters end in _total, units are in the name."""
    assert re.fullmatch(r"servioticy(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(metric.buckets)


def test_what_is_counted_is_told() -> None:
    registry = Registry(with_process=False)
    starts, up = registry.counter(PROGRAM_STARTS), registry.gauge(PROGRAM_UP)
    sizes = registry.histogram(BATCH_UPDATES)
    starts.labels("api").inc()
    starts.labels("api").inc()
    up.labels("api").set(True)
    sizes.observe(3)

    found = samples(registry.text())
    assert found['servioticy_program_starts_total{program="api"}'] == 2
    assert found['servioticy_program_up{program="api"}'] == 1
    assert found['servioticy_batch_updates_bucket{le="2.0"}'] == 0
    assert found['servioticy_batch_updates_bucket{le="5.0"}'] == 1
    assert (found["servioticy_batch_updates_count"], found["servioticy_batch_updates_sum"]) == (
        1,
        3,
    )


def test_what_others_keep_is_asked_for_each_time() -> None:
    registry, kills = Registry(with_process=False), {("oom",): 1.0}
    registry.observe(SANDBOX_FRAMES, lambda: len(kills))
    registry.observe(SANDBOX_KILLS, lambda: kills)
    registry.observe(LAG, lambda: {("0",): 7})
    registry.text()
    kills[("crash",)] = 2.0

    assert samples(registry.text()) == {
        "servioticy_sandbox_frames_total": 2,
        'servioticy_sandbox_kills_total{kind="oom"}': 1,
        'servioticy_sandbox_kills_total{kind="crash"}': 2,
        'servioticy_lag_records{partition="0"}': 7,
    }


def test_a_process_tells_of_itself() -> None:
    found = samples(Registry().text())

    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_open_fds"] > 1


def test_texts_add_up() -> None:
    texts = []
    for number in (1, 2):
        registry = Registry(with_process=False)
        registry.counter(PROGRAM_STARTS).labels("api").inc(number)
        registry.gauge(LAG).labels(str(number)).set(number)
        registry.histogram(BATCH_UPDATES).observe(number)
        texts.append(registry.text())

    found = samples(written(added(texts)))
    assert found['servioticy_program_starts_total{program="api"}'] == 3
    assert found['servioticy_lag_records{partition="1"}'] == 1
    assert found['servioticy_lag_records{partition="2"}'] == 2
    assert found['servioticy_batch_updates_bucket{le="1.0"}'] == 1
    assert found['servioticy_batch_updates_bucket{le="2.0"}'] == 2
    assert found["servioticy_batch_updates_sum"] == 3
    assert "servioticy_lag_records" not in str(added(texts, frozenset({"counter"})))


def row(each: Metric) -> str:
    """The line of the page that a metric has."""
    labels = ", ".join(f"`{label}`" for label in each.labels)
    return f"| `{each.name}` | {each.program} | {each.kind} | {labels} | {each.doc} |"


def test_operations_page_has_the_table_of_metrics() -> None:
    """Operators read the page, not the code."""
    head = [
        "| metric | program | kind | labels | what it tells |",
        "| --- | --- | --- | --- | --- |",
    ]
    table = "\n".join([*head, *map(row, METRICS)])

    assert table in PAGE.read_text("utf-8"), f"docs/operations.md needs this table:\n{table}"


def test_what_alerts_ask_is_served() -> None:
    """A metric that has another name by now never fires, and nobody notices."""
    page = (DOCS / "how-to" / "monitor.md").read_text("utf-8")
    served = {each.name for each in METRICS}
    asked = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in re.findall(r"\bservioticy_[a-z_]+\b", page)
    }

    assert asked - served == set()
    assert "servioticy_loop_lag_seconds" in asked
