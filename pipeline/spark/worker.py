"""Inside Spark's Python worker: from the task's endless rows to a Task's batches.

A reader thread drains what Spark hands over; the main thread takes all that waits, so a
batch is one update when it is quiet and hundreds when it is not.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import chain
from typing import Any, Generic, TypeVar

from monitoring import following
from operators.building import Programs
from operators.registry import Registry as KnownPrograms
from pipeline.accounting.metering import Meter
from pipeline.aspects import STAGES, timed
from pipeline.batching.means import STORING_THREADS, Means
from pipeline.batching.slots import threads_for
from pipeline.engine import Engine
from pipeline.errors import ProgressLost
from pipeline.limits import Limits
from pipeline.metrics import TaskMetrics, observed
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.shares import Shares
from pipeline.sharing.used_up import UsedUp
from pipeline.spark import bundles, quickack
from pipeline.spark.garbage import Garbage
from pipeline.spark.inbox import Inbox
from pipeline.spark.listening import Listener
from pipeline.spark.reaching import end_executor, reach
from pipeline.state.manifests import AskedPrograms
from pipeline.task import Task
from pipeline.work import Row
from sandbox import InfraError, SandboxPool
from servioticy import logs
from servioticy.bootstrap import connect, emitter, partition_store, sandbox_pool, stored_programs
from servioticy.domain.evaluators.every import every
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.quotas import quotas
from servioticy.errors import Unavailable
from servioticy.metrics import Registry, join
from servioticy.settings import Settings
from servioticy.storage.roles import Role

log = logging.getLogger("servioticy.pipeline")

SWITCH_SECONDS = 0.0005

IDLE_SECONDS = 0.5
"""Of a batch, for what can be done in the next one as well."""

REST_SECONDS = 0.01
"""Between two looks at what is computed late, at the end of a batch."""

LOCK_SECONDS = 10.0
"""The longest wait of what stores for a lock: the partition's own second transaction may have it,
which goes on in the same thread."""

Thing = TypeVar("Thing")


def work(batches: Iterable[Any], partition: int, settings: Settings) -> Iterator[Any]:
    """Take every row of one Spark task; yields nothing, and returns when Spark says so.

    Raises Fenced where another worker has the partition, ProgressLost where rows are missing that
    are not kept here, and what the reading raised.
    """
    quickack.connections()  # before there are others
    inbox = Inbox()
    in_batches = settings.spark.trigger != "realtime"
    target = read_singly if in_batches else read
    reader = threading.Thread(target=target, args=(batches, inbox), name="row-reader", daemon=True)
    reader.start()
    kept, most = _kept(settings), settings.pipeline.max_batch_updates
    try:
        while _has_to_go_back(kept, partition, inbox, most, in_batches):
            kept.drop()
    except Exception:
        log.exception("task_failed", extra={"partition": partition})
        raise
    return iter(())


def work_in_bundles(batches: Iterable[Any], settings: Settings) -> Iterator[Any]:
    """Take the bundles of one task in real-time mode, the first of which says of which partition.

    Yields and raises as `work` does.
    """
    if settings.spark.master:  # else the driver has the same way to it
        _reach(settings)
    first, rows = _begun(batches)
    if first is None:
        return iter(())
    quickack.acknowledge()
    partition = bundles.partition(first.column(0)[0].as_py())
    return work(chain((first.slice(1),), rows), partition, settings)


def _reach(settings: Settings) -> None:
    try:
        reach(partial(_ask, settings))
    except Unavailable:
        end_executor()
        raise


def _ask(settings: Settings) -> None:
    database = connect(settings, Role.PIPELINE)
    try:
        partition_store(database).held()
    finally:
        database.close()


def work_in_batches(batches: Iterable[Any], settings: Settings) -> Iterator[Any]:
    """Take the rows of one task of a Spark batch, and all that is put off of its partition.

    Nothing is done between two batches. Yields and raises as `work` does.
    """
    first, rows = _begun(batches)
    if first is None:
        return iter(())
    partition = first.column(0)[0].as_py()
    return work(chain((first,), rows), partition, settings)


def _begun(batches: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Return the first batch that has rows, and those after it; None where no row comes."""
    rows = iter(batches)
    return next((each for each in rows if each.num_rows), None), rows


def prepare(settings: Settings) -> None:
    """Start what a worker needs whatever partition it gets."""
    quickack.connections()  # before there are others
    _sandbox(settings).prepare()


def _has_to_go_back(
    kept: Kept[Task], partition: int, inbox: Inbox, most: int, in_batches: bool
) -> bool:
    """Work until no more rows come; True where another task has to take the newest again.

    Postgres fell and forgot the last batches. Spark would need seconds to read them again.
    """
    try:
        _work(kept.of(partition), inbox, most, in_batches)
    except ProgressLost as error:
        if not inbox.rewind(error.progress):
            raise
        return True
    return False


def _work(task: Task, inbox: Inbox, most: int, in_batches: bool) -> None:
    garbage = _garbage()
    task.means.wake, task.means.arrivals = inbox.wake, inbox.peek
    try:
        task.take(())
        while (rows := inbox.get(most, task.patience)) is not None:
            if rows:
                task.take(rows)
            else:
                task.rest()
                forgotten, task.forgotten = task.forgotten, 0
                garbage.give_back(forgotten)
            garbage.look(computing=task.is_computing)
        if in_batches:
            _finish(task)
        task.end()
    finally:
        task.release()


def _finish(task: Task) -> None:
    """Do what is put off, and for a while what else needs no rows: a task of a batch ends then."""
    ends = time.monotonic() + IDLE_SECONDS
    while task.is_behind or (task.has_work and time.monotonic() < ends):
        task.rest()
        time.sleep(min(task.patience, REST_SECONDS))


