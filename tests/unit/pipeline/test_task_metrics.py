"""What the pipeline counts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from memory import MemoryPlatform
from scraped import samples

from pipeline.metrics import Lag, TaskMetrics, observed
from pipeline.sharing.pressing import Pressing
from sandbox import argument_names
from servioticy.errors import Fenced, Unavailable
from servioticy.metrics import Registry
from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict
from servioticy.ports.put_off import PutOff, TreeKey

WAITING = 'servioticy_put_off_records_waiting{partition="0"}'


class Sandboxes:
    """A pool that has run something."""

    frames = 4
    workers = 2
    kills = {"oom": 1, "timeout": 2}


@pytest.fixture
def registry() -> Registry:
    return Registry(with_process=False)


@pytest.fixture
def tasks(registry: Registry) -> TaskMetrics:
    return TaskMetrics(registry, Sandboxes())


def an_update(offset: int, position: int) -> StoredUpdate:
    return StoredUpdate(1, 1, 1, b"{}", 1, offset, position)


def a_batch(first: int, end: int, **more: Any) -> Batch:
    return Batch(0, first, end, 0, **more)


def test_a_batch_is_counted(registry: Registry, tasks: TaskMetrics) -> None:
    updates = [an_update(5, 0), an_update(5, 1), an_update(5, 2), an_update(6, 0)]
    verdicts = [
        StoredVerdict(1, 1, "emitted", 2, b"{}"),
        StoredVerdict(1, 2, "emitted", 1, b"{}"),
        StoredVerdict(1, 2, "stale", 3, b"{}"),
    ]
    tasks.stored(a_batch(5, 8, updates=updates, verdicts=verdicts))
    tasks.stored(a_batch(8, 9))
    tasks.stage("fetch", 0.25)
    tasks.stage("fetch", 0.5)

    found = samples(registry.text())
    assert found['servioticy_log_records_total{partition="0"}'] == 4
    assert found['servioticy_updates_stored_total{origin="received"}'] == 2
    assert found['servioticy_updates_stored_total{origin="derived"}'] == 2
    assert found["servioticy_batch_updates_count"] == 1
    assert found["servioticy_batch_updates_sum"] == 2
    assert found['servioticy_computations_total{verdict="emitted"}'] == 3
    assert found['servioticy_computations_total{verdict="stale"}'] == 3
    assert found['servioticy_stage_seconds_total{stage="fetch"}'] == 0.75
    assert found["servioticy_sandbox_frames_total"] == 4
    assert found["servioticy_sandbox_workers"] == 2
    assert found['servioticy_sandbox_kills_total{kind="timeout"}'] == 2
    assert WAITING not in found


def test_what_waits_goes_up_and_down(registry: Registry, tasks: TaskMetrics) -> None:
    platform = MemoryPlatform(1)
    store = observed(platform.partition_store(argument_names), tasks)
    first, *_ = store.begin(0)
    assert store.waiting(0) == {}
    later = [PutOff(first + n, 1, "so", b"{}") for n in range(3)]
    store.store(a_batch(first, first + 3, put_off=later))
    assert samples(registry.text())[WAITING] == 3
    store.store(a_batch(first + 3, first + 3, taken_up=[TreeKey(first)]))

    found = samples(registry.text())
    assert found[WAITING] == 2 == sum(store.waiting(0).values())
    assert found['servioticy_put_off_records_total{partition="0"}'] == 3
    store.end(0)
    assert WAITING not in samples(registry.text())


def test_of_each_partition_those_that_press_most_are_told(
    registry: Registry, tasks: TaskMetrics
) -> None:
    """A few: each is a time series of its own."""
    many = [Pressing(tenant, tenant % 3, tenant / 10) for tenant in range(1, 1001)]
    tasks.watch(0, lambda: many)
    tasks.watch(1, lambda: [Pressing(7, 0, 0.25)])
    found = pressing(registry)

    assert found["0"] == {str(n): (2, n / 10) for n in (998, 995, 992, 989, 986)}
    assert found["1"] == {"7": (0, 0.25)}
    tasks.watch_no_more(0)
    assert pressing(registry) == {"1": {"7": (0, 0.25)}}


def pressing(registry: Registry) -> dict[str, dict[str, tuple[float, float]]]:
    """By partition and tenant: records put off, and seconds over the share."""
    text = registry.text().decode()
    found: dict[str, dict[str, list[float]]] = {}
    for value in re.finditer(
        r'^servioticy_tenant_\w+\{partition="(\d+)",tenant="(\d+)"\} (\S+)$', text, re.MULTILINE
    ):
        found.setdefault(value[1], {}).setdefault(value[2], []).append(float(value[3]))
    return {
        partition: {tenant: (put_off, over) for tenant, (put_off, over) in told.items()}
        for partition, told in found.items()
    }


def test_what_is_not_stored_is_not_counted(registry: Registry, tasks: TaskMetrics) -> None:
    platform = MemoryPlatform(1)
    store = observed(platform.partition_store(argument_names), tasks)
    store.begin(0)
    with pytest.raises(Fenced):
        store.store(a_batch(7, 9, updates=[an_update(7, 0)]))

    found = samples(registry.text())
    assert 'servioticy_log_records_total{partition="0"}' not in found
    assert found['servioticy_updates_stored_total{origin="received"}'] == 0


class Ends:
    """A broker that tells where the log ends, while it is there."""

    def __init__(self, *ends: int) -> None:
        self.ends: tuple[int, ...] | None = ends

    def end_offset(self, partition: int) -> int:
        if self.ends is None:
            raise Unavailable("the broker does not answer")
        return self.ends[partition]


def test_the_lag_is_what_is_not_behind_progress(registry: Registry) -> None:
    ends = Ends(10, 4)
    lag = Lag(ends, registry)

    assert not lag.note({0: 7, 1: 4})
    assert samples(registry.text()) == {
        'servioticy_lag_records{partition="0"}': 3,
        'servioticy_lag_records{partition="1"}': 0,
    }


def test_a_log_that_ends_before_progress_is_told(registry: Registry) -> None:
    lag = Lag(Ends(10, 3), registry)

    assert lag.note({0: 7, 1: 4})
    assert samples(registry.text())['servioticy_lag_records{partition="1"}'] == 0


def test_without_a_broker_the_lag_is_as_it_was(registry: Registry) -> None:
    ends = Ends(10)
    lag = Lag(ends, registry)
    lag.note({0: 7})
    ends.ends = None

    assert not lag.note({0: 9})
    assert samples(registry.text()) == {'servioticy_lag_records{partition="0"}': 3}
