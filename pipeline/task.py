"""The worker of one partition: claims it, and tries again what waiting heals."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pipeline.accounting.metering import Meter
from pipeline.batching.means import Means
from pipeline.batching.schedule import Schedule
from pipeline.engine import Engine
from pipeline.errors import ProgressLost
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.pressing import Pressing
from pipeline.sharing.shares import Shares
from pipeline.stages.emit import send
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.work import Row
from servioticy.domain.emissions import emission
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.put_off import TreeKey

log = logging.getLogger("servioticy.pipeline")

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
"""Between two attempts; each pause is twice as long as the one before."""

FAILURES_TO_HALVE = 3
"""After so many in a row batches are half as large as before."""

SENDING_SECONDS = 0.002
"""Between two looks at what is to be sent once something else has arrived."""

REST_SECONDS = 1.0
"""With nothing to do for so long, it is noted how far all is acknowledged."""

LOOKS = 10
"""For what is unused, in the time after which that is forgotten; or each second."""


class _Begun(NamedTuple):
    """A partition that has been begun, and what works on it."""

    partition: Partition
    output: Output
    schedule: Schedule


class Task:
    """Takes rows of one partition, each once, whatever happens to the parts around it."""

    def __init__(
        self,
        number: int,
        store: PartitionStore,
        output: Callable[[], Output],
        engine: Engine,
        fairness: Fairness | None = None,
        meter: Meter | None = None,
        means: Means | None = None,
    ) -> None:
        """`output` makes a new one each time the partition is begun.

        Without `fairness` a tenant may use all of the partition's time; without `means` nothing
        is computed while something else is.
        """
        self._number = number
        self._store = store
        self._new_output = output
        self._engine = engine
        self._fairness = fairness or Fairness(Shares(1.0))
        self._meter = meter
        self.means = means or Means()
        self._begun: _Begun | None = None
        self._claimed = False
        self.forgotten = 0
        """Service Objects and tenants that nobody used: nothing is remembered of them any more."""
        self._forgets_at = 0.0
        self._reached = TreeKey(0)
        self._failures = 0

    def take(self, rows: Iterable[Row]) -> None:
        """Work on rows in order of offset, and begin with a little of what was put off.

        While Postgres, the broker or the sandbox are away, this waits for them. Raises Fenced
        where another worker has the partition, and ProgressLost where rows between the stored
        progress and these are missing: then they have to come again.
        """
        rows = list(rows)
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                begun = self._claim()
                self._take_new(begun, rows)
                begun.schedule.go_on()
                begun.schedule.wake()
                begun.schedule.purge(idle=not rows)
                self._forget_unused(begun)
                self._note_success(begun)
                return
            except ProgressLost as error:
                facts = {"partition": self._number, "why": str(error)}
                log.warning("progress_lost", extra=facts)
                raise
            except self._engine.heals as error:
                facts = {"partition": self._number, "why": str(error)}
                log.warning("partition_waits", extra=facts)
                self._failures += self._claimed  # the partition could be begun, but not this
                self._forget()
                self._engine.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    @property
    def patience(self) -> float:
        """Seconds until something is to be done though no rows come."""
        if self._begun is None:
            return REST_SECONDS
        patience = self._begun.schedule.patience()
        return min(patience, SENDING_SECONDS) if self._begun.output.has_more else patience

    @property
    def is_computing(self) -> bool:
        """Whether there is nothing to do but wait for scripts."""
        return self._begun is not None and self._begun.schedule.is_computing

    @property
    def is_behind(self) -> bool:
        """Whether anything of the partition is put off, or computed late."""
        begun = self._begun
        return begun is not None and (begun.schedule.is_busy or bool(begun.partition.waiting))

    @property
    def has_work(self) -> bool:
        """Whether there is something to do though no rows come."""
        return self._begun is not None and self._begun.schedule.has_work

    def pressing(self) -> list[Pressing]:
        """Return who is over its share, or has records put off; for other threads, to look on."""
        begun = self._begun
        if begun is None or not self._claimed:
            return []
        waiting, debts = dict(begun.partition.waiting), self._fairness.shares.debts()
        tenants = waiting.keys() | debts.keys()
        return [Pressing(each, waiting.get(each, 0), debts.get(each, 0.0)) for each in tenants]

    def rest(self) -> None:
        """Use that nothing has come for a while.

        What has been put off is taken up, what was deleted is removed, or else it is noted how
        far all is acknowledged.
        """
        begun = self._begun
        if begun is not None and begun.output.has_more:
            self._send_more(begun)
            return
        if begun is None or self.has_work:
            self.take(())
        else:
            self._note_acknowledged(begun)
            self._forget_unused(begun)

    def _forget_unused(self, begun: _Begun) -> None:
        """Forget some of what nobody has used for long, now and then: while others' updates come,
        too, or all who come one after the other would be remembered until nobody does."""
        now, engine = self._engine.clock(), self._engine
        if now >= self._forgets_at:
            self._forgets_at = now + min(REST_SECONDS, engine.idle_seconds / LOOKS)
            self.forgotten += begun.partition.forget_unused() + engine.end_idle()

    def _send_more(self, begun: _Begun) -> None:
        try:
            begun.output.poll()
        except self._engine.heals:
            self._forget()

    def end(self) -> None:
        """No more rows come: wait until all that was emitted is acknowledged, and note it."""
        try:
            if self._begun is not None:
                self._begun.schedule.settle()
                self._begun.output.flush()
        except self._engine.heals:  # it is emitted again where the partition is begun next
            self._forget()
            return
        if self._meter:
            self._meter.wait()
        if self._begun is None:
            self.take(())
        else:
            self._note_acknowledged(self._begun)
        if self._meter:
            self._meter.wait()

    def release(self) -> None:
        """Let another worker have the partition; nothing more is stored by this one."""
        if self._begun is not None and self.is_behind:
            self._forget()
        self._claimed = False
        with contextlib.suppress(Unavailable):  # then the claim is gone with the connection
            self._store.end(self._number)

    def _claim(self) -> _Begun:
        """Claim the partition, unless it is claimed; what is known of it stays where it may.

        Raises ProgressLost where the stored progress lies before what was taken.
        """
        if self._begun is None or not self._claimed:
            if self._begun is None or not self._is_as_it_was(self._begun.partition):
                self._begun = self._begin()
            self._claimed = True
        return self._begun

    def _is_as_it_was(self, partition: Partition) -> bool:
        """Whether nobody has stored anything in the partition since; claims it."""
        next_offset, next_tree, _emitted = self._store.begin(self._number)
        partition.claim = self._store.claim(self._number)
        # What is computed late moves no progress: somebody may have done that.
        late = partition.waiting or partition.emitted_late
        return (next_offset, next_tree) == partition.progress and not late

    def _begin(self) -> _Begun:
        """Read progress, and emit again what may not have reached subscribers."""
        engine = self._engine
        partition = Partition(
            self._number, self._store, engine.remembered_bytes, engine.idle_seconds, engine.clock
        )
        progress = partition.progress
        if progress < self._reached:
            raise ProgressLost(self._number, progress.offset, self._reached.offset)
        output = self._new_output()
        output.acknowledged = partition.emitted_offset
        last = progress.offset if progress.tree else progress.offset - 1
        again = self._store.not_acknowledged(self._number, partition.emitted_offset, last)
        crossings = self._store.crossings(self._number)
        partition.decided = Decided(output.emitted_from(progress.offset))
        send(output, progress.offset, [emission(each) for each in again], crossings)
        late = self._store.taken_up(self._number)
        if late:
            output.flush()
            partition.emitted_late.extend(late)
        # It may be the size of a batch that a store cannot stand, whatever it says.
        max_updates = max(1, self._engine.max_updates >> self._failures // FAILURES_TO_HALVE)
        schedule = Schedule(
            partition,
            output,
            self._engine,
            self._fairness,
            max_updates,
            self.means,
            self._new_output,
        )
        log.info(
            "partition_begun",
            extra={
                "partition": self._number,
                "offset": progress.offset,
                "emitted_again": len(again),
            },
        )
        return _Begun(partition, output, schedule)

    def _take_new(self, begun: _Begun, rows: list[Row]) -> None:
        """Work on those of the rows that are not stored; they were before a restart."""
        partition = begun.partition
        first = end = partition.progress.offset
        new = [row for row in rows if row.offset >= end]
        for row in new:
            if row.offset != end:
                raise ProgressLost(self._number, first, row.offset)
            end = row.offset + 1
        begun.schedule.take(new)
        self._reached = partition.progress

    def _note_success(self, begun: _Begun) -> None:
        self._failures = 0
        begun.schedule.max_updates = self._engine.max_updates
        if self._meter and self._meter.due:
            self._meter.charge(begun.partition)

    def _note_acknowledged(self, begun: _Begun) -> None:
        """Store how far all is acknowledged, and charge what scripts have used."""
        partition, output, _schedule = begun
        try:
            output.poll()
            if output.acknowledged > partition.emitted_offset or partition.emitted_late:
                partition.commit(
                    lambda at: Batch(
                        self._number,
                        at.offset,
                        at.offset,
                        output.acknowledged,
                        first_tree=at.tree,
                        next_tree=at.tree,
                    )
                )
            if self._meter:
                self._meter.charge(partition)
        except self._engine.heals:
            self._forget()

    def _forget(self) -> None:
        if self._begun is not None:
            self._begun.schedule.withdraw()
            if self._meter:
                self._meter.keep(self._begun.partition.accounts)
        self._begun = None
        self._claimed = False
