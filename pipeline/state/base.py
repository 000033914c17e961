"""Where the outcome of work is stored and noted: a partition, or beside its transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pipeline.accounting.accounts import Accounts
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate
from servioticy.ports.batches import Batch
from servioticy.ports.put_off import TreeKey


class Base(Protocol):
    """What the last stage knows."""

    number: int
    accounts: Accounts
    emitted_late: list[TreeKey]
    """Records that had been put off, and of which all is emitted and acknowledged."""
    spares_others: bool
    """Whether many records are sent a few at a time: others are active."""

    def commit(self, batch: Callable[[TreeKey], Batch]) -> Mapping[int, int]:
        """Store the batch that begins at the progress that it is told.

        Returns of streams the bytes of updates that are not stored any more. Raises Unavailable
        and Fenced.
        """

    def remember(self, last_updates: Mapping[KnownStream, LastUpdate]) -> None:
        """Note that these were stored as last updates."""
