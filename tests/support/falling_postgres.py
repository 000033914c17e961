"""A Postgres that falls, and forgets what had not reached the disk."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields

from memory import MemoryPlatform
from memory.partition_store import MemoryPartitionStore

from servioticy.ports.batches import Batch
from servioticy.ports.effects import Release

NOT_IN_POSTGRES = {"log", "lock", "changes", "emitted_to", "dead_letters"}


class Fallen(BaseException):
    """Postgres has gone in the middle of what a task did."""


class Postgres:
    """What the twins hold for Postgres, and all that a fall may bring back.

    Transactions are forgotten from the last one backwards, as far as to the last one that
    waited for the disk: one of the API, or the release of a component.
    """

    def __init__(self, platform: MemoryPlatform) -> None:
        self._state = platform.state
        self.stores_left: int | None = None
        self.wait_for_the_disk()

    def store(self, store: MemoryPartitionStore) -> MemoryPartitionStore:
        """The same, noted."""
        batch_stored = store.store

        def stored(batch: Batch) -> Mapping[int, int]:
            if self.stores_left is not None:
                self.stores_left -= 1
                if self.stores_left < 0:
                    raise Fallen
            replaced = batch_stored(batch)
            if isinstance(batch.effect, Release):
                self.wait_for_the_disk()
            else:
                self._moments.append(self._copy())
            return replaced

        store.store = stored  # type: ignore[method-assign]
        return store

    def wait_for_the_disk(self) -> None:
        """What is there now stays."""
        self._moments = [self._copy()]

    def fall(self, transactions: int) -> None:
        """Forget the last transactions, and all claims."""
        self._moments = self._moments[: max(1, len(self._moments) - transactions)]
        for name, value in copy.deepcopy(self._moments[-1]).items():
            setattr(self._state, name, value)
        self._state.claims.clear()

    def _copy(self) -> dict:
        names = [each.name for each in fields(self._state) if each.name not in NOT_IN_POSTGRES]
        held = {name: getattr(self._state, name) for name in names if name != "claims"}
        return copy.deepcopy(held)
