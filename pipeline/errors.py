"""What can go wrong in a partition, where it is no matter of a single record."""

from __future__ import annotations

from servioticy.errors import ServioticyError
from servioticy.ports.put_off import TreeKey


class ProgressLost(ServioticyError):
    """Postgres fell and forgot the last batches: their rows have to come again."""

    def __init__(self, partition: int, progress: int, reached: int) -> None:
        super().__init__(
            f"partition {partition} was at offset {reached}, and is stored up to {progress} only: "
            "it is read again from there"
        )
        self.progress = progress


class Overflow(Exception):
    """A batch is more than fits, and nothing of it is stored: it has to be cut."""


class BatchTooLarge(Overflow):
    """The updates cause too many computations, or too many bytes, for one transaction."""


class BatchTooSlow(Overflow):
    """The batch has taken more time than a batch may."""


class TreeTooLarge(Overflow):
    """An execution tree reaches a limit: it has to be computed alone, in serial order."""

    def __init__(self, key: TreeKey) -> None:
        super().__init__(key)
        self.key = key


class TreeTooSlow(TreeTooLarge):
    """The scripts of an execution tree take longer than they may.

    `prepared`: some of the time went into programs met for the first time, and is not
    needed again.
    """

    def __init__(self, key: TreeKey, *, prepared: bool) -> None:
        super().__init__(key)
        self.prepared = prepared
