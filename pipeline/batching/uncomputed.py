"""Records of which nothing is computed: those that are passed by, and those that act."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.batching.dead_letters import DeadLetters
from pipeline.engine import Engine
from pipeline.state.partition import Partition
from pipeline.work import Row, Work
from servioticy.ports.output import Output
from servioticy.ports.put_off import PutOff, TreeKey


class Uncomputed:
    """Stores what becomes of such records in one partition."""

    def __init__(
        self, partition: Partition, output: Output, engine: Engine, dead_letters: DeadLetters
    ) -> None:
        self._partition = partition
        self._output = output
        self._engine = engine
        self._dead_letters = dead_letters

    def store(self, work: Work) -> None:
        """Store work without updates: where progress is, what is put off or held, what is done."""
        if work.is_empty and work.end <= self._partition.progress:
            return
        for _ in self._engine.stages.emit((), (), work, self._partition, self._output):
            """There is hardly anything to send."""
        self._partition.note_waiting(work)

    def guard(self, row: Row, act: Callable[[], None], late: Sequence[PutOff] = ()) -> None:
        """Do what a control record asks; a bug in that makes a dead letter of the record."""
        try:
            act()
        except self._engine.passes:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, others must go on
            self._dead_letters.add_failed(row, error)
            end = self._partition.progress if late else TreeKey(row.offset + 1)
            self.store(Work((), end, (), late))
