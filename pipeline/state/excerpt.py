"""What a partition lends of itself, so that late work is computed beside its batches.

Components have nothing in common: what is computed of one neither reads nor changes what is
computed of another. So those of a late piece of work are lent as they are, computed in another
thread, and given back with what has become of them. Until then the partition computes nothing
of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from pipeline.accounts import Accounts
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.work import Work
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Batch


class Excerpt:
    """The state of some components, for the late work of which nothing else is computed.

    It is made and given back by the thread that has the partition, and used by another.
    """

    def __init__(self, partition: Partition, work: Work) -> None:
        """Lend the components of the streams that the work updates. Raises Unavailable."""
        self.number = partition.number
        self.store = partition.store
        self.graph = partition.graph
        self.decided = Decided()  # late work is not read back from what was emitted
        self.accounts = Accounts()
        self.next_offset = work.next_offset
        self.waiting: Counter[int] = Counter()
        self.emitted_late: list[int] = []
        self._partition = partition
        self._claim = partition.claim
        origins = dict.fromkeys(self.graph.stream(each.origin) for each in work.updates)
        needed = partition.needed(origins)
        known = partition.recalled(needed)
        self._last_updates = {ref: known.get(ref) for ref in needed}
        self._changed: dict[KnownStream, LastUpdate] = {}
        self._stored: list[Work] = []
        self._is_withdrawn = False
        self._emitted_before = frozenset(partition.emitted_late)
        self._noted: Set[int] = frozenset()
        partition.lend({each.origin.service_object for each in work.updates})

    def recall(self, _origins: Iterable[KnownStream]) -> Mapping[StreamRef, LastUpdate | None]:
        """Return the last updates that trees of the work need."""
        return self._last_updates

    def commit(self, batch: Callable[[int], Batch]) -> Mapping[int, int]:
        """Store what was computed. Raises Unavailable, also where it is not to be any more."""
        if self._is_withdrawn:
            raise Unavailable("the partition is begun anew")
        emitted_late = sorted(self._emitted_before - self._noted)
        content = replace(batch(self.next_offset), claim=self._claim, emitted_late=emitted_late)
        replaced = self.store.store(content)
        self._noted = self._emitted_before
        return replaced

    def remember(self, last_updates: Mapping[KnownStream, LastUpdate]) -> None:
        """Note that these were stored as last updates."""
        self._last_updates.update((each.ref, last) for each, last in last_updates.items())
        self._changed.update(last_updates)

    def note_waiting(self, work: Work) -> None:
        """Note that this work is stored."""
        self._stored.append(work)

    def trim(self) -> None:
        """Nothing is forgotten before it is given back."""

    def withdraw(self) -> None:
        """Let nothing more be stored of it."""
        self._is_withdrawn = True

    def give_back(self) -> None:
        """Let the partition know what has become of what it has lent."""
        partition = self._partition
        partition.remember(self._changed)
        for each in self._stored:
            partition.note_waiting(each)
        partition.accounts.add(self.accounts)
        left = [each for each in partition.emitted_late if each not in self._noted]
        partition.emitted_late = left + self.emitted_late
        partition.take_back()
