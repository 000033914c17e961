"""Where late work is stored and noted: beside the transactions of its partition, by its claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pipeline.accounting.accounts import Accounts
from pipeline.state.partition import Partition
from pipeline.work import Work
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Effect
from servioticy.ports.kept_entries import StoredEntry
from servioticy.ports.put_off import TreeKey


class LateBase:
    """Made and given back by the thread that has the partition, and used by another."""

    def __init__(
        self,
        partition: Partition,
        work: Work,
        emitted: Sequence[TreeKey] = (),
        effect: Effect | None = None,
        *,
        contested: bool,
    ) -> None:
        """`emitted` are records of which it is noted with it that all of them is emitted; `effect`
        is what a control record brings about, if it is one."""
        self.number = partition.number
        self.accounts = Accounts()
        self.emitted_late: list[TreeKey] = []
        self.spares_others = contested
        self._partition = partition
        self._store, self._claim = partition.store, partition.claim
        self._work = work
        self._counted = partition.counted
        self._emitted_offset = partition.emitted_offset
        self._emitted_before = tuple(emitted)
        self._effect = effect
        self._changed: dict[KnownStream, LastUpdate] = {}
        self._kept: Sequence[StoredEntry] = ()
        self.is_withdrawn = False
        """Nothing more is to be stored of it, or sent."""

    def commit(self, batch: Callable[[TreeKey], Batch]) -> Mapping[int, int]:
        """Store what was computed. Raises Unavailable, also where it is not to be any more."""
        if self.is_withdrawn:
            raise Unavailable("the partition is begun anew")
        content = replace(
            batch(self._work.end),
            claim=self._claim,
            # How far the partition's own client has come; this one's tells nothing of that.
            emitted_offset=self._emitted_offset,
            emitted_late=self._emitted_before,
            effect=self._effect,
        )
        replaced = self._store.store(content)
        self._kept = content.kept
        return replaced

    def remember(self, last_updates: Mapping[KnownStream, LastUpdate]) -> None:
        """Note that these were stored as last updates."""
        self._changed.update(last_updates)

    def withdraw(self) -> None:
        """Let nothing more be stored of it, or sent."""
        self.is_withdrawn = True

    def give_back(self) -> None:
        """Let the partition know what has become of it."""
        partition = self._partition
        partition.remember(self._changed)
        partition.note_kept(self._kept)
        if self._effect is not None:
            partition.note_in_force()
            partition.count_waiting()  # who is computed, and where, may be others
        else:
            partition.note_stored_beside(self._work, self._counted)
        partition.accounts.add(self.accounts)
        noted = frozenset(self._emitted_before)
        left = [each for each in partition.emitted_late if each not in noted]
        partition.emitted_late = left + self.emitted_late
