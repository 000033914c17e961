"""One partition's worker: takes what waits in the log, in order, as long as it comes."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from pipeline.control import apply
from pipeline.decided import Decided
from pipeline.journal import Made, Place
from pipeline.metering import Meter
from pipeline.partition import Partition
from pipeline.process import process
from pipeline.stages.dispatch import BatchTooLarge, Limits, TreeTooLarge
from pipeline.stages.transform import Sandbox
from servioticy.errors import Rejected, ServioticyError, Unavailable
from servioticy.messaging.letters import clipped
from servioticy.messaging.records import (
    DeadLetter,
    LogRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
)
from servioticy.model import SensorUpdate
from servioticy.ports import Batch, Output, PartitionStore

log = logging.getLogger("servioticy.pipeline")

LONGEST_PAUSE = 2.0
NO_LIMITS = Limits(sys.maxsize, sys.maxsize)


def _cut(updates: list[Made], end: int, *places: int) -> list[tuple[list[Made], int]]:
    """The batch in pieces, cut before these places; each ends where the next one begins."""
    edges = sorted({0, *places, len(updates)})
    return [
        (updates[first:last], updates[last].place.offset if last < len(updates) else end)
        for first, last in pairwise(edges)
    ]


class Row(NamedTuple):
    """A record of the log as Kafka gave it."""

    offset: int
    value: bytes | None


class Rewound(ServioticyError):
    """Postgres fell, and with it the last batches: their rows have to come again."""

    def __init__(self, partition: int, progress: int, reached: int) -> None:
        super().__init__(
            f"partition {partition} was at offset {reached}, and is stored up to {progress} only: "
            "it is read again from there"
        )


class Task:
    """Takes rows of one partition, each once, whatever happens to the parts around it."""

    def __init__(
        self,
        number: int,
        store: PartitionStore,
        sandbox: Sandbox,
        output: Callable[[], Output],
        most_updates: int,
        remembered_streams: int,
        limits: Limits = NO_LIMITS,
        retried: tuple[type[Exception], ...] = (Unavailable,),
        sleep: Callable[[float], None] = time.sleep,
        meter: Meter | None = None,
    ) -> None:
        self._number = number
        self._store = store
        self._sandbox = sandbox
        self._new_output = output
        self._most_updates = most_updates
        self._remembered_streams = remembered_streams
        self._limits = limits
        self._retried = retried
        self._sleep = sleep
        self._meter = meter
        self._partition: Partition | None = None
        self._output: Output | None = None
        self._claimed = False
        self._reached = 0

    def begin(self) -> None:
        """Read progress, and emit again what may not have reached subscribers.

        What is remembered from before stays, where nobody has stored since. Raises Rewound
        where progress lies before what was taken.
        """
        if self._partition is not None:
            next_offset, _emitted = self._store.begin(self._number)
            if next_offset == self._partition.next_offset:
                return
        partition = Partition(self._number, self._store, self._remembered_streams)
        if partition.next_offset < self._reached:
            raise Rewound(self._number, partition.next_offset, self._reached)
        output = self._new_output()
        output.acknowledged = partition.emitted_offset
        again = self._store.not_acknowledged(
            self._number, partition.emitted_offset, partition.next_offset
        )
        partition.decided = Decided(output.emitted_from(partition.next_offset))
        output.emit(partition.next_offset, again)
        self._partition, self._output = partition, output
        log.info(
            "partition_begun",
            extra={
                "partition": self._number,
                "offset": partition.next_offset,
                "emitted_again": len(again),
            },
        )

    def take(self, rows: Iterable[Row]) -> None:
        """Work on rows in order of offset. Postgres, broker or sandbox away: wait for them.

        Raises Fenced where another worker has the partition, and Rewound where rows between
        the stored progress and these are missing: then they have to come again.
        """
        rows = list(rows)
        pause = 0.05
        while True:
            try:
                if self._partition is None or not self._claimed:
                    self.begin()
                    self._claimed = True
                self._take(rows)
                if self._meter and self._partition and self._meter.due:
                    self._meter.charge(self._partition)
            except Rewound as error:
                log.warning(
                    "partition_rewound", extra={"partition": self._number, "why": str(error)}
                )
                raise
            except self._retried as error:
                log.warning(
                    "partition_waits", extra={"partition": self._number, "why": str(error)}
                )
                self._partition = self._output = None
                self._claimed = False
                self._sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    def rest(self) -> None:
        """Nothing came for a while: note what is acknowledged, charge what was used."""
        partition, output = self._partition, self._output
        if partition is None or output is None:
            return self.take(())
        try:
            output.poll()
            if output.acknowledged > partition.emitted_offset:
                at = partition.next_offset
                partition.commit(lambda first: Batch(self._number, first, at, output.acknowledged))
            if self._meter:
                self._meter.charge(partition)
        except self._retried:
            self._partition = self._output = None
            self._claimed = False
        return None

    def end(self) -> None:
        """No more rows: wait until all that was emitted is acknowledged, and note it."""
        if self._output is not None:
            self._output.flush()
            self.rest()

    def release(self) -> None:
        """Let another worker have the partition."""
        self._claimed = False
        with contextlib.suppress(Unavailable):  # then the claim is gone with the connection
            self._store.end(self._number)

    def _take(self, rows: list[Row]) -> None:
        partition, output = self._partition, self._output
        if partition is None or output is None:
            raise Unavailable("the partition has not begun")
        updates: list[Made] = []
        end = partition.next_offset
        for row in rows:
            if row.offset < end:
                continue  # stored before a restart
            if row.offset > end:
                raise Rewound(self._number, partition.next_offset, row.offset)
            record = self._read(row, output)
            if record is not None and not isinstance(record, UpdateRecord):
                self._process(updates, end, partition, output)
                updates = []
                apply(record, row.offset, partition, output, self._sleep)
            elif record is not None:
                update = self._admit(record, row, partition, output)
                if update is not None:
                    updates.append(update)
            end = row.offset + 1
            # What subscribers know already is taken tree by tree, each with its own progress:
            # what was forwarded is noted as taken with it, and not before.
            if len(updates) >= self._most_updates or partition.decided.covers(row.offset):
                self._process(updates, end, partition, output)
                updates = []
        self._process(updates, end, partition, output)
        self._reached = partition.next_offset

    def _process(
        self, updates: list[Made], end: int, partition: Partition, output: Output
    ) -> None:
        """Process them as one batch, or as several where they cause too much for one."""
        waiting = [(updates, end)]
        while waiting:
            some, until = waiting.pop()
            if until <= partition.next_offset:
                continue
            try:
                self._process_some(some, until, partition, output)
            except BatchTooLarge:
                waiting += reversed(_cut(some, until, len(some) // 2))
            except TreeTooLarge as tree:
                place = next(n for n, each in enumerate(some) if each.place.offset == tree.offset)
                if len(some) == 1:
                    self._process_some(some, until, partition, output, alone=True)
                else:
                    waiting += reversed(_cut(some, until, place, place + 1))

    def _process_some(
        self,
        updates: list[Made],
        end: int,
        partition: Partition,
        output: Output,
        *,
        alone: bool = False,
    ) -> None:
        limits = self._limits
        alone = alone or (bool(updates) and partition.decided.covers(updates[0].place.offset))
        process(updates, end, partition, self._sandbox, output, limits, alone=alone)

    def _read(self, row: Row, output: Output) -> LogRecord | None:
        try:
            return read_record(row.value)
        except UnreadableRecord as error:
            self._bury(row, f"unreadable: {error}", output)
            return None

    def _admit(
        self, record: UpdateRecord, row: Row, partition: Partition, output: Output
    ) -> Made | None:
        """The update, if this is the place to compute it and the first time it comes."""
        if record.forwarded is not None:
            source, offset = record.forwarded
            if offset < partition.taken.get(source, 0):
                return None
            partition.taken[source] = offset + 1
        owner = partition.service_object(record.service_object)
        if isinstance(owner, int):
            again = msgspec.structs.replace(record, forwarded=(self._number, row.offset))
            try:
                output.send_to_log(owner, again)
            except Rejected as error:
                self._bury(row, f"not forwarded: {error}", output)
                return None
            output.flush()  # it must be there before our progress passes it
            return None
        if owner is None or record.stream not in owner.stream_ids:
            gone = owner is None and partition.is_deleted(record.service_object)
            self._bury(row, f"{'deleted' if gone else 'unknown'} stream {record.origin}", output)
            return None
        update = SensorUpdate(record.origin, record.timestamp, bytes(record.update))
        return Made(Place(row.offset), update)

    def _bury(self, row: Row, reason: str, output: Output) -> None:
        output.bury(DeadLetter(self._number, row.offset, clipped(reason), row.value or b""))
        output.flush()
        log.warning(
            "dead_letter",
            extra={"partition": self._number, "offset": row.offset, "reason": clipped(reason)},
        )
