"""What the pipeline counts: its tasks what they store, its driver how far the log is ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Protocol, cast

from pipeline.sharing.pressing import Pressing, foremost
from servioticy.errors import Unavailable
from servioticy.metrics import Registry
from servioticy.metrics.names import (
    BATCH_UPDATES,
    COMPUTATIONS,
    EXPIRED_BYTES,
    EXPIRED_UPDATES,
    LAG,
    PUT_OFF,
    PUT_OFF_WAITING,
    RECORDS,
    SANDBOX_FRAMES,
    SANDBOX_KILLS,
    SANDBOX_WORKERS,
    STAGE_SECONDS,
    STORED_UPDATES,
    TENANT_OVER,
    TENANT_PUT_OFF,
)
from servioticy.ports.batches import Batch
from servioticy.ports.expiry import Expired
from servioticy.ports.partition_store import PartitionStore

MOST_PRESSING = 5
"""Tenants of a partition that are told."""


class Sandboxes(Protocol):
    """What of a sandbox pool is asked, without waiting for what runs in it."""

    @property
    def frames(self) -> int:
        """Frames run so far."""

    @property
    def kills(self) -> dict[str, int]:
        """Processes ended for what ran in them, by kind."""

    @property
    def workers(self) -> int:
        """Processes that tenants have now."""


class TaskMetrics:
    """What the tasks of one process count: once for a batch, after it is stored."""

    def __init__(self, registry: Registry, sandboxes: Sandboxes) -> None:
        stored = registry.counter(STORED_UPDATES)
        self._received, self._derived = stored.labels("received"), stored.labels("derived")
        self._records = cache(registry.counter(RECORDS).labels)
        self._batch_updates = registry.histogram(BATCH_UPDATES)
        self._computations = cache(registry.counter(COMPUTATIONS).labels)
        self._stage_seconds = cache(registry.counter(STAGE_SECONDS).labels)
        self._expired_updates = registry.counter(EXPIRED_UPDATES)
        self._expired_bytes = registry.counter(EXPIRED_BYTES)
        self._put_off = registry.counter(PUT_OFF)
        self._waiting = registry.gauge(PUT_OFF_WAITING)
        self._pressing: Mapping[int, Callable[[], Iterable[Pressing]]] = {}
        registry.observe(TENANT_PUT_OFF, lambda: self._pressing_by(lambda each: each.waiting))
        registry.observe(TENANT_OVER, lambda: self._pressing_by(lambda each: each.over_seconds))
        registry.observe(SANDBOX_FRAMES, lambda: sandboxes.frames)
        registry.observe(SANDBOX_WORKERS, lambda: sandboxes.workers)
        registry.observe(SANDBOX_KILLS, lambda: {(k,): n for k, n in sandboxes.kills.items()})

    def stored(self, batch: Batch) -> None:
        """Count what one transaction has stored."""
        partition = str(batch.partition)
        if batch.next_offset > batch.first_offset:
            self._records(partition).inc(batch.next_offset - batch.first_offset)
        if batch.updates:
            # The first of each tree came from outside, and all else from it.
            received = [each.position for each in batch.updates].count(0)
            self._received.inc(received)
            if len(batch.updates) > received:
                self._derived.inc(len(batch.updates) - received)
            self._batch_updates.observe(received)
        if batch.verdicts:
            times: dict[str, int] = {}
            for each in batch.verdicts:
                times[each.verdict] = times.get(each.verdict, 0) + each.times
            for verdict, count in times.items():
                self._computations(verdict).inc(count)
        if batch.put_off or batch.taken_up:
            self._put_off.labels(partition).inc(len(batch.put_off))
            self._waiting.labels(partition).inc(len(batch.put_off) - len(batch.taken_up))

    def expired(self, done: Expired) -> None:
        """Count what was removed as it was old."""
        self._expired_updates.inc(done.updates)
        self._expired_bytes.inc(done.bytes)

    def waiting(self, partition: int, records: int) -> None:
        """Note how many records wait in a partition that is begun here."""
        self._waiting.labels(str(partition)).set(records)

    def left(self, partition: int) -> None:
        """Forget a partition that another process may have from now on."""
        self._waiting.remove(str(partition))

    def watch(self, partition: int, pressing: Callable[[], Iterable[Pressing]]) -> None:
        """Ask this from now on, in other threads, who presses in the partition."""
        self._pressing = {**self._pressing, partition: pressing}

    def watch_no_more(self, partition: int) -> None:
        """Ask it no more."""
        self._pressing = {n: each for n, each in self._pressing.items() if n != partition}

    def _pressing_by(self, value: Callable[[Pressing], float]) -> dict[tuple[str, ...], float]:
        return {
            (str(partition), str(each.tenant)): value(each)
            for partition, pressing in self._pressing.items()
            for each in foremost(pressing(), MOST_PRESSING)
        }

    def stage(self, name: str, seconds: float) -> None:
        """Count the time that a stage has taken."""
        self._stage_seconds(name).inc(seconds)


class _ObservedStore:
    """A store, and who counts what is stored in it."""

    def __init__(self, store: PartitionStore, metrics: TaskMetrics) -> None:
        self._store = store
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def store(self, batch: Batch) -> Mapping[int, int]:
        replaced = self._store.store(batch)
        self._metrics.stored(batch)
        return replaced

    def waiting(self, partition: int) -> dict[int, int]:
        found = self._store.waiting(partition)
        self._metrics.waiting(partition, sum(found.values()))
        return found

    def expire(self, tenant: int, after: int, streams: int, most: int, most_bytes: int) -> Expired:
        done = self._store.expire(tenant, after, streams, most, most_bytes)
        self._metrics.expired(done)
        return done

    def end(self, partition: int) -> None:
        self._metrics.left(partition)
        self._store.end(partition)


def observed(store: PartitionStore, metrics: TaskMetrics) -> PartitionStore:
    """The store; what it has stored is counted."""
    return cast(PartitionStore, _ObservedStore(store, metrics))


class Ends(Protocol):
    """Who knows how far the log reaches."""

    def end_offset(self, partition: int) -> int:
        """The offset of the partition's next record. Raises Unavailable."""


class Lag:
    """How many records of each partition are not behind stored progress yet."""

    def __init__(self, ends: Ends, registry: Registry) -> None:
        self._ends = ends
        self._records: dict[tuple[str, ...], float] = {}
        registry.observe(LAG, lambda: self._records)

    def note(self, progress: Mapping[int, int]) -> bool:
        """Note stored progress; whether the log ends before it, as far as the broker answers."""
        try:
            ahead = {n: self._ends.end_offset(n) - offset for n, offset in progress.items()}
        except Unavailable:
            return False
        self._records = {(str(n),): max(0, records) for n, records in ahead.items()}
        return any(records < 0 for records in ahead.values())
