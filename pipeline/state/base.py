"""What one batch is computed on: a partition, or an excerpt of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pipeline.accounting.accounts import Accounts
from pipeline.state.decided import Decided
from pipeline.work import Work
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.partition_store import Batch, PartitionStore, TreeKey


class Base(Protocol):
    """What is known where a batch is computed, and where its outcome is noted."""

    number: int
    store: PartitionStore
    graph: Graph
    decided: Decided
    accounts: Accounts
    progress: TreeKey
    """Everything before this place is stored."""
    waiting: Counter[int]
    """How many records of each tenant have been put off."""
    emitted_late: list[TreeKey]
    """Records that had been put off, and of which all is emitted and acknowledged."""

    @property
    def spares_others(self) -> bool:
        """Whether many records are sent a few at a time: others are active."""

    def recall(self, origins: Iterable[KnownStream]) -> Mapping[StreamRef, LastUpdate | None]:
        """The last updates that trees of these streams' updates need, perhaps among others."""

    def commit(self, batch: Callable[[TreeKey], Batch]) -> Mapping[int, int]:
        """Store the batch that begins at the progress that it is told.

        Returns of streams the bytes of updates that are not stored any more. Raises Unavailable
        and Fenced.
        """

    def remember(self, last_updates: Mapping[KnownStream, LastUpdate]) -> None:
        """Note that these were stored as last updates."""

    def note_waiting(self, work: Work) -> None:
        """Note that this work is stored: so many more, or fewer, records wait."""

    def trim(self, *, contested: bool = False) -> None:
        """Between two batches: forget what there is no room for.

        Then there is time to load something, less where several tenants are active.
        """