def read(batches: Iterable[Any], inbox: Inbox) -> None:
    """Hand over to the inbox what the bundles hold (see job.rows)."""
    try:
        for batch in batches:
            quickack.acknowledge()
            for bundle in batch.column(0).to_pylist():
                inbox.put(bundles.unpack(bundle), len(bundle))
            inbox.wait_for_room()  # the socket fills, and Spark waits in its turn
    except BaseException as error:  # noqa: BLE001  raised again by the main thread
        inbox.end(error)
    else:
        inbox.end()


def read_singly(batches: Iterable[Any], inbox: Inbox) -> None:
    """Hand over to the inbox rows that did not come in bundles (see job.single_rows)."""
    try:
        for batch in batches:
            offsets, values = batch.column(1).to_pylist(), batch.column(2).to_pylist()
            inbox.put([*map(Row, offsets, values)], batch.nbytes)
            inbox.wait_for_room()
    except BaseException as error:  # noqa: BLE001  raised again by the main thread
        inbox.end(error)
    else:
        inbox.end()


class Kept(Generic[Thing]):
    """What a worker knows of the partition that it had last; of others it forgets all.

    Spark gives a worker the same partition again and again, or another one for good.
    """

    def __init__(self, make: Callable[[int], tuple[Thing, Callable[[], None]]]) -> None:
        """`make` returns it for a partition, and how to let go of it."""
        self._make = make
        self._partition: int | None = None
        self._thing: tuple[Thing, Callable[[], None]] | None = None

    def of(self, partition: int) -> Thing:
        """Return what is known of a partition; that of the last one goes if it is another."""
        if self._thing is None or partition != self._partition:
            self.drop()
            self._thing, self._partition = self._make(partition), partition
        return self._thing[0]

    def drop(self) -> None:
        """Forget what is known."""
        gone, self._thing = self._thing, None
        if gone is not None:
            gone[1]()


@cache
def _kept(settings: Settings) -> Kept[Task]:
    """The task that this process had last, kept between Spark batches."""
    return Kept(lambda partition: _task(partition, settings))


def _task(partition: int, settings: Settings) -> tuple[Task, Callable[[], None]]:
    """The task of a partition, with all that it remembers, and how to give it up."""
    logs.configure(settings.log_level)
    # What is stored here can be computed again from the log, so it need not wait for the disk.
    metrics = _metrics(settings)
    engine = Engine(
        every(JavaScript(_sandbox(settings))),
        settings.pipeline.max_batch_updates,
        settings.pipeline.head_cache_bytes,
        limits_of(settings),
        stages=timed(STAGES, metrics.stage),
        heals=(Unavailable, InfraError),
        idle_seconds=settings.forget_seconds,
        end_idle=_sandbox(settings).end_idle,
    )
    fairness = Fairness(Shares(settings.pipeline.tenant_share), UsedUp(quotas(settings)))
    means = Means(
        ThreadPoolExecutor(threads_for(engine.processors), thread_name_prefix="asking"),
        ThreadPoolExecutor(STORING_THREADS, thread_name_prefix="storing"),
    )
    stored = stored_programs(connect(settings, Role.PIPELINE))
    programs = Listener(Programs(settings, stored, partition), lambda: means.wake())
    means.programs = AskedPrograms(programs, KnownPrograms(stored), _program_seconds(settings))
    means.askers.submit(_sandbox(settings).prepare)  # what fails is met by who needs it
    database = connect(settings, Role.PIPELINE, durable=False, lock_seconds=LOCK_SECONDS)
    store = observed(partition_store(database), metrics)
    task = Task(
        partition,
        store,
        lambda: emitter(settings, partition),
        engine,
        fairness,
        _meter(settings),
        means,
    )
    metrics.watch(partition, task.pressing)
    switch_often()

    def give_up() -> None:
        metrics.watch_no_more(partition)
        for each in (means.askers, means.storing):
            each.shutdown(wait=False, cancel_futures=True)
        programs.close()
        database.close()

    return task, give_up


def limits_of(settings: Settings) -> Limits:
    """How far one update may go, by the settings."""
    return Limits(
        settings.limits.max_hops,
        settings.limits.max_computations,
        settings.limits.max_tree_bytes,
        settings.limits.max_tree_script_ms / 1000,
    )


def switch_often() -> None:
    """Let what is computed beside keep the partition waiting for moments only.

    Each time the partition has sent or received something it waits for its turn in Python: five
    milliseconds by default, some ten times an update.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


@cache
def _garbage() -> Garbage:
    """Begun once: what is known of the partition by the next task may be garbage some day."""
    garbage = Garbage()
    garbage.begin()
    return garbage


@cache
def _sandbox(settings: Settings) -> SandboxPool:
    return sandbox_pool(settings)


@cache
def _metrics(settings: Settings) -> TaskMetrics:
    """Those of this process, whatever partitions it has; the driver asks for them."""
    registry = Registry(with_process=False)
    join(registry)
    following.begin(settings, "pipeline", registry)
    return TaskMetrics(registry, _sandbox(settings))


@cache
def _meter(settings: Settings) -> Meter:
    executor = ThreadPoolExecutor(1, thread_name_prefix="accounts")
    sandbox, programs = _sandbox(settings), _program_seconds(settings)
    return Meter(lambda: {**sandbox.program_cpu_seconds(), **programs}, executor=executor)


@cache
def _program_seconds(_settings: Settings) -> dict[str, float]:
    """What tenants' own programs have taken of the processor for this process."""
    return {}
