"""Where somebody stands who gets the topic of emitted updates: partition by partition."""

from __future__ import annotations

from collections.abc import Mapping

from servioticy.domain.records import Position


class Cursor:
    """Knows of each partition the offset of the next record that its owner has to get.

    A stream may move to another partition, so a cursor knows every partition from which its
    owner has got anything. What `next_offsets` returns is all there is to store of it.
    """

    __slots__ = ("_next_offsets",)

    def __init__(self, next_offsets: Mapping[int, int] | None = None) -> None:
        self._next_offsets = dict(next_offsets or {})

    def advance(self, position: Position) -> None:
        """Note that the owner has got the record there, and all before it in its partition.

        A smaller offset than before counts, too: then the topic was made anew.
        """
        self._next_offsets[position.partition] = position.offset + 1

    def begin_at(self, partition: int, offset: int) -> None:
        """Note from where the owner reads a partition on, unless that is known."""
        self._next_offsets.setdefault(partition, offset)

    def pass_up_to(self, offsets: Mapping[int, int]) -> None:
        """Note that the owner needs nothing before these."""
        for partition, offset in offsets.items():
            if offset > self._next_offsets.get(partition, 0):
                self._next_offsets[partition] = offset

    def has_passed(self, position: Position) -> bool:
        """Return whether the owner has got the record there already."""
        return position.offset < self._next_offsets.get(position.partition, 0)

    def next_offset(self, partition: int) -> int | None:
        """Return from where to read a partition on; None where that is not known."""
        return self._next_offsets.get(partition)

    def next_offsets(self) -> dict[int, int]:
        """Return by partition the offset from which to read on."""
        return dict(self._next_offsets)
