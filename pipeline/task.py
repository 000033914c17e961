"""One partition's worker: takes what waits in the log, in order, as long as it comes."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable

from pipeline.decided import Decided
from pipeline.emission import send
from pipeline.intake import Row
from pipeline.limits import NO_LIMITS, Limits
from pipeline.metering import Meter
from pipeline.pace import Pace
from pipeline.partition import Partition
from pipeline.schedule import Schedule
from pipeline.shares import Shares
from pipeline.stages.transform import Sandbox
from servioticy.errors import Fenced, ServioticyError, Unavailable
from servioticy.ports import Batch, Output, PartitionStore

log = logging.getLogger("servioticy.pipeline")

LONGEST_PAUSE = 2.0
FAILURES_TO_HALVE = 3
"""After so many in a row batches are half as large as before."""

REST_SECONDS = 1.0
"""With nothing to do for so long, it is noted how far all is acknowledged."""


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
        remembered_bytes: int,
        limits: Limits = NO_LIMITS,
        retried: tuple[type[Exception], ...] = (Unavailable,),
        sleep: Callable[[float], None] = time.sleep,
        meter: Meter | None = None,
        share: float = 1.0,
    ) -> None:
        self._number = number
        self._store = store
        self._sandbox = sandbox
        self._new_output = output
        self._most_updates = most_updates
        self._remembered_bytes = remembered_bytes
        self._limits = limits
        self._retried = retried
        self._sleep = sleep
        self._meter = meter
        self._shares = Shares(share)
        self._pace = Pace()
        self._partition: Partition | None = None
        self._output: Output | None = None
        self._schedule: Schedule | None = None
        self._claimed = False
        self._reached = 0
        self._failures = 0

    def begin(self) -> None:
        """Read progress, and emit again what may not have reached subscribers.

        What is remembered from before stays, where nobody has stored since. Raises Rewound
        where progress lies before what was taken.
        """
        if self._partition is not None:
            next_offset, _emitted = self._store.begin(self._number)
            # What is computed late moves no progress: somebody may have done that.
            late = self._partition.waiting or self._partition.emitted_late
            if next_offset == self._partition.next_offset and not late:
                return
        partition = Partition(self._number, self._store, self._remembered_bytes)
        if partition.next_offset < self._reached:
            raise Rewound(self._number, partition.next_offset, self._reached)
        output = self._new_output()
        output.acknowledged = partition.emitted_offset
        again = self._store.not_acknowledged(
            self._number, partition.emitted_offset, partition.next_offset
        )
        partition.decided = Decided(output.emitted_from(partition.next_offset))
        send(output, partition.next_offset, again)
        late = self._store.taken_up(self._number)
        if late:
            output.flush()
            partition.emitted_late.extend(late)
        self._partition, self._output = partition, output
        self._schedule = Schedule(
            partition,
            self._sandbox,
            output,
            self._limits,
            self._shares,
            self._pace,
            (*self._retried, Fenced, Rewound),
            # It may be the size of a batch that a store cannot stand, whatever it says.
            max(1, self._most_updates >> self._failures // FAILURES_TO_HALVE),
            self._sleep,
        )
        log.info(
            "partition_begun",
            extra={
                "partition": self._number,
                "offset": partition.next_offset,
                "emitted_again": len(again),
            },
        )

    def take(self, rows: Iterable[Row]) -> None:
        """Work on rows in order of offset, then on a little of what has been put off or deleted.

        Postgres, broker or sandbox away: wait for them.

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
                self._take_late()
                self._purge(idle=not rows)
                self._note_success()
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
                self._failures += self._claimed  # the partition could be begun, but not this
                self._forget()
                self._sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    @property
    def patience(self) -> float:
        """Seconds until something is to be done though no rows come."""
        return self._schedule.patience() if self._schedule else REST_SECONDS

    def rest(self) -> None:
        """Nothing came for a while: do what has been put off, or note what is acknowledged."""
        if self._partition and (self._partition.waiting or self._partition.to_purge):
            return self.take(())
        return self._settle()

    def _note_success(self) -> None:
        self._failures = 0
        if self._schedule is not None:
            self._schedule.most_updates = self._most_updates

    def _take_late(self) -> None:
        if self._schedule is not None:
            self._schedule.take_late()

    def _purge(self, *, idle: bool) -> None:
        if self._schedule is not None:
            self._schedule.purge(idle=idle)

    def _settle(self) -> None:
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
            self._forget()
        return None

    def _forget(self) -> None:
        self._partition = self._output = self._schedule = None
        self._claimed = False

    def end(self) -> None:
        """No more rows: wait until all that was emitted is acknowledged, and note it."""
        try:
            if self._output is not None:
                self._output.flush()
        except self._retried:  # it is emitted again where the partition is begun next
            self._forget()
        else:
            self._settle()

    def release(self) -> None:
        """Let another worker have the partition."""
        self._claimed = False
        with contextlib.suppress(Unavailable):  # then the claim is gone with the connection
            self._store.end(self._number)

    def _take(self, rows: list[Row]) -> None:
        partition, schedule = self._partition, self._schedule
        if partition is None or schedule is None:
            raise Unavailable("the partition has not begun")
        end = partition.next_offset
        new = [row for row in rows if row.offset >= end]  # the others were stored before a restart
        for row in new:
            if row.offset != end:
                raise Rewound(self._number, partition.next_offset, row.offset)
            end = row.offset + 1
        schedule.take(new)
        self._reached = partition.next_offset
