"""Who of those whose records wait is next."""

from __future__ import annotations

from collections.abc import Iterable, Set

from pipeline.batching.pieces import Pieces
from pipeline.state.partition import Partition


class LateTurns:
    """Whose turns have been, in one partition."""

    def __init__(self, partition: Partition, pieces: Pieces, processors: int) -> None:
        self._partition = partition
        self._pieces = pieces
        self._processors = processors
        self._last: dict[int, int] = {}
        """Of each who waits, the number of its last turn, or of the one at which it came."""
        self._number = 0
        self._was_sender = False
        """Whether who had the last turn sends updates of its own."""

    def next(self, waiting: Iterable[int], under_way: Set[int]) -> int | None:
        """Return of those who wait who has not had a turn for longest, if there is room.

        Whose trees are slow have one place less than there are processors, so that some are left
        for all else; the others as many as there are. Who has sent something, and to whom
        something has come over a border only, have turns alternately: a thousand readers of a
        stream are not ahead of whoever sends to it.
        """
        free = [each for each in waiting if each not in under_way]
        self._last = {each: self._last.get(each, self._number) for each in free} | dict.fromkeys(
            under_way, self._number
        )
        rooms = {True: max(1, self._processors - 1), False: self._processors}
        for each in under_way:
            rooms[self._pieces.is_slow(each)] -= 1
        if max(rooms.values()) <= 0:
            return None
        senders = self._partition.senders
        order = [((each in senders) == self._was_sender, self._last[each], each) for each in free]
        for _is_of_the_same_kind, _turn, each in sorted(order):
            if rooms[self._pieces.is_slow(each)] > 0:
                self._number += 1
                self._was_sender = each in senders
                return each
        return None

    def had(self, tenant: int) -> None:
        """Note that it has had its turn."""
        self._last[tenant] = self._number
