"""What a partition lends of itself, so that late work is computed beside its batches.

Components have nothing in common: what is computed of one neither reads nor changes what is
computed of another. So those of a late piece of work are lent as they are, computed in another
thread, and given back with what has become of them. Until then the partition computes nothing
of them, and what it learns or forgets meanwhile does not change what it has lent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from itertools import islice

from pipeline.accounting.accounts import Accounts
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.state.recalling import asked_for
from pipeline.work import Work
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.pauses import Paused
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Batch, TreeKey

AT_ONCE = 500
"""Last updates that are given back between two batches."""


class Excerpt:
    """The state of some components, for the late work of which nothing else is computed.

    It is made and given back by the thread that has the partition, and used by another.
    """

    def __init__(self, partition: Partition, work: Work, contested: Callable[[], bool]) -> None:
        """Lend the components of the streams that the work updates; others may be active."""
        self._contested = contested
        self.number = partition.number
        self.store = partition.store
        self.decided = Decided()  # late work is not read back from what was emitted
        self.accounts = Accounts()
        self.progress = work.end
        self.waiting: Counter[int] = Counter()
        self.emitted_late: list[TreeKey] = []
        self._partition = partition
        self._claim, self._emitted_offset = partition.claim, partition.emitted_offset
        self._emitted_before = frozenset(partition.emitted_late)
        self._noted: Set[TreeKey] = frozenset()
        self._last_updates: dict[StreamRef, LastUpdate | None] = {}
        self._changed: dict[KnownStream, LastUpdate] = {}
        self._stored: list[Work] = []
        self._is_withdrawn = False
        refs = dict.fromkeys(root.origin for each in work.updates for root in each.roots)
        origins = [partition.graph.stream(each) for each in refs]
        lent = {id_ for each in work.updates for id_ in each.service_objects}
        self.graph, self._remembered = partition.lend(lent, origins)

    @property
    def spares_others(self) -> bool:
        """Whether others are active now."""
        return self._contested()

    def recall(self, origins: Iterable[KnownStream]) -> Mapping[StreamRef, LastUpdate | None]:
        """The last updates that trees of these streams' updates need; one query at most."""
        known, unknown = self._last_updates, []
        for ref in self.graph.needed(origins):
            if ref not in known:
                try:
                    known[ref] = self._remembered(ref)
                except KeyError:
                    unknown.append(ref)
        if unknown:
            known.update(asked_for(unknown, self.graph, self.store))
        return known

    def commit(self, batch: Callable[[TreeKey], Batch]) -> Mapping[int, int]:
        """Store what was computed. Raises Unavailable, also where it is not to be any more."""
        if self._is_withdrawn:
            raise Unavailable("the partition is begun anew")
        content = replace(
            batch(self.progress),
            claim=self._claim,
            # How far the partition's own client has come; this one's tells nothing of that.
            emitted_offset=self._emitted_offset,
            emitted_late=sorted(self._emitted_before - self._noted),
        )
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

    def trim(self, *, contested: bool = False) -> None:
        """Nothing is forgotten before it is given back."""

    def withdraw(self) -> None:
        """Let nothing more be stored of it."""
        self._is_withdrawn = True

    def give_back(self) -> Paused[None]:
        """Let the partition know what has become of what it has lent; with pauses, if it is much.

        It is lent until the end: nobody looks at what is known of it by half.
        """
        partition = self._partition
        changed = iter(self._changed.items())
        while some := dict(islice(changed, AT_ONCE)):
            partition.remember(some)
            yield
        for each in self._stored:
            partition.note_waiting(each)
        partition.accounts.add(self.accounts)
        left = [each for each in partition.emitted_late if each not in self._noted]
        partition.emitted_late = left + self.emitted_late
        partition.take_back()
